/**
 * `npm run bench:journal`: the cost of the journal. Appends per second; rows and bytes of an action and of
 * 1,000 tokens; the cost of 1,000 runs at Cloudflare's list prices, computed from counts; the time to open and
 * recover sessions of growing length.
 */
import { join } from 'node:path';
import type { ModelDelta } from '../src/domain/ports/model.ts';
import { Journal } from '../src/journal/journal.ts';
import { runIdOf } from '../src/journal/run-id.ts';
import { CrashingSql, openNodeSql } from '../test/support/node-sql.ts';
import type { NodeSql } from '../test/support/node-sql.ts';
import { sessionKit, settle } from '../test/support/session-kit.ts';
import { newJournal, SESSION_ID } from '../test/journal/journal-kit.ts';
import { fillActions } from '../test/support/long-session.ts';
import type { SessionKit } from '../test/support/session-kit.ts';
import { PACKAGE_ROOT } from '../cli/project/folders.ts';
import { percentile, table, writeSection } from './report.ts';
import { barsOfOneUnit, writeBars } from './chart.ts';

/** US dollars, beyond the paid plan's included usage: developers.cloudflare.com/durable-objects/platform/pricing, 2026. */
const PRICES = {
  rowsWritten: 1.0 / 1e6,
  rowsRead: 0.001 / 1e6,
  requests: 0.15 / 1e6,
  gbSeconds: 12.5 / 1e6,
  gbMonth: 0.2,
} as const;
/** The billed memory of an object, whatever it uses. */
const OBJECT_GB = 0.128;
/** A model's pace in tokens per second, and characters per token. */
const PACE = { tokens: 60, chars: 4 } as const;

const ANSWER = '<response final="true">done</response>';
/** Whether the model is writing: then it advances the clock. */
const model = { isWriting: false };

const appends = await measureAppends();
console.error(appends);
const perAction = await countAction();
const perThousand = await countTokens();
console.error(perAction, perThousand);
const runs = await countRuns();
const open = [1_000, 10_000, 100_000, 1_000_000].map((events) => ({ events, ms: measureOpen(events) }));
console.error(open);
const recovery: { readonly actions: number; readonly events: number; readonly ms: number }[] = [];
for (const actions of [10, 100, 500, 1_500]) recovery.push(await measureRecovery(actions));
console.error(recovery);
const body = report();
writeSection('Journal', 'npm run bench:journal', body, 1);
console.log(body);

/** Total writes so far: billed rows (one each, because nothing that a run writes has an additional index), and the size of the file. */
function written(sql: NodeSql): { rows: number; bytes: number } {
  const number = (query: string, column: string): number => Number(sql.exec(query)[0]?.[column] ?? 0);
  const pages = number('PRAGMA page_count', 'page_count') - number('PRAGMA freelist_count', 'freelist_count');
  return { rows: number('SELECT total_changes() AS n', 'n'), bytes: pages * number('PRAGMA page_size', 'page_size') };
}

/** Appends per second, a number of events per turn, in Node: the cost of the code. */
async function measureAppends(): Promise<{ alone: number; together: number }> {
  const rate = async (turn: number): Promise<number> => {
    const journal = newJournal(openNodeSql());
    const data = { output: { text: 'a result of an action' }, ms: 3, attempt: 1 };
    const startedAt = performance.now();
    for (let n = 1; n <= 20_000; n += 1) {
      const entry = {
        type: 'action_completed',
        runId: runIdOf({ session_id: SESSION_ID }, 1),
        iteration: 1,
        at: n,
        data,
      } as const;
      journal.append({
        ...entry,
        actionId: 'a',
        actionName: 'echo',
        state: { key: '1/0', target: 'tool/echo', ms: 3 },
      });
      if (n % turn === 0) await journal.sync();
    }
    return 20_000_000 / (performance.now() - startedAt);
  };
  const rates: { alone: number[]; together: number[] } = { alone: [], together: [] };
  for (let round = 0; round < 7; round += 1) {
    rates.alone.push(await rate(1));
    rates.together.push(await rate(100));
  }
  return { alone: percentile(rates.alone, 0.5), together: percentile(rates.together, 0.5) };
}

