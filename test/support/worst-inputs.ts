/**
 * The most expensive inputs that one tenant can send to parsers, evaluations and stores, within their limits and just
 * past them. `npm run bench:neighbours` sends them all; docs/configure.md lists the limits.
 */
import { limits } from '../../src/domain/limits.ts';

/** A caller with its own API key. */
export interface Tenant {
  /** Id of a session of the tenant with `LONG_RUNS` runs. */
  readonly longSession: string;
  /** Sends a request with the tenant's key. A string or form is sent unchanged, any other value as JSON. */
  request(method: string, path: string, body?: unknown): Promise<Answer>;
}

export interface Answer {
  readonly status: number;
  readonly text: string;
}

export interface WorstInput {
  readonly name: string;
  /** What must exist before the input can be sent. */
  readonly prepare?: (tenant: Tenant) => Promise<unknown>;
  readonly send: (tenant: Tenant) => Promise<Answer>;
  /** Part of the answer: the exceeded limit, or the result of an input within the limits. */
  readonly answer: RegExp;
}

const times = <T>(count: number, make: (at: number) => T): T[] => Array.from({ length: count }, (_, at) => make(at));
const numbers = (count: number): number[] => times(count, (at) => at);

function execute(tenant: Tenant, text: string, agent = 'assistant'): Promise<Answer> {
  return tenant.request('POST', '/execute/direct', { agent, stream: false, protocol_text: text });
}

function action(type: string, name: string, parameters: unknown, rest: object = {}): string {
  return `<action type="${type}" mode="async">${JSON.stringify({ name, parameters, ...rest })}</action>`;
}

const echo = (parameters: object, rest: object = {}): string => action('tool', 'echo', parameters, rest);
const query = (text: string, count: number): string =>
  action('tool', 'json_query', { query: text, data: numbers(count) });
const sql = (text: string): string => action('relic', 'tables.query', { sql: text });

/** A result of nearly a megabyte under the name `large`. */
const large = echo({ v: 'x'.repeat(900_000) }, { output_key: 'large' });

function put(tenant: Tenant, kind: string, name: string, yaml: string): Promise<Answer> {
  return tenant.request('PUT', `/manifests/${kind}/${name}`, yaml);
}

const head = (kind: string, name: string): string =>
  `kind: ${kind}\nversion: "1.0"\nname: ${name}\nsummary: A manifest of the tests.\n`;

const evaluations: WorstInput[] = [
  {
    name: 'json_query: nested maps that end in text',
    send: (tenant) =>
      execute(tenant, query('length(map(&length(map(&length(map(&length(map(&to_string(@),$)),$)),$)),$))', 600)),
    answer: /query_too_expensive/,
  },
  {
    name: 'json_query: a result that shares its parts',
    send: (tenant) => execute(tenant, query('map(&map(&$,$),$)', 700)),
    answer: /invalid_query|query_too_expensive/,
  },
  {
    name: 'json_query: thirty evaluations that meet the limit',
    send: (tenant) => execute(tenant, times(30, () => query('map(&sort(map(&to_string(@),$)),$)', 900)).join('')),
    answer: /query_too_expensive/,
  },
  {
    name: 'schema: a pattern that backtracks',
    prepare: (tenant) =>
      put(
        tenant,
        'tool',
        'redos',
        `${head('Tool', 'redos')}implementation: { type: builtin, entrypoint: echo }\nparameters:\n  text: { type: string, pattern: "^(([a-z]|[a-z0-9])+)+$" }\n`,
      ).then(() =>
        put(
          tenant,
          'agent',
          'redos_agent',
          `${head('Agent', 'redos_agent')}import: { tools: [redos, echo] }\npersona: { agent: x }\n`,
        ),
      ),
    send: (tenant) => execute(tenant, action('tool', 'redos', { text: `${'a'.repeat(100_000)}!` }), 'redos_agent'),
    answer: /invalid_parameters/,
  },
  {
    name: 'condition: nested comprehensions',
    send: (tenant) => {
      const list = JSON.stringify(numbers(200));
      const when = `${list}.all(a, ${list}.all(b, ${list}.all(c, a + b + c >= 0)))`.slice(0, 2_000);
      const nested = 'l.all(a, l.all(b, l.all(c, l.all(d, a + b + c + d >= 0))))';
      const source = echo({ v: numbers(500) }, { output_key: 'source' });
      return execute(
        tenant,
        source +
          echo({}, { when: when.endsWith(')))') ? when : 'true' }) +
          echo({}, { when: nested.replaceAll('l.', 'source.v.') }),
      );
    },
    answer: /condition_error/,
  },
];

