/**
 * Text that views hide, planted wherever a model, a manifest, a client or a person can write it, and looked for in every answer
 * that a token with `view` can get (T1). Texts that begin with `canary_` are hidden; those that begin with `public_` are shown.
 */
import { describe, expect, test } from 'vitest';
import type { SessionEvent } from '../../src/domain/event.ts';
import { INTERNAL_ACTIONS, isHiddenFromViews } from '../../src/domain/internal-actions.ts';
import type { JsonObject } from '../../src/domain/json.ts';
import type { AgentDefinition } from '../../src/domain/manifests/agent.ts';
import type { SkillDefinition } from '../../src/domain/manifests/skill.ts';
import type { ModelDelta } from '../../src/domain/ports/model.ts';
import type { SeededCall, SeededMessage } from '../../src/domain/seeded.ts';
import type { OpenApproval } from '../../src/engine/actions/approval-list.ts';
import { OPERATIONS, SCOPES, SESSION_PATH } from '../../src/http/operations.ts';
import type { Operation, OperationName, Scope } from '../../src/http/operations.ts';
import { SCOPES_HEADER } from '../../src/http/session-env.ts';
import { SURFACE_PATH } from '../../src/http/surfaces/session-surface.ts';
import type { SurfaceCall } from '../../src/http/surfaces/session-surface.ts';
import { SURFACES } from '../../src/http/surfaces/surfaces.ts';
import { VIEW } from '../../src/http/view.ts';
import type { SurfaceName } from '../../src/surfaces/surface.ts';
import { call, finish } from '../engine/generation/deltas.ts';
import { definition } from '../engine/workflow/steps.ts';
import { toolOf } from '../support/definitions.ts';
import { eventsOf } from '../support/events.ts';
import { largeTools } from '../support/many-tools.ts';
import { checkedSession } from '../support/response-check.ts';
import { runText, sessionKit, settle } from '../support/session-kit.ts';
import type { KitOptions, SessionKit } from '../support/session-kit.ts';
import { userFactsKit } from '../support/user-facts.ts';

type ViewOperation = {
  [N in OperationName]: (typeof OPERATIONS)[N] extends { readonly scopes: readonly (infer S)[] }
    ? 'view' extends S
      ? N
      : never
    : never;
}[OperationName];

/** What exists in a session, for the paths of its operations. */
interface Things {
  readonly runs: readonly string[];
  readonly approvals: readonly string[];
  readonly artifacts: readonly string[];
}

/** Every request of every operation that a view may call: a new operation without requests does not compile. */
const REQUESTS: Readonly<Record<ViewOperation, (things: Things) => readonly string[]>> = {
  'GET /agent/session/:id': () => ['/'],
  'GET /agent/session/:id/events': ({ runs }) =>
    ['/events', ...runs.map((run) => `/events?run=${run}`)].flatMap((path) => [
      path,
      `${path}${path.includes('?') ? '&' : '?'}format=compact`,
    ]),
  'GET /agent/session/:id/history': ({ runs }) => [
    '/history',
    '/history?limit=1',
    ...runs.map((run) => `/history?run=${run}`),
  ],
  'GET /agent/session/:id/runs': () => ['/runs'],
  'GET /agent/session/:id/runs/:run': ({ runs }) => ['/runs/unknown', ...runs.map((run) => `/runs/${run}`)],
  'GET /agent/session/:id/artifacts': () => ['/artifacts'],
  'GET /agent/session/:id/artifacts/:artifact': ({ artifacts }) =>
    ['unknown', ...artifacts].map((id) => `/artifacts/${id}`),
  'GET /agent/session/:id/state': () => ['/state'],
  'GET /agent/session/:id/export': () => ['/export'],
  'GET /agent/session/:id/approvals': () => ['/approvals'],
  'GET /agent/session/:id/approvals/:approval': ({ approvals }) =>
    ['unknown', ...approvals].map((id) => `/approvals/${id}`),
};

type Ask = (path: string, scopes: readonly Scope[] | null, init?: RequestInit) => Promise<string>;

interface Scene extends SessionKit {
  readonly ask: Ask;
  /** What readers of live streams have got, by the path; as viewers. */
  readonly live: Map<string, string>;
}

