import { describe, expect, test } from 'vitest';
import type { ActionOutcome } from '../../../src/domain/action.ts';
import type { AgentDefinition, ProtocolOptions } from '../../../src/domain/manifests/agent.ts';
import type { ModelDelta } from '../../../src/domain/ports/model.ts';
import { say, sessionKit, settle } from '../../support/session-kit.ts';
import { membersOf } from '../../support/events.ts';
import { call, finish, text } from './deltas.ts';

const speaking =
  (protocol: Partial<ProtocolOptions>) =>
  (agent: AgentDefinition): AgentDefinition => ({ ...agent, protocol: { ...agent.protocol, ...protocol } });

describe('[P17] a model that calls functions natively', () => {
  test('gets tool messages with the results of its calls, and its text is the answer', async () => {
    const kit = await sessionKit({
      agent: speaking({ dialect: 'tool_calls' }),
      script: [
        [
          text('Let me look.'),
          call('echo', '{"found"', 'call_a'),
          { type: 'tool_call', index: 0, id: null, name: null, argumentsDelta: ':42}' },
          { ...call('calculator', '{"expression":"6*7"}', 'call_b', 1), extra: { signature: 's' } } as ModelDelta,
          finish(),
        ],
        [text('It is 42.'), finish('stop')],
      ],
    });
    const result = await say(kit, 'look');
    expect(result).toMatchObject({ status: 'completed', response: 'It is 42.', iterations: 2, warnings: [] });
    expect(result.actions).toMatchObject([
      { id: 'call_a', name: 'echo', type: 'tool', mode: 'async', status: 'completed', output: { found: 42 } },
      { id: 'call_b', name: 'calculator', status: 'completed' },
    ]);
    const messages = kit.requests[1]?.messages ?? [];
    expect(messages.map(({ role }) => role)).toEqual(['system', 'user', 'assistant', 'tool', 'tool']);
    expect(messages[2]).toEqual({
      role: 'assistant',
      content: 'Let me look.',
      toolCalls: [
        { id: 'call_a', name: 'echo', arguments: '{"found":42}' },
        { id: 'call_b', name: 'calculator', arguments: '{"expression":"6*7"}', extra: { signature: 's' } },
      ],
    });
    expect(messages[3]).toEqual({ role: 'tool', toolCallId: 'call_a', content: '{"found":42}' });
    // The journal preserves all parts of the calls.
    await say(kit, 'and now?');
    expect(kit.requests[2]?.messages.slice(0, 5)).toEqual(messages);
    expect(kit.requests[2]?.messages.slice(5)).toEqual([
      { role: 'assistant', content: 'It is 42.' },
      { role: 'user', content: 'and now?' },
    ]);
  });

  test('[L5] the result of a background action that ends later is not that of the call in its position', async () => {
    const called = Promise.withResolvers<void>();
    const ended = Promise.withResolvers<void>();
    const kit = await sessionKit({
      executors: {
        tool: async ({ action }): Promise<ActionOutcome> => {
          if (action.id === 'background') await called.promise;
          else {
            called.resolve();
            await ended.promise;
          }
          return { ok: true, output: `of ${action.id}` };
        },
      },
      script: [
        '<action type="tool" mode="fire_and_forget" id="background">{"name":"echo"}</action>',
        [call('echo', '{}', 'call_a'), finish()],
        '<response final="true">done</response>',
      ],
    });
    kit.session.listen((batch) => {
      if (batch?.some(({ type }) => type === 'action_completed') === true) ended.resolve();
    });
    await say(kit, 'go');
    await say(kit, 'and now?');
    const answers = kit.requests[3]?.messages.filter(({ role }) => role === 'tool');
    expect(answers).toEqual([{ role: 'tool', toolCallId: 'call_a', content: 'of call_a' }]);
  });

  test('a call starts while the model is still streaming', async () => {
    const started: string[] = [];
    const gate = Promise.withResolvers<void>();
    const kit = await sessionKit({
      agent: speaking({ dialect: 'tool_calls' }),
      executors: {
        tool: async ({ action }): Promise<ActionOutcome> => {
          started.push(action.id);
          return { ok: true, output: null };
        },
      },
      stream: async function* () {
        yield call('echo', '{}', 'first');
        yield call('echo', '{"n":', 'second', 1);
        await gate.promise;
        yield { type: 'tool_call', index: 1, id: null, name: null, argumentsDelta: '1}' };
        yield finish();
      },
    });
    void say(kit, 'go');
    await settle();
    expect(started).toEqual(['first']);
    gate.resolve();
    await settle();
    expect(started.slice(0, 2)).toEqual(['first', 'second']);
    await kit.session.cancel('enough');
  });

  test('capabilities and internal actions are called by name', async () => {
    const kit = await sessionKit({
      executors: { python: async () => ({ ok: true, output: 1 }) },
      script: [
        [call('python', '{"code":"1"}', 'a'), call('set_variable', '{"key":"k","value":1}', 'b', 1), finish()],
        [text('done'), finish('stop')],
      ],
    });
    const { actions } = await say(kit, 'go');
    expect(actions.map(({ type, status }) => [type, status])).toEqual([
      ['python', 'completed'],
      ['internal', 'completed'],
    ]);
  });

  test('[P6] auto ids continue in the next generation', async () => {
    const kit = await sessionKit({
      script: [[call('echo', '{}'), finish()], [call('echo', '{}'), finish()], '<response final="true">ok</response>'],
    });
    const { actions } = await say(kit, 'go');
    expect(actions.map(({ id }) => id)).toEqual(['auto_1', 'auto_2']);
    const answers = kit.requests[2]?.messages.filter(({ role }) => role === 'tool');
    expect(answers?.map(({ toolCallId }) => toolCallId)).toEqual(['auto_1', 'auto_2']);
  });
});