const references: WorstInput[] = [
  {
    name: 'actions: eight messages at once with 240 small ones each',
    send: async (tenant) => {
      const text = times(240, (at) => echo({ v: at })).join('');
      const [first] = await Promise.all(times(8, () => execute(tenant, text)));
      return first ?? { status: 0, text: '' };
    },
    answer: /"status":"completed"/,
  },
  {
    name: 'actions: 60 with thousands of members each',
    send: (tenant) => {
      const members = Object.fromEntries(times(2_000, (at) => [`k${at}`, at]));
      return execute(tenant, times(60, () => echo(members)).join(''));
    },
    answer: /"status":"completed"/,
  },
  {
    name: 'references: 200 actions that repeat a result of a megabyte',
    send: (tenant) => execute(tenant, large + times(200, () => echo({ v: '$large.v'.repeat(9) })).join('')),
    answer: /reference_quota/,
  },
  {
    name: 'references: 200 responses that repeat a result of a megabyte',
    send: (tenant) =>
      execute(tenant, large + times(200, () => `<response final="true">${'$large.v '.repeat(20)}</response>`).join('')),
    answer: /response cut/,
  },
  {
    name: 'plan: a megabyte of openings',
    send: (tenant) => tenant.request('POST', '/plan', { protocol_text: '<action '.repeat(130_000) }),
    answer: /"actions":\[\]/,
  },
  {
    name: 'plan: 256 actions, each of which depends on all before it',
    send: (tenant) =>
      tenant.request('POST', '/plan', {
        protocol_text: times(
          256,
          (at) =>
            `<action type="tool" mode="async" id="a${at}">${JSON.stringify({ name: 'echo', depends_on: times(at, (n) => `a${n}`) })}</action>`,
        ).join(''),
      }),
    answer: /"critical_path_ms"/,
  },
  {
    name: 'messages: a megabyte of brackets each',
    send: async (tenant) => {
      const created = await tenant.request('POST', '/agent/assistant/session', {});
      const { session_id: id } = JSON.parse(created.text) as { session_id: string };
      const send = (): Promise<Answer> =>
        tenant.request('POST', `/agent/session/${id}/message`, { content: '<s'.repeat(500_000), stream: false });
      for (const _ of numbers(5)) await send();
      return await send();
    },
    answer: /"status":"completed"/,
  },
];

/** Creates a session with a history, and sends it a message if it is accepted. */
async function seeded(tenant: Tenant, history: unknown): Promise<Answer> {
  const created = await tenant.request('POST', '/agent/assistant/session', { history });
  if (created.status !== 201) return created;
  const { session_id: id } = JSON.parse(created.text) as { session_id: string };
  return await tenant.request('POST', `/agent/session/${id}/message`, { content: 'hello', stream: false });
}

const user = (content: unknown): object => ({ role: 'user', content });
const calls = (count: number, make: (at: number) => object): object => ({
  role: 'assistant',
  tool_calls: times(count, (at) => ({ id: `c${at}`, type: 'function', function: make(at) })),
});
const results = (count: number): object[] =>
  times(count, (at) => ({ role: 'tool', tool_call_id: `c${at}`, content: `<system>${at}` }));

const histories: WorstInput[] = Object.entries({
  '2,000 turns of two kilobytes': [times(2_000, () => user('<s'.repeat(1_000))), /"status":"completed"/],
  '2,000 messages in one turn': [
    times(2_000, () => ({ role: 'assistant', content: '<action '.repeat(250) })),
    /"status":"completed"/,
  ],
  'seven messages with 256 calls each': [
    times(7, () => [calls(256, () => ({ name: 'f', arguments: '{"a":[[[]]]}' })), ...results(256)]).flat(),
    /"status":"completed"/,
  ],
  'a message of four megabytes, nearly': [[user('\u0001'.repeat(690_000))], /"status":"completed"/],
  'a message of twelve megabytes': [[user(' x'.repeat(6_000_000))], /history_too_large/],
  '60,000 messages': [times(60_000, () => user('x')), /history_too_large/],
  'messages of a thousand parts': [
    times(60, () => user(times(1_000, () => ({ type: 'text', text: 'x' })))),
    /completed/,
  ],
  'parts that are not texts': [times(190, () => user(times(1_000, () => 1))), /invalid_request/],
  'as many files as there may be': [
    times(8, (message) =>
      user(times(limits.seededFiles / 8, (at) => ({ type: 'file', name: 'f', data: btoa(`${message}.${at}`) }))),
    ),
    /"status":"completed"/,
  ],
  'eight megabytes of files': [
    times(2, () => user([{ type: 'file', name: 'f', data: 'QUJD'.repeat(1_390_000) }])),
    /"status":"completed"/,
  ],
  'a data URL of ten megabytes without data': [
    [user([{ type: 'image_url', image_url: { url: `data:${';'.repeat(10_000_000)}` } }])],
    /unsupported_content/,
  ],
  '25,600 invalid calls': [times(100, () => calls(256, () => ({ name: ' ', arguments: 1 }))), /invalid_request/],
  'arguments that are deep': [[calls(40, () => ({ name: 'f', arguments: '['.repeat(100_000) }))], /invalid_history/],
  'arguments with 200,000 values': [
    [calls(1, () => ({ name: 'f', arguments: `{"a":[${'1,'.repeat(200_000)}1]}` }))],
    /invalid_history/,
  ],
  'thousands of unknown members': [
    times(39, () => ({ ...user('x'), ...Object.fromEntries(times(4_900, (at) => [`conten${at}`, at])) })),
    /unknown member/,
  ],
  'names with control characters': [[calls(1, () => ({ name: '\u0000\u202e', arguments: '{}' }))], /invalid_request/],
} as const).map(([name, [history, answer]]): WorstInput => ({
  name: `history: ${name}`,
  send: (tenant) => seeded(tenant, history),
  answer,
}));