const decoder = new TextDecoder();

async function sceneOf(options: KitOptions, children: readonly OpenApproval[] = []): Promise<Scene> {
  const kit = await sessionKit(options);
  const fetch = checkedSession({
    session: kit.session,
    clock: kit.clock,
    childApprovals: async () => children,
    destroy: async () => undefined,
    log: () => undefined,
  });
  const request = async (path: string, scopes: readonly Scope[] | null, init: RequestInit = {}): Promise<Response> => {
    const headers: Record<string, string> = scopes === null ? {} : { [SCOPES_HEADER]: scopes.join(' ') };
    return await fetch(new Request(`http://session${path}`, { ...init, headers }));
  };
  const live = new Map<string, string>();
  for (const path of ['/events', '/events?format=compact']) {
    const reader = (await request(path, ['view'])).body?.getReader();
    void (async () => {
      for (;;) {
        const { done, value } = (await reader?.read()) ?? { done: true, value: undefined };
        if (done) return;
        live.set(path, (live.get(path) ?? '') + decoder.decode(value as Uint8Array));
      }
    })();
  }
  const ask: Ask = async (path, scopes, init) => {
    const response = await request(path, scopes, init);
    if (response.headers.get('content-type')?.startsWith('text/event-stream') !== true) return await response.text();
    // What is in the journal, and nothing live.
    const reader = response.body?.getReader();
    const first = await reader?.read();
    await reader?.cancel();
    return decoder.decode(first?.value as Uint8Array | undefined);
  };
  return { ...kit, ask, live };
}

/** Sends a message, and waits for the run. @returns the answer to it */
async function send({ ask }: Scene, more: JsonObject = {}, scopes: readonly Scope[] | null = null): Promise<string> {
  const answer = ask('/message', scopes, {
    method: 'POST',
    body: JSON.stringify({ content: 'public_question', stream: false, llm_tokens: true, ...more }),
  });
  await settle();
  return await answer;
}

/** Everything that these scopes can read, by the request. */
async function readable({ ask, session, events, live }: Scene, scopes: readonly Scope[]): Promise<Map<string, string>> {
  const things: Things = {
    runs: session.runs(100).map(({ runId }) => runId),
    approvals: eventsOf(events, 'approval_requested').map(({ data }) => data.approval_id),
    artifacts: ((JSON.parse(await ask('/artifacts', null)) as { artifacts: { id: string }[] }).artifacts ?? []).map(
      ({ id }) => id,
    ),
  };
  const seen = new Map(scopes.includes('read') ? [] : [...live].map(([path, text]) => [`live ${path}`, text]));
  for (const paths of Object.values(REQUESTS)) {
    for (const path of paths(things)) seen.set(path, await ask(path, scopes));
  }
  // The routes of other protocols need other scopes; what they answer with is the same.
  for (const surface of Object.keys(SURFACES) as SurfaceName[]) {
    for (const runId of things.runs) {
      const options = { threadId: 't', runId: 'r', answered: [], messages: null };
      for (const command of [
        { type: 'follow', runId, after: 0, stream: true, options } as const,
        ...(SURFACES[surface].document === undefined
          ? []
          : [{ type: 'follow', runId, after: 0, stream: false, options } as const]),
        ...(SURFACES[surface].conversation === undefined ? [] : [{ type: 'conversation', options } as const]),
      ]) {
        const body = JSON.stringify({ surface, agent: null, open: null, repeats: null, command } satisfies SurfaceCall);
        const path = `${surface} ${command.type} ${runId} ${'stream' in command ? String(command.stream) : ''}`;
        seen.set(path, await ask(SURFACE_PATH, scopes, { method: 'POST', body }));
      }
    }
  }
  return seen;
}

const found = (text: string, what: 'canary' | 'public'): string[] => [
  ...new Set(text.match(what === 'canary' ? /canary_\w+/g : /public_\w+/g)),
];

/**
 * @param planted the texts of the scene
 * @param further scopes besides `view`; each alone
 */
