/** What a run makes of the streams of real endpoints: which actions start, how often and when (N1, N4). */
import { describe, expect, test } from 'vitest';
import type { ActionOutcome } from '../../../src/domain/action.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import type { AgentDefinition } from '../../../src/domain/manifests/agent.ts';
import type { ToolDefinition } from '../../../src/domain/manifests/tool.ts';
import type { ModelDelta } from '../../../src/domain/ports/model.ts';
import type { RunResult } from '../../../src/view/result.ts';
import { createOpenAiProvider } from '../../../src/llm/providers/openai.ts';
import { VirtualClock } from '../../../testing/virtual-clock.ts';
import { bundled } from '../../support/bundled.ts';
import { HostScene } from '../../support/host-scene.ts';
import { say, sessionKit, settle } from '../../support/session-kit.ts';
import type { SessionKit } from '../../support/session-kit.ts';
import { send } from '../../support/send.ts';
import { call, finish, text } from './deltas.ts';

const echo = bundled.tool('echo');
if (echo === null) throw new Error('the bundled catalogue has no echo');
const to: JsonObject = { type: 'object', properties: { to: { type: 'string' } }, required: ['to'] };
const PAY: ToolDefinition = { ...echo, name: 'pay', effects: 'unsafe', parameters: to };
const LOOK: ToolDefinition = { ...PAY, name: 'look', effects: 'pure' };
const WIPE: ToolDefinition = { ...PAY, name: 'wipe', dispatch: 'after_generation' };

type Event = object | 'DONE' | 'DESTROY' | 'CLOSE';

const chunk = (delta: object, finish_reason: string | null = null, more: object = {}): object => ({
  choices: [{ index: 0, delta, finish_reason, ...more }],
});
const says = (content: string): object => chunk({ content });
const calls = (args: string, finish_reason: string | null = null, given: object = {}): object =>
  chunk(
    { tool_calls: [{ index: 0, id: 'call_1', function: { name: 'pay', arguments: args }, ...given }] },
    finish_reason,
  );
const ANSWER: readonly Event[] = [says('<response final="true">done</response>'), chunk({}, 'stop'), 'DONE'];

function answer(events: readonly Event[]): Response {
  const encoder = new TextEncoder();
  const left = [...events];
  const body = new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        const event = left.shift() ?? 'CLOSE';
        if (event === 'DESTROY') controller.error(new TypeError('terminated'));
        else if (event === 'CLOSE') controller.close();
        else controller.enqueue(encoder.encode(`data: ${event === 'DONE' ? '[DONE]' : JSON.stringify(event)}\n\n`));
      },
    },
    { highWaterMark: 0 },
  );
  return new Response(body, { headers: { 'content-type': 'text/event-stream' } });
}

const anywhere = (agent: AgentDefinition): AgentDefinition => ({
  ...agent,
  imports: { ...agent.imports, tools: [...agent.imports.tools, 'pay', 'look', 'wipe'] },
});

/** A run whose generations are these answers; then the model only answers. */
async function runOf(
  ...answers: readonly (readonly Event[])[]
): Promise<{ ran: string[]; result: RunResult; kit: SessionKit }> {
  let asked = 0;
  const provider = createOpenAiProvider({
    baseUrl: 'http://127.0.0.1/v1',
    apiKey: null,
    defaultModel: 'm',
    clock: new VirtualClock(),
    random: () => 0,
    fetch: async () => answer(answers[asked++] ?? ANSWER),
  });
  const ran: string[] = [];
  const kit = await sessionKit({
    agent: anywhere,
    tools: [PAY, LOOK, WIPE],
    executors: {
      tool: async ({ action }): Promise<ActionOutcome> => {
        ran.push(`${action.name} ${JSON.stringify(action.parameters)}`);
        return { ok: true, output: null };
      },
    },
    stream: (request) => provider.stream(request),
  });
  const result = await say(kit, 'go');
  return { ran, result, kit };
}

const A = '{"to": "A"}';
const WIPED = '<action name="wipe" id="w">{"to":"A"}</action>';