describe('[P11] text in addition to calls', () => {
  test.each([
    ['a call that is accepted', call('echo', '{}', 'a'), finish(), 'completed'],
    ['a call that is rejected', call('nosuch', '{}', 'a'), finish(), 'rejected'],
    ['a call that was cut', call('echo', '{"q', 'a'), finish('length'), 'rejected'],
  ] as const)('does not count as the answer: %s', async (_name, delta, end, status) => {
    const kit = await sessionKit({
      agent: speaking({ dialect: 'tool_calls' }),
      script: [
        [text('One moment.'), delta, end],
        [text('Here it is.'), finish('stop')],
      ],
    });
    const result = await say(kit, 'go');
    expect(result).toMatchObject({ status: 'completed', response: 'Here it is.', iterations: 2 });
    expect(result.actions).toMatchObject([{ status }]);
  });

  test('does not count as the answer after a rejected action in the text', async () => {
    const kit = await sessionKit({
      script: ['I will look. <action>{broken</action>', '<response final="true">Sorry.</response>'],
    });
    expect(await say(kit, 'go')).toMatchObject({ response: 'Sorry.', iterations: 2 });
  });

  test('a thought made of reasoning ends where the text begins', async () => {
    const kit = await sessionKit({
      agent: speaking({ dialect: 'tool_calls' }),
      script: [
        [
          { type: 'reasoning', text: 'hm' },
          text('Sure. '),
          { type: 'reasoning', text: 'so' },
          text('It is 4.'),
          finish('stop'),
        ],
      ],
    });
    expect((await say(kit, 'go')).response).toBe('Sure. It is 4.');
    const blocks = kit.events.filter(({ type }) => /^(thought|text)_/.test(type));
    expect(blocks.map((event) => [event.type, membersOf(event)['content'] ?? null])).toEqual([
      ['thought_started', null],
      ['thought_completed', 'hm'],
      ['text_started', null],
      ['thought_started', null],
      ['thought_completed', 'so'],
      ['text_completed', 'Sure. It is 4.'],
    ]);
  });
});

describe('[P17] dialects', () => {
  test('protocol: native calls are ignored, with one warning per generation', async () => {
    const kit = await sessionKit({
      agent: speaking({ dialect: 'protocol' }),
      script: [
        [call('echo', '{}', 'a'), call('echo', '{}', 'b', 1), text('Hello.'), finish()],
        '<response final="true">x</response>',
      ],
    });
    const result = await say(kit, 'go');
    expect(result).toMatchObject({ response: 'Hello.', actions: [] });
    expect(result.warnings.map(({ code }) => code)).toEqual(['tool_call_ignored']);
    expect(kit.requests[0]?.tools).toBeUndefined();
  });
});