async function check(scene: Scene, planted: unknown, further: readonly Scope[] = []): Promise<void> {
  await settle();
  expect(scene.faults).toEqual([]);
  const all = JSON.stringify(planted);
  const owner = [...(await readable(scene, ['read'])).values()].join('\n');
  expect(found(all, 'canary').filter((one) => !owner.includes(one))).toEqual([]);
  for (const scopes of [[], ...further.map((scope) => [scope])]) {
    const seen = await readable(scene, ['view', ...scopes]);
    expect([...seen].flatMap(([path, text]) => found(text, 'canary').map((one) => `${path}: ${one}`))).toEqual([]);
    const text = [...seen.values()].join('\n');
    expect(found(all, 'public').filter((one) => !text.includes(one))).toEqual([]);
  }
}

const PUBLIC = '<action type="tool" name="echo" id="e">{"value":"public_value"}</action>';
const END = '<response final="true">public_answer</response>';
const ECHO = toolOf({ type: 'builtin', entrypoint: 'echo' }, { name: 'echo' });

const withFacts = (agent: AgentDefinition): AgentDefinition => ({
  ...agent,
  memory: { ...agent.memory, facts: { max: 5, maxTokens: 200 }, maxTurns: 3 } as AgentDefinition['memory'],
});

const FACTS: KitOptions = {
  userFacts: userFactsKit(() => 1),
  record: { user_id: 'anna' },
  agent: withFacts,
  tools: [ECHO],
};

/** Text in pieces of 7 characters, so that it arrives as patches. */
const inPieces = (text: string): ModelDelta[] => [
  ...(text.match(/[^]{1,7}/g) ?? []).map((piece): ModelDelta => ({ type: 'text', text: piece })),
  { type: 'finish', reason: 'stop' },
];

const value = (name: string): string => JSON.stringify({ key: 'a', value: `canary_${name}` });

/** A fact, written in each of these ways. */
const WRITTEN: Readonly<Record<string, string>> = {
  right: `<action type="internal" name="remember" id="r">${value('right')}</action>`,
  forgotten: '<action type="internal" name="forget" id="f">{"key":"canary_forgotten"}</action>',
  recalled: '<action type="internal" name="recall" id="c">{"values":["canary_recalled"]}</action>',
  'other attributes first': `<action id="r" name="remember" mode="async" type="internal">${value('reordered')}</action>`,
  'with the name in the body': `<action type="internal" id="r">{"name":"remember","parameters":${value('in_body')}}</action>`,
  'by the alias of the type': `<action type="context_feed" name="remember" id="r">${value('alias')}</action>`,
  'in capitals': `<action type="internal" name="Remember" id="r">${value('capitals')}</action>`,
  'with the type in capitals': `<action type=" INTERNAL " name="REMEMBER" id="r">${value('type_capitals')}</action>`,
  'with white space': `<action type="internal" name=" remember " id="r">${value('spaces')}</action>`,
  'in two words': `<action type="internal" name="re member" id="r">${value('words')}</action>`,
  misspelt: `<action type="internal" name="rememebr" id="r">${value('misspelt')}</action>`,
  'with a fact as its name': '<action type="internal" name="canary_name" id="r">{}</action>',
  'with a fact as its id': '<action type="internal" name="remember" id="it is canary_id">{}</action>',
  'as a tool': `<action type="tool" name="remember" id="r">${value('tool')}</action>`,
  'without a type': `<action name="remember" id="r">${value('untyped')}</action>`,
  'as another tool': `<action name="save_memory" id="r">${value('other_tool')}</action>`,
  'as an agent': `<action type="agent" name="remember" id="r">{"message":"canary_agent"}</action>`,
  'of an unknown type': '<action type="canary_type" name="remember" id="r">{}</action>',
  'without a name': `<action type="internal" id="r">{"parameters":${value('nameless')}}</action>`,
  'in broken JSON': '<action name="remember" id="r">{"value": canary_broken, ]</action>',
  'in repaired JSON': `<action type="internal" name="remember" id="r">{'key':'a','value':'canary_repaired',}</action>`,
  'with a field that does not exist': `<action type="internal" id="r">{"name":"remember","canary_field":1,"parameters":${value('in_field')}}</action>`,
  'with an attribute that does not exist': `<action type="internal" name="Remember" canary_attribute="canary_in_attribute" id="r">{}</action>`,
  'with an invalid timeout': `<action type="internal" name="remember" timeout="canary_timeout" id="r">${value('timeout')}</action>`,
  'under a condition': `<action type="internal" name="remember" when="'canary_condition' == 'x'" id="r">${value('conditional')}</action>`,
  'with an invalid condition': `<action type="internal" name="remember" when="'canary_when' ==" id="r">${value('when')}</action>`,
  'with an unknown dependency': `<action type="internal" name="remember" depends_on="nothing" id="r">${value('depending')}</action>`,
  'under an id that is taken': `${PUBLIC}<action name="remembre" id="e">${value('taken')}</action>`,
  'inside a thought': `<thought>canary_thought <action type="internal" name="Remember" id="r">${value('in_thought')}</action></thought>`,
  'with an invalid key':
    '<action type="internal" name="remember" id="r">{"key":"canary key!","value":"canary_key"}</action>',
  'with an unknown reference':
    '<action type="internal" name="remember" id="r">{"key":"k","value":"$e.canary_path ${canary_reference}"}</action>',
  'without an end': 'text <action id="r">canary_unclosed',
};