/** Advances the clock until the run has ended. */
async function finish(kit: SessionKit, run: number): Promise<void> {
  const progress = { ended: false };
  void kit.session.ended(run).then(() => (progress.ended = true));
  while (!progress.ended) {
    await settle();
    if (!model.isWriting) kit.clock.advance(50);
  }
}

/** A text as a model streams it, at its pace. */
function streamed(texts: readonly string[], kit: () => SessionKit): () => AsyncGenerator<ModelDelta> {
  let generation = 0;
  return async function* () {
    const text = texts[generation] ?? '<response final="true">done</response>';
    generation += 1;
    model.isWriting = true;
    for (let at = 0; at < text.length; at += PACE.chars) {
      yield { type: 'text', text: text.slice(at, at + PACE.chars) };
      await new Promise((resolve) => setImmediate(resolve));
      kit().clock.advance(1_000 / PACE.tokens);
    }
    model.isWriting = false;
    yield { type: 'usage', usage: { promptTokens: 1, completionTokens: 1, cachedTokens: 0, estimated: false } };
    yield { type: 'finish', reason: 'stop' };
  };
}

interface Counted {
  readonly rows: number;
  readonly bytes: number;
  readonly seconds: number;
  readonly rowsRead: number;
}

/** A run with these generations, in a session that has had one run before. */
async function counted(texts: readonly string[]): Promise<Counted> {
  const sql = openNodeSql();
  let rowsRead = 0;
  const counting: NodeSql = Object.assign(Object.create(sql) as NodeSql, {
    exec: (...query: Parameters<NodeSql['exec']>) => {
      const rows = sql.exec(...query);
      rowsRead += rows.length;
      return rows;
    },
  });
  let kit: SessionKit | null = null;
  const current = (): SessionKit => {
    if (kit === null) throw new Error('no session yet');
    return kit;
  };
  const stream = streamed(['<response final="true">hello</response>', ...texts], current);
  kit = await sessionKit({
    sql: counting,
    stream,
    agent: (agent) => ({ ...agent, loop: { ...agent.loop, maxParallelActions: 50 } }),
    executors: { tool: async ({ parameters }) => ({ ok: true, output: parameters }) },
  });
  const send = async (): Promise<void> => {
    const message = { content: 'go', ifBusy: 'queue', tokens: false, idempotencyKey: null } as const;
    await finish(current(), (await current().session.message(message)).run);
  };
  await send();
  const before = written(sql);
  const [at, read] = [kit.clock.now(), rowsRead];
  await send();
  const after = written(sql);
  return {
    rows: after.rows - before.rows,
    bytes: after.bytes - before.bytes,
    seconds: (kit.clock.now() - at) / 1_000,
    rowsRead: rowsRead - read,
  };
}

function actions(count: number): string {
  const one = (n: number): string =>
    `<action name="echo" id="a${n}" mode="async">{"q":"what action ${n} is asked"}</action>`;
  return Array.from({ length: count }, (_, n) => one(n)).join('\n');
}

function words(tokens: number): string {
  return 'word '.repeat(Math.ceil((tokens * PACE.chars) / 5));
}

async function countAction(): Promise<{ rows: number; bytes: number }> {
  const [few, many] = [await counted([`${actions(10)}${ANSWER}`]), await counted([`${actions(110)}${ANSWER}`])];
  return { rows: (many.rows - few.rows) / 100, bytes: (many.bytes - few.bytes) / 100 };
}

async function countTokens(): Promise<{ rows: number; bytes: number }> {
  const text = (tokens: number): string[] => [`<response final="true">${words(tokens)}</response>`];
  const [short, long] = [await counted(text(1_000)), await counted(text(11_000))];
  return { rows: (long.rows - short.rows) / 10, bytes: (long.bytes - short.bytes) / 10 };
}

