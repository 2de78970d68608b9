/** Parameters are completed and parsed before they are judged; what is judged is shown, approved and executed (C9, D3, K2). */
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { callTool, parseCall } from '../../../src/code-tools/call-tool.ts';
import { defineTool, schemaOf } from '../../../src/code-tools/define-tool.ts';
import type { CodeTool } from '../../../src/code-tools/define-tool.ts';
import type { ActionOutcome } from '../../../src/domain/action.ts';
import type { Json, JsonObject } from '../../../src/domain/json.ts';
import { limits } from '../../../src/domain/limits.ts';
import type { ToolDefinition } from '../../../src/domain/manifests/tool.ts';
import type { CodeTools } from '../../../src/domain/ports/code-tools.ts';
import type { ActionCall } from '../../../src/executors/executor.ts';
import { toolExecutor } from '../../../src/executors/tool.ts';
import { CONTAINER_RELIC, relicOf, toolOf, workflowOf } from '../../support/definitions.ts';
import { eventsOf } from '../../support/events.ts';
import { hostScene } from '../../support/host-scene.ts';
import type { HostScene } from '../../support/host-scene.ts';
import type { KitOptions } from '../../support/session-kit.ts';
import { settle } from '../../support/session-kit.ts';
import { ACTION, OK, rule } from '../calls.ts';

let made = 0;
const PAY = defineTool({
  name: 'pay',
  description: 'Pays.',
  parameters: z.object({
    to: z.string().transform((text) => `${text.trim().toLowerCase()}!`),
    sum: z.number().default(500),
    key: z.string().default(() => `key ${(made += 1)}`),
  }),
  run: (input) => input,
});

/** A project with code tools; `ran` has what `run` got. */
class Project {
  readonly ran: Json[] = [];
  readonly parsed: string[] = [];
  readonly lost: string[] = [];
  readonly definitions: readonly ToolDefinition[];
  readonly #tools: Readonly<Record<string, CodeTool>>;
  /** Before each parse. */
  hold: (() => Promise<void>) | null = null;

  constructor(tools: readonly CodeTool[], changes: Partial<ToolDefinition> = {}) {
    this.definitions = tools.map((one) =>
      toolOf(
        { type: 'code', bindings: [], secrets: [] },
        { name: one.name, parameters: schemaOf(one), effects: one.effects, approval: 'never', ...changes },
      ),
    );
    const recording = (one: CodeTool): CodeTool => ({
      ...one,
      run: (input, ctx) => {
        this.ran.push(input as Json);
        return one.run(input, ctx);
      },
    });
    this.#tools = Object.fromEntries(tools.map((one) => [one.name, recording(one)]));
  }