describe('[T1] what a view hides: facts about the user', () => {
  test.each(Object.entries(WRITTEN))('%s', async (_how, text) => {
    const script = [`public_text ${PUBLIC} public_between ${text}`, END];
    const scene = await sceneOf({ ...FACTS, script: script.map(inPieces) });
    await send(scene);
    await check(
      scene,
      script.map((one) => one.replaceAll(/\$\{canary_reference\}|canary key/g, '')),
    );
  });

  test('in the program of an execution', async () => {
    const scene = await sceneOf(FACTS);
    const program = `<thought>canary_thought</thought>${PUBLIC}${WRITTEN['right']}<response final="true">public_answer</response>`;
    await runText(scene, program);
    await check(scene, program);
    expect(await scene.ask('/events', ['view'])).toContain('"change":"remembered"');
  });

  test('nothing, in the answer to a token that may only send messages', async () => {
    const scene = await sceneOf({ script: [`<thought>canary_thought</thought>${END}`] });
    expect(found(await send(scene, {}, ['message']), 'canary')).toEqual(['canary_thought']);
  });

  test('in a generation that may only answer', async () => {
    const script = [PUBLIC, `${WRITTEN['other attributes first']}${WRITTEN['as another tool']}${END}`];
    const scene = await sceneOf({
      ...FACTS,
      script,
      agent: (agent) => ({ ...withFacts(agent), loop: { ...agent.loop, maxIterations: 2 } }),
    });
    await send(scene);
    await check(
      scene,
      script,
      SCOPES.filter((scope) => scope !== 'read' && scope !== 'view'),
    );
  });

  test.each(['remember', 'Remember', 'rememebr', 'internal.remember', 're member', 'save_memory'])(
    'by a call of the function %s',
    async (name) => {
      const script: ModelDelta[][] = [
        [
          call('echo', '{"value":"public_value"}', 'c1'),
          call(name, value('call'), 'c2', 1),
          call(name, `{"key":"b","value":"canary_cut`, 'c3', 2),
          finish(),
        ],
        [call(`canary_function ${name}`, '{}', 'c4'), finish()],
        inPieces(END),
      ];
      const scene = await sceneOf({
        ...FACTS,
        script,
        agent: (agent) => ({
          ...withFacts(agent),
          protocol: { ...agent.protocol, dialect: 'tool_calls' },
        }),
      });
      await send(scene);
      await check(scene, script);
    },
  );
});

/** A feed whose definition and value are hidden. */
const SOURCE = { type: 'tool', name: 'echo', params: { value: 'canary_definition' } };
const internal = (name: string, id: string, parameters: JsonObject): string =>
  `<action type="internal" name="${name}" id="${id}">${JSON.stringify(parameters)}</action>`;

const SKILL: SkillDefinition = {
  kind: 'Skill',
  name: 'forms',
  version: '1',
  summary: 'Fills forms.',
  description: 'Fills forms.',
  tags: [],
  metadata: {},
  text: `canary_skill ${'of the operator '.repeat(4_000)}`,
  files: [],
};