interface Priced extends Counted {
  readonly name: string;
  readonly requests: number;
  readonly alarms: number;
}

async function countRuns(): Promise<Priced[]> {
  const kinds: [string, string[]][] = [
    ['a chat answer of 200 tokens', [`<response final="true">${words(200)}</response>`]],
    [
      '5 actions and the answer, one generation',
      [`${words(50)}${actions(5)}<response final="true">$a0 ${words(200)}</response>`],
    ],
    [
      '5 actions, then an answer of 200 tokens',
      [`${words(50)}${actions(5)}`, `<response final="true">${words(200)}</response>`],
    ],
    [
      '50 actions in 5 generations, an answer of 1,000',
      [
        ...Array.from({ length: 5 }, () => `${words(100)}${actions(10)}`),
        `<response final="true">${words(1_000)}</response>`,
      ],
    ],
  ];
  const priced: Priced[] = [];
  for (const [name, texts] of kinds) {
    const count = await counted(texts);
    // The watchdog is set at the start of the run and each time it fires; each setting is billed as a row.
    const alarms = 1 + Math.floor(count.seconds / 30);
    priced.push({ name, ...count, alarms, requests: 2 + alarms });
  }
  return priced;
}

function costOf({ rows, alarms, rowsRead, requests, seconds }: Priced): {
  rows: number;
  requests: number;
  time: number;
} {
  return {
    rows: 1_000 * ((rows + alarms) * PRICES.rowsWritten + rowsRead * PRICES.rowsRead),
    requests: 1_000 * requests * PRICES.requests,
    time: 1_000 * seconds * OBJECT_GB * PRICES.gbSeconds,
  };
}

/** Time from the stored rows to the last page of events, in ms: the first request after an eviction. */
function measureOpen(events: number): number {
  const sql = openNodeSql();
  newJournal(sql).variables.set('x', 1);
  fillActions(sql, events);
  const samples = Array.from({ length: 7 }, () => {
    const startedAt = performance.now();
    const journal = new Journal(sql);
    journal.runs.open();
    journal.history.durations();
    journal.page(events - 100);
    journal.runs.list(100);
    return performance.now() - startedAt;
  });
  return percentile(samples, 0.5);
}

/** A run with this number of actions, cut in its last generation: time until a new host continues it. */
async function measureRecovery(count: number): Promise<{ actions: number; events: number; ms: number }> {
  const disk = openNodeSql();
  const mortal = new CrashingSql(disk, null);
  const each = 100;
  const texts = Array.from({ length: Math.ceil(count / each) }, (_, n) => actions(Math.min(each, count - n * each)));
  const samples: number[] = [];
  let generation = 0;
  const stream = async function* (): AsyncGenerator<ModelDelta> {
    const text = texts[generation];
    generation += 1;
    // The last generation never ends.
    if (text === undefined) return await new Promise(() => undefined);
    yield { type: 'text', text };
    yield { type: 'finish', reason: 'stop' };
  };
  const options = {
    stream,
    agent: ((agent) => ({
      ...agent,
      loop: { ...agent.loop, maxIterations: 100, maxParallelActions: 50 },
    })) as NonNullable<Parameters<typeof sessionKit>[0]>['agent'] & object,
    executors: {
      tool: async ({ parameters }: { parameters: object }) => ({ ok: true, output: { ...parameters } }) as never,
    },
  };
  const kit = await sessionKit({ ...options, sql: mortal });
  await kit.session.message({ content: 'go', ifBusy: 'queue', tokens: false, idempotencyKey: null });
  for (let turn = 0; turn < 2_000 && generation <= texts.length; turn += 1) await settle();
  await settle();
  mortal.kill();
  const events = Number(disk.exec(`SELECT MAX(seq) AS seq FROM events`)[0]?.['seq'] ?? 0);
  for (let n = 0; n < 5; n += 1) {
    const again = new CrashingSql(disk, null);
    const startedAt = performance.now();
    const next = await sessionKit({ ...options, sql: again });
    await next.session.recover();
    samples.push(performance.now() - startedAt);
    again.kill();
  }
  return { actions: count, events, ms: percentile(samples, 0.5) };
}