const manifests: WorstInput[] = [
  ...Object.entries({
    'explicit keys': `${'? '.repeat(400)}x`,
    '30,000 keys in one map': `{${times(30_000, (at) => `k${at}: 1`).join(', ')}}`,
    'flow collections within each other': '['.repeat(100_000),
    'sequences within each other': `${'- '.repeat(50_000)}x`,
    'aliases of aliases': times(
      12,
      (at) => `a${at}: &a${at} [${times(9, () => (at === 0 ? 'x' : `*a${at - 1}`)).join(', ')}]`,
    ).join('\n'),
    'a block scalar of a quarter of a megabyte': `a: |\n${'  x\n'.repeat(60_000)}`,
  }).map(([name, yaml]): WorstInput => ({
    name: `manifests: ${name}`,
    send: (tenant) => tenant.request('POST', '/manifests/validate', yaml),
    answer: /"valid":false/,
  })),
  {
    name: 'manifests: a folder of eight megabytes',
    send: (tenant) => {
      const form = new FormData();
      for (const at of numbers(40)) {
        const yaml = `${head('Tool', `t${at}`)}description: |\n${'  - x: [1, 2]\n'.repeat(14_000)}`;
        form.append('files', new Blob([yaml]), `tools/t${at}.yaml`);
      }
      return tenant.request('POST', '/manifests/validate', form);
    },
    answer: /./,
  },
];

const dense: WorstInput = {
  name: 'manifests: 450 files of empty lists',
  send: (tenant) => {
    const files = times(450, (at) => [`tools/t${at}.yaml`, `kind: Tool\nname: t${at}\nx: [${'[],'.repeat(4_000)}]`]);
    return tenant.request('POST', '/manifests/validate', { files: Object.fromEntries(files) as unknown });
  },
  answer: /tokens of YAML together|would hold/,
};

const stores: WorstInput[] = Object.entries({
  'a product of constant tables': `WITH t(x) AS (VALUES ${times(200, (at) => `(${at})`).join(',')}) SELECT count(*) AS n FROM t a, t b, t c, t d`,
  'a list made of zeros': `SELECT count(*) AS n FROM json_each('['||replace(hex(zeroblob(400000)),'0','1,')||'1]') a, json_each('['||replace(hex(zeroblob(4000)),'0','1,')||'1]') b`,
  'a value of a hundred megabytes': 'SELECT length(hex(hex(hex(zeroblob(20000000))))) AS n',
  'a recursion without an end':
    'WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT count(*) AS n FROM r',
  'a pattern that backtracks': `SELECT replace(hex(zeroblob(20000)),'0','a') LIKE '${'%a'.repeat(200)}b' AS n`,
}).map(([name, text]): WorstInput => ({
  name: `sql: ${name}`,
  send: (tenant) => execute(tenant, sql(text), 'notes_keeper'),
  answer: /too_large|invalid_parameters|not_allowed/,
}));

/** Nearly the maximum work of one statement, many times in one message. */
const statements: WorstInput = {
  name: 'sql: 30 statements that join constant tables',
  send: (tenant) => {
    const text = `WITH t(x) AS (VALUES ${times(84, (at) => `(${at})`).join(',')}) SELECT sum(a.x * b.x + c.x) AS n FROM t a, t b, t c`;
    return execute(tenant, times(30, () => sql(text)).join(''), 'notes_keeper');
  },
  answer: /"rows":[^]*"rows"/,
};