describe('[T1] what a view hides: feeds, skills and tools', () => {
  test('their definitions, values, texts and errors', async () => {
    const script = [
      [
        'public_text',
        internal('add_context_feed', 'a', { id: 'fed', type: 'on_demand', source: SOURCE }),
        internal('list_context_feeds', 'l', {}),
        internal('list_context_feeds', 'm', { id: 'canary_feed' }),
        internal('update_context_feed', 'u', { id: 'fed', source: { ...SOURCE, params: { value: 'canary_updated' } } }),
        internal('update_context_feed', 'w', { id: 'fed', source: { type: 'canary_invalid' } }),
        internal('add_context_feeds', 'x', { id: 'fad', source: { params: 'canary_plural' } }),
        internal('add-context-feed', 'y', { id: 'fad', source: { params: 'canary_dashes' } }),
        '<action type="feed" name="canary_read" id="z"/>',
        internal('remove_context_feed', 'r', { id: 'canary_removed' }),
        internal('load_skill', 's', { name: 'forms' }),
        internal('load_skills', 't', { name: 'canary_skills' }),
        internal('describe_tools', 'd', { names: ['thing_0'], search: 'canary_search' }),
        internal('set_variable', 'v', { key: 'public_key', value: 'public_value' }),
      ].join('\n'),
      END,
    ];
    const scene = await sceneOf({
      script: script.map(inPieces),
      skills: [SKILL],
      tools: [ECHO, ...largeTools(40)],
      agent: (agent) => ({ ...agent, imports: { ...agent.imports, skills: ['forms'] } }),
    });
    expect(found(await send(scene, {}, ['message', 'view']), 'canary')).toEqual([]);
    await check(scene, [script, SKILL]);
    expect(await scene.ask('/events', ['view'])).toContain('skill_loaded');
  });

  test('in artifacts, also from a token for files', async () => {
    const long = 'public_output '.repeat(5_000);
    const scene = await sceneOf({
      script: [`${internal('load_skill', 's', { name: 'forms' })}<action name="long" id="e">{}</action>`, END],
      skills: [SKILL],
      tools: [toolOf({ type: 'builtin', entrypoint: 'echo' }, { name: 'long' })],
      executors: { tool: async () => ({ ok: true, output: long }) },
      agent: (agent) => ({ ...agent, imports: { ...agent.imports, skills: ['forms'] } }),
    });
    await send(scene);
    const { artifacts } = JSON.parse(await scene.ask('/artifacts', ['read'])) as { artifacts: { id: string }[] };
    expect(artifacts).toHaveLength(2);
    for (const scopes of [['files'], ['view'], ['view', 'files']] as const) {
      const texts = await Promise.all(artifacts.map(({ id }) => scene.ask(`/artifacts/${id}`, scopes)));
      expect(found(texts.join(), 'canary')).toEqual([]);
      expect(found(texts.join(), 'public')).toEqual(['public_output']);
      expect(JSON.parse(await scene.ask('/artifacts', scopes))).toMatchObject({ artifacts: [{ action_name: 'long' }] });
    }
  });

  test('of a workflow, also in the error of its run', async () => {
    const workflow = definition([
      {
        name: 'watch',
        type: 'internal',
        target: 'add_context_feed',
        parameters: { id: 'fed', type: 'on_demand', source: { type: 'canary_source' } },
      },
    ]);
    const scene = await sceneOf({
      workflow: {
        tools: new Map(),
        relics: new Map(),
        workflows: new Map(),
        agents: new Map(),
        knownNames: { tool: [], agent: [], relic: [], workflow: [] },
        workflow,
      },
    });
    await scene.session.workflow({ topic: 'public_input' });
    await check(scene, [workflow, 'public_input']);
    const [run] = scene.session.runs(1);
    const document = JSON.parse(await scene.ask(`/runs/${run?.runId ?? ''}`, ['view'])) as JsonObject;
    expect(document).toMatchObject({ status: 'failed', error: { message: 'Step "watch" failed: invalid_parameters' } });
  });
});