function report(): string {
  const money = (value: number): string => `$${value.toFixed(4)}`;
  writeBars(
    join(PACKAGE_ROOT, 'docs/journal.svg'),
    { title: 'What 1,000 runs cost at list prices', note: 'US cents; each group has its own scale.' },
    runs.map((run) => {
      const cost = costOf(run);
      return barsOfOneUnit(run.name, '¢', [
        { label: 'rows', value: cost.rows * 100 },
        { label: 'requests', value: cost.requests * 100 },
        { label: 'time (GB-s)', value: cost.time * 100 },
      ]);
    }),
  );
  return `Counted in real sessions on SQLite in Node, with a scripted model that writes ${PACE.tokens} tokens per second of simulated time.

${table(
  ['', 'rows written', 'bytes'],
  [
    ['an action that succeeds at the first attempt', perAction.rows.toFixed(2), perAction.bytes.toFixed(0)],
    ['1,000 tokens of an answer', perThousand.rows.toFixed(1), perThousand.bytes.toFixed(0)],
  ],
)}

The target is at most 3 rows per action. Streamed text is written at 2 KiB or after five seconds, for the first time after one,
and once more as a whole when its block closes. The events of a turn share a row ([tables](journal.md#tables)). Appending one event per step takes ${(1e6 / appends.alone).toFixed(1)} µs per event (${(appends.alone / 1_000).toFixed(0)} k/s);
with 100 events per step, it takes ${(1e6 / appends.together).toFixed(1)} µs per event (${(appends.together / 1_000).toFixed(0)} k/s). [Sessions](#sessions) shows how fast events are appended, synced and sent in workerd.

### What 1,000 runs cost

At Cloudflare's list prices beyond the included amounts: $1.00 per million rows written, $0.001 per million rows read, $0.15
per million requests, $12.50 per million GB-s. An object is billed with 128 MB while it is awake. Stored data costs $0.20 per GB
and month, which is ${money((1_000 * Math.max(...runs.map(({ bytes }) => bytes)) * PRICES.gbMonth) / 1e9)} for the last row. The cost of the model is not included.

![Cost of 1,000 runs](journal.svg)

${table(
  [
    'run',
    'rows written',
    'alarms',
    'rows read',
    'requests',
    'seconds awake',
    'rows',
    'requests',
    'time',
    '**1,000 runs**',
  ],
  runs.map((run) => {
    const cost = costOf(run);
    return [
      run.name,
      String(run.rows),
      String(run.alarms),
      String(run.rowsRead),
      String(run.requests),
      run.seconds.toFixed(1),
      money(cost.rows),
      money(cost.requests),
      money(cost.time),
      `**${money(cost.rows + cost.requests + cost.time)}**`,
    ];
  }),
)}

Rows still cost most: two for an action, two for a block, and five for the run, its beginning, its end and its prompt. The rest is the time
during which the object waits for the model. Rows are those of the journal: a session also writes its entry in the
[list of sessions](deploy.md#list-of-sessions). Rows read are the rows that queries returned.

### Opening a session

Time to read the open runs, the learned durations, the last page of events and the last page of runs: the delay of the first
request after an eviction. Target: under 100 ms with 100,000 events: **${(open.find(({ events }) => events === 100_000)?.ms ?? Infinity) < 100 ? 'met' : 'missed'}**.

${table(
  ['events', 'time'],
  open.map(({ events, ms }) => [events.toLocaleString('en'), `${ms.toFixed(1)} ms`]),
)}

### Recovering a run

The host of a run crashes in the last generation. Time from the new host's first read until the run continues:

${table(
  ['actions', 'events', 'time'],
  recovery.map(({ actions: count, events, ms }) => [String(count), String(events), `${ms.toFixed(1)} ms`]),
)}`;
}