describe('[N4] an unsafe tool takes effect once', () => {
  test.each<[form: string, last: object]>([
    ['a new id', calls(A, 'tool_calls', { id: 'call_2' })],
    [
      'a message',
      {
        choices: [
          {
            index: 0,
            message: { tool_calls: [{ id: 'call_1', function: { name: 'pay', arguments: A } }] },
            finish_reason: 'tool_calls',
          },
        ],
      },
    ],
  ])('if the last chunk has its call again: %s', async (_form, last) => {
    const { ran, result, kit } = await runOf([calls(A), last, 'DONE']);
    expect(ran).toEqual(['pay {"to":"A"}']);
    expect(result).toMatchObject({ status: 'completed', response: 'done', warnings: [{ code: 'duplicate_action' }] });
    // The conversation has one call, with one result.
    expect(kit.requests[1]?.messages.at(-2)?.toolCalls).toMatchObject([{ id: 'call_1', name: 'pay' }]);
  });

  test('it starts with the next call, a block of text, or the end; a safe one starts at once, whatever dispatch says', async () => {
    for (const [next, confirms] of [
      [call('pay', '', 'p2', 1), true],
      [call('look', A, 'l2', 1), true],
      [text('<thought>'), true],
      [text('So.'), true],
      [text('\n'), false],
      [{ type: 'reasoning', text: 'hm' } as ModelDelta, false],
    ] as const) {
      const ran: string[] = [];
      const gate = Promise.withResolvers<void>();
      const kit = await sessionKit({
        agent: anywhere,
        tools: [PAY, LOOK],
        executors: {
          tool: async ({ action }): Promise<ActionOutcome> => {
            ran.push(action.id);
            return { ok: true, output: null };
          },
        },
        stream: async function* () {
          yield call('look', A, 'l', 5);
          yield call('pay', A, 'p');
          await settle();
          expect(ran).toEqual(['l']);
          yield next;
          await gate.promise;
          yield finish();
        },
      });
      void say(kit, 'go');
      await settle();
      await settle();
      expect(ran.includes('p'), JSON.stringify(next)).toBe(confirms);
      gate.resolve();
      await settle();
      await settle();
      expect(ran.filter((id) => id === 'p')).toEqual(['p']);
      await kit.session.cancel('enough');
    }
  });
});

describe('[N1] nothing that waits for the end of the generation starts', () => {
  const waiting = [calls(A), says('')];

  test.each<[end: string, events: readonly Event[], warning: string | null]>([
    ['an unknown reason', [chunk({}, 'abort'), 'DONE'], 'unknown_finish_reason'],
    ['the filter', [chunk({}, 'sensitive'), 'DONE'], null],
    ['the limit, then stop', [chunk({}, 'length'), chunk({}, 'stop'), 'DONE'], null],
    ['a destroyed connection', ['DESTROY'], null],
  ])('after %s', async (_end, events, warning) => {
    const native = await runOf([...waiting, ...events]);
    expect(native.ran).toEqual([]);
    expect(native.result.actions).toMatchObject([{ id: 'call_1', status: 'rejected', error: { code: 'unclosed' } }]);
    const codes = native.result.warnings.map(({ code }) => code);
    expect(codes.filter((code) => code !== 'generation_cut')).toEqual(warning === null ? [] : [warning]);

    // [S14] An action in text whose tool waits for the end.
    const held = await runOf([says(WIPED), ...events]);
    expect(held.ran).toEqual([]);
    expect(held.result.actions).toMatchObject([{ id: 'w', status: 'cancelled' }]);
  });

  test('the run fails after two such generations, and the warnings name the reason', async () => {
    const cut = [says('<thought>I was about to'), chunk({}, 'insufficient_system_resource'), 'DONE'] as const;
    const { result } = await runOf(cut, cut);
    expect(result).toMatchObject({ status: 'failed', error: { code: 'generation_error' } });
    const told = result.warnings.filter(({ code }) => code === 'unknown_finish_reason');
    expect(told).toHaveLength(2);
    expect(told[0]?.message).toContain('"insufficient_system_resource"');
  });
});

test.each([
  ['that waits does not start', [call('pay', A, 'p')], []],
  ['that was confirmed has started once', [call('pay', A, 'p'), call('look', '', 'l', 1)], ['p']],
  [
    'of 250,000 characters is read from its pieces',
    [call('pay', JSON.stringify({ to: 'x'.repeat(250_000) }), 'p'), call('look', '', 'l', 1)],
    ['p'],
  ],
] as const)('[N4] [J2] after a restart, an unsafe call %s', async (_what, deltas, started) => {
  let asked = 0;
  const scene = new HostScene({
    agent: anywhere,
    tools: [PAY, LOOK],
    stream: async function* () {
      asked += 1;
      if (asked > 1) {
        yield text('<response final="true">done</response>');
        return yield finish('stop');
      }
      yield* deltas;
      await new Promise(() => undefined);
    },
  });
  scene.ends.push({ ok: true, output: null });
  const first = await scene.start();
  await send(first, 'go');
  await settle();
  expect(scene.calls.map(({ action }) => action.id)).toEqual(started);
  const next = await scene.start();
  await settle();
  expect(scene.calls.map(({ action }) => action.id)).toEqual(started);
  const [run] = next.session.runs();
  expect(run?.status).toBe('completed');
  expect(asked).toBe(2);
});