describe('[T1] what a view hides: requests, decisions and policies', () => {
  const policies = [
    { when: 'action.name == "remember"', do: 'ask', message: 'canary_reason' },
    { when: 'action.name == "forget"', do: 'deny', message: 'canary_denied' },
    { when: 'action.name == "echo"', do: 'allow', message: 'public_reason' },
  ] as const;
  const script = [
    `${PUBLIC}${internal('forget', 'f', { key: 'canary_key' })}${internal('remember', 'r', { key: 'a', value: 'canary_asked' })}`,
    END,
  ];

  test('about facts, while they are open and when they are decided', async () => {
    const scene = await sceneOf({ ...FACTS, script, policies });
    await send(scene, { stream: true });
    const planted = [policies, PUBLIC, 'canary_asked', 'canary_key'];
    await check(scene, planted);
    const [id = ''] = scene.session.openApprovalIds;
    const shown = JSON.parse(await scene.ask(`/approvals/${id}`, ['view'])) as JsonObject;
    expect(shown).toMatchObject({ name: 'remember', redacted: true, parameters: null, inputs: null, reason: null });
    // Its digest would say whether a guess is right.
    const whole = JSON.parse(await scene.ask(`/approvals/${id}`, ['read'])) as JsonObject;
    expect([shown['sha256'] === whole['sha256'], shown['bytes'] === whole['bytes']]).toEqual([false, false]);
    await scene.ask(`/approvals/${id}`, null, {
      method: 'POST',
      body: JSON.stringify({ decision: 'approve', note: 'canary_note' }),
    });
    await check(scene, [...planted, 'canary_note']);
  });

  test('except from who may decide about them', async () => {
    const scene = await sceneOf({ ...FACTS, script, policies });
    await send(scene, { stream: true });
    for (const path of ['/approvals', `/approvals/${scene.session.openApprovalIds[0] ?? ''}`]) {
      const shown = found(await scene.ask(path, ['view', 'approve']), 'canary');
      expect(shown.toSorted()).toEqual(['canary_asked', 'canary_reason']);
    }
  });

  test('of sub-agents', async () => {
    const request: OpenApproval = {
      approval_id: `apr_${'2'.repeat(32)}`,
      session_id: `ses_${'2'.repeat(32)}`,
      parent_session_id: `ses_${'1'.repeat(32)}`,
      run_id: 'run',
      agent: 'sub',
      user_id: null,
      action_id: 'a',
      type: 'internal',
      name: 'add_context_feed',
      requested_at: 1,
      expires_at: 2,
      sha256: 'a'.repeat(64),
      bytes: 10,
      complete: true,
      parameters: { id: 'canary_child' },
      inputs: { value: 'canary_input' },
      reason: 'canary_reason',
      question: { from: 'canary_from', message: 'canary_message' },
    };
    const shown: OpenApproval = {
      ...request,
      approval_id: `apr_${'3'.repeat(32)}`,
      type: 'tool',
      name: 'echo',
      parameters: { value: 'public_child' },
      inputs: {},
      reason: 'public_reason',
      question: null,
    };
    const scene = await sceneOf({}, [request, shown]);
    await send(scene);
    await check(scene, [request, shown]);
  });

  test('[C9] texts of policies are redacted, for everyone', async () => {
    const scene = await sceneOf({
      script: [PUBLIC, END],
      tools: [ECHO],
      policies: [{ when: 'action.name == "echo"', do: 'ask', message: 'public_reason canary_redacted' }],
      redactPatterns: ['canary_redacted'],
    });
    await send(scene, { stream: true });
    for (const scopes of [['read'], ['view']] as const) {
      const text = [...(await readable(scene, scopes)).values()].join('\n');
      expect(found(text, 'canary')).toEqual([]);
      expect(found(text, 'public')).toContain('public_reason');
    }
  });
});