const children: WorstInput[] = [
  {
    name: 'workflows: eight steps that call the workflow itself',
    prepare: (tenant) =>
      put(
        tenant,
        'workflow',
        'itself',
        `${head('Workflow', 'itself')}trigger: manual\nsteps:\n${times(8, (at) => `  - { name: s${at}, type: workflow, target: itself, depends_on: [] }\n`).join('')}`,
      ),
    send: (tenant) => tenant.request('POST', '/workflows/itself/runs', { stream: false }),
    answer: /./,
  },
];

const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Puts a thousand workflows into the catalogue, forty per file; those past the limit are left out. */
function putWorkflows(tenant: Tenant, name: string, rest: string): Promise<Answer> {
  const files = times(25, (file) => [
    `workflows/${name}${file}.yaml`,
    times(40, (at) => `${head('Workflow', `${name}_${file}_${at}`)}${rest}\n`).join('---\n'),
  ]);
  return tenant.request('POST', '/manifests', { files: Object.fromEntries(files) as unknown });
}

const STEPS = 'import: { tools: [echo] }\nsteps: [{ name: a, type: tool, target: echo }]';
const many = `[${times(20, () => '{ type: number }').join(', ')}]`;

const clocks: WorstInput[] = [
  {
    name: 'clocks: expressions whose dates never come',
    send: (tenant) => {
      const workflow = (at: number): string =>
        `${head('Workflow', `never${at}`)}trigger: { type: scheduled, cron: "0 0 31 2,4,6,9,11 *", timezone: Europe/Berlin }\nsteps: [{ name: a, type: llm }]\n`;
      const files = times(10, (file) => [`f${file}.yaml`, times(100, (at) => workflow(file * 100 + at)).join('---\n')]);
      return tenant.request('POST', '/manifests/validate', { files: Object.fromEntries(files) as unknown });
    },
    answer: /it never matches a time/,
  },
  {
    name: 'clocks: an event that 1,000 workflows are to wait for, with inputs that are expensive to check',
    prepare: (tenant) =>
      putWorkflows(
        tenant,
        'rush',
        `trigger: { type: event, event: rush }\ninputs: { type: object, properties: { list: { type: array, items: { allOf: ${many} } } } }\n${STEPS}`,
      ),
    send: (tenant) => tenant.request('POST', '/events/rush', { data: { list: numbers(6_000) } }),
    answer: /"run_id"/,
  },
  {
    name: 'clocks: a session of an agent with as many periodic feeds as there may be',
    prepare: (tenant) => {
      const source = `{ type: tool, name: json_query, params: { query: "length(map(&length(map(&length(map(&to_string(@),$)),$)),$))", data: [${numbers(150).join(',')}] } }`;
      const feeds = times(8, (at) => `  - { id: f${at}, type: periodic, interval: 5, source: ${source} }\n`).join('');
      return put(
        tenant,
        'agent',
        'watcher',
        `${head('Agent', 'watcher')}import: { tools: [json_query] }\npersona: You watch.\ncontext_feeds:\n${feeds}`,
      );
    },
    send: async (tenant) => {
      const created = await tenant.request('POST', '/agent/watcher/session', {});
      const { session_id: id } = JSON.parse(created.text) as { session_id: string };
      await tenant.request('POST', `/agent/session/${id}/message`, { content: 'hello', stream: false });
      await sleep(12_000);
      const seen = await tenant.request('GET', `/agent/session/${id}/feeds`);
      await tenant.request('DELETE', `/agent/session/${id}`);
      return seen;
    },
    answer: /query_too_expensive/,
  },
];

/** Runs of the long session. All have failed; the last one has large results, the others have a thousand actions. */
export const LONG_RUNS = 100;

const readings: WorstInput[] = Object.entries({
  history: ['/history', /"next":null/],
  'the results of a run': [`/runs/${LONG_RUNS}`, /too many actions/],
  'the events of a run': [`/events?run=${LONG_RUNS - 1}`, /agent_failed/],
  artifacts: ['/artifacts', /"next":null/],
} as const).map(([name, [path, found]]): WorstInput => ({
  name: `a long session: ${name}`,
  send: async (tenant) => {
    const session = `/agent/session/${tenant.longSession}`;
    const latest = await tenant.request('GET', `${session}/runs?limit=1`);
    const run = /run_\w+_(?=\d+")/.exec(latest.text)?.[0] ?? '';
    return await tenant.request('GET', `${session}${path.replace(/(?<=run[s/=]+)(?=\d)/, run)}`);
  },
  answer: found,
}));

export const WORST_INPUTS: readonly WorstInput[] = [
  ...evaluations,
  ...references,
  ...histories,
  ...manifests,
  dense,
  ...stores,
  statements,
  ...children,
  ...clocks,
  ...readings,
];