  get ports(): CodeTools {
    const host = { tools: this.#tools, env: {}, secret: () => ({ ok: false as const, reason: '' }), advice };
    const session = { session_id: 'ses_1', owner: null, user_id: null, agent: 'assistant' };
    const fetch = (): Promise<Response> => Promise.reject(new Error('not used'));
    return {
      parse: async (call, signal) => {
        this.parsed.push(call.name);
        await this.hold?.();
        return await parseCall(call, host, signal);
      },
      run: (call, options) => callTool(call, host, session, { ...options, fetch }),
      lost: async (name) => void this.lost.push(name),
    };
  }
}
const advice = { tool: '', binding: (): string => '' };

const withProject = async (project: Project, options: KitOptions = {}): Promise<HostScene> =>
  await hostScene({
    tools: project.definitions,
    codeTools: project.ports,
    executors: { tool: toolExecutor.execute },
    ...(toolExecutor.recover === undefined ? {} : { recover: { tool: toolExecutor.recover } }),
    ...options,
  });
const shownIn = (stage: HostScene, type: 'policy_applied' | 'action_started' | 'approval_requested'): unknown[] =>
  eventsOf(stage.events, type).map(({ data }) => data.parameters);

describe('[K2] [C9] the parameters of a code tool', () => {
  test('are parsed before they are judged, and the tool gets exactly what was judged', async () => {
    const project = new Project([PAY]);
    const stage = await withProject(project, {
      policies: [rule('deny', 'parameters.sum > 100 && parameters.to == "eve!"'), rule('allow')],
    });
    await stage.run(ACTION('a', 'pay', { to: ' Eve' }), ACTION('b', 'pay', { to: ' Ann', sum: 7, unknown: 1 }));
    await stage.ended();
    expect(stage.failures).toEqual(['policy_denied']);
    const [, ann] = shownIn(stage, 'policy_applied') as JsonObject[];
    expect(ann).toEqual({ to: 'ann!', sum: 7, key: expect.stringMatching(/^key /) });
    expect(project.ran).toEqual([ann]);
    expect(project.parsed).toHaveLength(2);
  });

  test('[J8] are approved as parsed, and the approved ones run after a crash', async () => {
    const project = new Project([PAY], { approval: 'always' });
    const stage = await withProject(project);
    await stage.run(ACTION('a', 'pay', { to: 'Ann' }));
    const [asked] = shownIn(stage, 'approval_requested');
    expect(asked).toMatchObject({ to: 'ann!', sum: 500 });
    expect(stage.kit.session.approval(stage.open[0] ?? '')).toMatchObject({ parameters: asked });
    await stage.start();
    await stage.decide();
    await stage.ended();
    expect(project.ran).toEqual([asked]);
    expect(project.parsed).toHaveLength(1);
  });

  test('[S7] are shown and the same in every attempt, without policies too', async () => {
    let attempts = 0;
    const flaky = defineTool({
      name: 'flaky',
      description: 'Fails once.',
      parameters: z.object({ at: z.string().default(() => `at ${(made += 1)}`) }),
      effects: 'idempotent',
      run: () => {
        attempts += 1;
        if (attempts === 1)
          throw Object.assign(new Error('again'), { name: 'ToolError', code: 'flaky', retryable: true });
        return 'ok';
      },
    });
    const project = new Project([flaky]);
    const stage = await withProject(project);
    await stage.run(ACTION('a', 'flaky'));
    await stage.pass();
    await stage.ended();
    expect(project.ran).toHaveLength(2);
    expect(shownIn(stage, 'action_started')[0]).toEqual(project.ran[0]);
    expect(project.ran[1]).toEqual(project.ran[0]);
    expect(project.parsed).toHaveLength(1);
  });

  test.each(['never', 'always'] as const)(
    '[P6] calls that ask the same are equal, although a default differs each time (approval: %s)',
    async (approval) => {
      const project = new Project([PAY], { approval });
      const stage = await withProject(project);
      for (let run = 0; run < 2; run += 1) {
        await stage.run(ACTION('a', 'pay', { to: 'Ann' }, { idempotency_key: 'k' }));
        if (approval === 'always') await stage.decide();
        await stage.ended();
      }
      expect(stage.failures).toEqual([]);
      expect(project.ran).toHaveLength(1);
    },
  );

  test('that the schema refuses are a mistake of the model, before the judgement', async () => {
    const strict = defineTool({
      name: 'strict',
      description: 'Takes even numbers.',
      parameters: z.object({ n: z.int().refine((n) => n % 2 === 0, 'must be even') }),
      run: () => null,
    });
    const stage = await withProject(new Project([strict]), { policies: [rule('deny')] });
    await stage.run(
      ACTION('a', 'strict', { n: 3 }),
      ACTION('b', 'strict', { n: 'x' }),
      ACTION('c', 'strict', { n: 4 }),
    );
    expect(stage.failures.toSorted()).toEqual(['invalid_parameters', 'invalid_parameters', 'policy_denied']);
    expect(shownIn(stage, 'policy_applied')).toHaveLength(1);
  });

  test.each<[what: string, parameters: z.ZodType, code: string]>([
    ['a date', z.object({ at: z.string().transform((text) => new Date(text)) }), 'parameters_not_json'],
    ['no object', z.object({ at: z.string() }).transform(({ at }) => at), 'parameters_not_json'],
    [
      'an error',
      z.object({
        at: z.string().transform((): string => {
          throw new Error('broken');
        }),
      }),
      'invalid_parameters',
    ],
  ])('fail if the schema gives %s', async (_what, parameters, code) => {
    const odd = defineTool({ name: 'odd', description: 'Odd.', parameters, run: () => null });
    const project = new Project([odd]);
    const stage = await withProject(project, { policies: [rule('allow')] });
    await stage.run(ACTION('a', 'odd', { at: '2026-01-02' }));
    expect(stage.failures).toEqual([code]);
    expect(project.ran).toEqual([]);
    expect(shownIn(stage, 'policy_applied')).toEqual([]);
  });

  test('fail if the schema never answers, and a cancelled run does not wait for it', async () => {
    const project = new Project([PAY]);
    project.hold = () => new Promise(() => undefined);
    const stage = await withProject(project);
    await stage.run(ACTION('a', 'pay', { to: 'Ann' }));
    stage.clock.advance(limits.codeToolParseMs);
    await stage.pass();
    expect(stage.failures).toEqual(['parse_timeout']);
    await stage.run(ACTION('a', 'pay', { to: 'Ann' }));
    await stage.kit.session.cancel('enough');
    await settle();
    expect(stage.kit.session.runs().at(-1)?.status).toBe('cancelled');
    expect(project.ran).toEqual([]);
  });

  test('are parsed again after a host ended during the parse, which is reported', async () => {
    const project = new Project([PAY]);
    project.hold = () => new Promise(() => undefined);
    const stage = await withProject(project);
    await stage.run(ACTION('a', 'pay', { to: 'Ann' }));
    project.hold = null;
    await stage.start();
    await stage.ended();
    expect(project.lost).toEqual(['pay']);
    expect(project.ran).toMatchObject([{ to: 'ann!' }]);
  });

  test('are parsed again if the host of the tools is lost', async () => {
    const project = new Project([PAY]);
    let isLost = true;
    project.hold = async () => {
      if (isLost) throw new Error('the host has gone');
    };
    const stage = await withProject(project);
    await stage.run(ACTION('a', 'pay', { to: 'Ann' }));
    isLost = false;
    await stage.pass();
    await stage.ended();
    expect(project.ran).toMatchObject([{ to: 'ann!' }]);
  });
});

describe('[D3] [C9] defaults of a schema', () => {
  const parameters: JsonObject = {
    type: 'object',
    properties: { to: { type: 'string' }, sum: { type: 'integer', default: 500 } },
    required: ['to'],
    additionalProperties: false,
  };
  const OF_TYPES: readonly ToolDefinition['implementation'][] = [
    { type: 'builtin', entrypoint: 'echo' },
    { type: 'http', url: 'https://a.example/{sum}', method: 'POST', headers: {} },
    { type: 'mcp', server: 's', url: 'https://a.example', auth: null, bundled: false, tool: 'pay' },
  ];

  test.each(OF_TYPES)('of a tool of type $type are judged, shown and executed', async (implementation) => {
    const stage = await hostScene({
      tools: [toolOf(implementation, { name: 'pay', parameters, approval: 'never', effects: 'unsafe' })],
      policies: [rule('deny', 'parameters.sum > 100 && parameters.to == "Eve"'), rule('ask', 'parameters.sum > 100')],
    });
    stage.ends.push(OK);
    await stage.run(ACTION('a', 'pay', { to: 'Eve' }), ACTION('b', 'pay', { to: 'Ann', sum: null }));
    expect(stage.failures).toEqual(['policy_denied']);
    expect(shownIn(stage, 'approval_requested')).toEqual([{ to: 'Ann', sum: 500 }]);
    await stage.decide();
    expect(stage.calls.map((call) => call.parameters)).toEqual([{ to: 'Ann', sum: 500 }]);
  });

  test('are in the event of an action without policies, and in the call of a client tool', async () => {
    const stage = await hostScene({
      tools: [
        toolOf({ type: 'builtin', entrypoint: 'echo' }, { name: 'pay', parameters, approval: 'never' }),
        toolOf({ type: 'client' }, { name: 'locate', parameters, approval: 'never' }),
      ],
    });
    stage.ends.push(OK);
    await stage.run(ACTION('a', 'pay', { to: 'Ann' }), ACTION('b', 'locate', { to: 'Ann' }));
    expect(shownIn(stage, 'action_started')[0]).toEqual({ to: 'Ann', sum: 500 });
    expect(eventsOf(stage.events, 'client_tool_called').map(({ data }) => data.parameters)).toEqual([
      { to: 'Ann', sum: 500 },
    ]);
  });
});

test.each([
  ['https://DOCS.example.com/public/../private', 'https://docs.example.com/private'],
  ['https://docs.example.com\\@evil.example/', 'https://docs.example.com/@evil.example/'],
  [' https://docs.exa\nmple.com', 'https://docs.example.com/'],
  ['https://b\u00fccher.example/%7e', 'https://xn--bcher-kva.example/%7e'],
])('[C9] the URL %j of a page is judged and shown as it is requested', async (url, requested) => {
  const stage = await hostScene({
    tools: [toolOf({ type: 'builtin', entrypoint: 'web_fetch' }, { name: 'web_fetch', approval: 'never' })],
    policies: [
      rule('deny', `parameters.url == ${JSON.stringify(`${requested}x`)}`),
      rule('ask', `parameters.url == ${JSON.stringify(requested)}`),
    ],
  });
  stage.ends.push({ ok: true, output: 'page' });
  await stage.run(ACTION('a', 'web_fetch', { url }));
  expect(shownIn(stage, 'approval_requested')).toEqual([{ url: requested }]);
  await stage.decide();
  expect(stage.calls.map((call) => call.parameters)).toEqual([{ url: requested }]);
});

test('[D3] [C9] defaults of a workflow and of an endpoint of a relic are judged and passed on', async () => {
  const got: JsonObject[] = [];
  const collect = async ({ parameters }: ActionCall): Promise<ActionOutcome> => {
    got.push(parameters);
    return { ok: true, output: 'done' };
  };
  const schema: JsonObject = {
    type: 'object',
    properties: { key: { type: 'string' }, limit: { type: 'integer', default: 9 } },
  };
  const relic = relicOf(CONTAINER_RELIC, {
    endpoints: {
      get: {
        name: 'get',
        summary: '',
        parameters: schema,
        returns: null,
        effects: 'unsafe',
        timeoutMs: null,
        http: { method: 'GET', path: '/' },
      },
    },
  });
  const workflow = workflowOf({ name: 'flow', inputs: schema, defaults: { key: 'k' } });
  const stage = await hostScene({
    agent: (agent) => ({ ...agent, imports: { ...agent.imports, relics: ['store'], workflows: ['flow'] } }),
    relics: [relic],
    workflows: [workflow],
    policies: [rule('deny', 'parameters.limit != 9')],
    executors: { relic: collect, workflow: collect },
  });
  await stage.run(
    `<action type="relic" mode="async" id="a">{"name":"store.get","parameters":{"key":"x"}}</action>`,
    `<action type="relic" mode="async" id="b">{"name":"store","parameters":{"endpoint":"get","parameters":{"limit":null}}}</action>`,
    `<action type="workflow" mode="async" id="c">{"name":"flow","parameters":{}}</action>`,
  );
  expect(stage.failures).toEqual([]);
  expect(got).toEqual([
    { key: 'x', limit: 9 },
    { endpoint: 'get', parameters: { limit: 9 } },
    { key: 'k', limit: 9 },
  ]);
});