describe('[T1] what a view hides: what came with messages', () => {
  test('instructions, client tools and files, but not their calls', async () => {
    const tool = { name: 'locate', description: 'canary_description', parameters: { type: 'object' } };
    const script = ['<action type="tool" name="locate" id="l">{"place":"public_place"}</action>', END];
    const scene = await sceneOf({ script });
    const file = { type: 'file', name: 'public_name', data: btoa('canary_file') };
    await send(scene, {
      stream: true,
      content: [{ type: 'text', text: 'public_text' }, file],
      instructions: 'canary_instructions',
      tools: [tool],
    });
    const planted = [tool, script[0], 'public_text', file.name, 'canary_instructions'];
    await check(scene, planted);
    const kept = [...(await readable(scene, ['view'])).values()].join('\n');
    expect(kept).not.toContain(file.data);
    expect(await scene.ask('/export', ['read'])).toContain(file.data);
  });

  test('the names of files in the workspace', async () => {
    const scene = await sceneOf({});
    await send(scene);
    await scene.ask('/files/canary_file.txt', null, { method: 'PUT', body: 'canary_content' });
    await check(scene, ['canary_file']);
  });

  test('the parameters of a hidden action that runs again', async () => {
    const script = [internal('remember', 'r', { key: 'a', value: 'canary_again' }), END];
    const scene = await sceneOf({ ...FACTS, script });
    await send(scene);
    const [run] = scene.session.runs(1);
    await scene.ask(`/runs/${run?.runId ?? ''}/retry`, null, {
      method: 'POST',
      body: JSON.stringify({ action: 'r', stream: false }),
    });
    await check(scene, script);
    expect(await scene.ask('/export', ['view'])).toContain('"type":"rerun"');
  });

  test('the patterns of redaction, for everyone', async () => {
    const scene = await sceneOf({ record: { redact: ['canary_pattern'], request_sha256: 'canary_hash' } });
    await send(scene);
    for (const scopes of [['read'], ['view'], null] as const) {
      for (const path of ['/', '/export']) expect(found(await scene.ask(path, scopes), 'canary')).toEqual([]);
    }
  });

  test.each([
    'remember',
    'Remember',
    're-member',
    'internal.remember',
    'add_context_feed',
    'ListContextFeeds',
    'RECALL',
  ])('[C1] the calls and results of %s in a history from elsewhere', async (name) => {
    const calls: readonly SeededCall[] = [
      { id: 'a', type: 'function', function: { name, arguments: '{"value":"canary_argument"}' } },
      { id: 'b', type: 'function', function: { name: 'weather', arguments: '{"city":"public_city"}' } },
    ];
    const history: readonly SeededMessage[] = [
      { role: 'user', content: 'public_text' },
      { role: 'assistant', content: 'public_answer', tool_calls: calls },
      { role: 'tool', tool_call_id: 'b', content: 'public_result' },
      { role: 'tool', tool_call_id: 'a', content: 'canary_result' },
    ];
    const scene = await sceneOf({ history });
    await send(scene);
    await check(scene, history);
  });
});

test.each([1, 100])(
  '[T1] [C1] a view hides seeded results that show feeds, and no other message (pages of %i)',
  async (limit) => {
    const called = (id: string, name: string): SeededCall => ({
      id,
      type: 'function',
      function: { name, arguments: '{}' },
    });
    const turn: SeededMessage[] = [
      { role: 'user', content: 'public_question' },
      {
        role: 'assistant',
        content: null,
        tool_calls: [called('a', 'list_context_feeds'), called('b', 'weather'), called('c', 'add_context_feed')],
      },
      { role: 'tool', tool_call_id: 'c', content: 'canary_feed' },
      { role: 'tool', tool_call_id: 'b', content: 'public_result' },
      { role: 'tool', tool_call_id: 'a', content: [{ type: 'text', text: 'canary_feed' }] },
      { role: 'assistant', content: null, tool_calls: [called('a', 'weather')] },
      { role: 'tool', tool_call_id: 'a', content: 'public_other' },
    ];
    const { ask } = await sceneOf({ history: [...turn, ...turn] });
    const all = async (scope: Scope): Promise<string> => {
      let text = '';
      for (let query = `?limit=${limit}`; ;) {
        const page = await ask(`/history${query}`, [scope]);
        text += page;
        const { next } = JSON.parse(page) as { next: string | null };
        if (next === null) return text;
        query = `?limit=${limit}&before=${next}`;
      }
    };
    for (const seen of [await all('view'), await ask('/export', ['view'])]) {
      expect(seen).not.toContain('canary_feed');
      expect(seen.match(/\[hidden\]/g)).toHaveLength(4);
      for (const shown of ['public_question', 'public_result', 'public_other'])
        expect(seen.split(shown)).toHaveLength(3);
    }
    for (const seen of [await all('read'), await ask('/export', ['read'])]) {
      expect(seen).toContain('canary_feed');
      expect(seen).not.toContain('[hidden]');
    }
  },
);

/** An event of a child session, this number of levels below. */
function below(event: SessionEvent, depth: number): SessionEvent {
  if (depth === 0) return event;
  const data = { event: below(event, depth - 1) };
  const about = { action_id: 'sub', action_name: 'sub' };
  return { ...event, seq: null, type: 'progress', ...about, data } as unknown as SessionEvent;
}

const about = (type: string, data: object, name?: string): SessionEvent =>
  ({
    seq: 1,
    type,
    session_id: 's',
    run_id: 'r',
    iteration: 1,
    timestamp: 0,
    action_id: 'a',
    action_name: name,
    data,
  }) as never;

describe('[T1] the view itself', () => {
  test('hides as much in the events of a sub-agent, at any depth', async () => {
    const script = [Object.values(WRITTEN).join('\n').replaceAll('id="r"', ''), END];
    const scene = await sceneOf({ ...FACTS, script });
    await send(scene);
    expect(found(JSON.stringify(scene.events), 'canary').length).toBeGreaterThan(20);
    for (const depth of [1, 2, 5]) {
      for (const event of scene.events) {
        expect(found(JSON.stringify(VIEW.event(below(event, depth))), 'canary')).toEqual([]);
      }
      const [shown] = eventsOf(scene.events, 'response_completed').map((event) => below(event, depth));
      expect(VIEW.event(shown as SessionEvent)).toEqual(shown);
    }
  });

  test('hides an event, a warning and a member of a hidden action that it does not know', () => {
    expect(VIEW.event(about('fact_learned', { text: 'canary_event' }))).toBeNull();
    for (const event of [
      about('warning', { code: 'fact_learned', message: 'canary_warning' }),
      about('action_completed', { output: 1, learned: 'canary_member' }, 'remember'),
      about('action_rejected', { code: 'unknown_dependency', message: 'canary_type', type: 'memory' }),
      about('file_changed', { files: [{ path: 'canary_path', size: 1 }] }, 'python'),
    ]) {
      expect(found(JSON.stringify(VIEW.event(event)), 'canary')).toEqual([]);
    }
  });

  test('[C9] [C10] hides what policies and errors say about facts', () => {
    const applied = { decision: 'allow', source: 'deployment', rule: 1 };
    const parameters = { key: 'k', value: 'canary_value' };
    const whole = about('policy_applied', { ...applied, parameters }, 'echo');
    expect(VIEW.event(whole)).toEqual(whole);
    expect(VIEW.event(about('policy_applied', { ...applied, parameters }, 'remember'))?.data).toEqual(applied);
    const error = { code: 'memory_full', message: 'forget one first: canary_key', retryable: false };
    for (const type of ['action_failed', 'action_retrying']) {
      const hidden = { error: { ...error, message: '[hidden]' } };
      expect(VIEW.event(about(type, { error }, 'remember'))?.data).toEqual(hidden);
      expect(VIEW.event(about(type, { error }, 'echo'))?.data).toEqual({ error });
    }
  });

  test('lets every operation that a view may call be asked', () => {
    const allowed = (Object.keys(OPERATIONS) as OperationName[]).filter((name) =>
      ((OPERATIONS[name] as Operation).scopes ?? []).includes('view'),
    );
    expect(Object.keys(REQUESTS).toSorted()).toEqual(allowed.toSorted());
    expect(allowed.every((name) => name.startsWith(`GET ${SESSION_PATH}`))).toBe(true);
  });

  test('shows the actions on variables only', () => {
    expect(INTERNAL_ACTIONS.filter((name) => !isHiddenFromViews(name))).toEqual([
      'set_variable',
      'delete_variable',
      'clear_context',
    ]);
  });
});
