/** Earlier turns as values, and the action that reads them (C10, P12). */
import { describe, expect, test } from 'vitest';
import { limits } from '../../../src/domain/limits.ts';
import type { AgentDefinition } from '../../../src/domain/manifests/agent.ts';
import type { Json } from '../../../src/domain/json.ts';
import { eventsOf } from '../../support/events.ts';
import { forked } from '../../support/forked.ts';
import { runText, say, sessionKit, settle } from '../../support/session-kit.ts';
import type { KitOptions, SessionKit } from '../../support/session-kit.ts';
import { send } from '../../support/send.ts';
import { EVERY_EVENT } from '../../support/event-sql.ts';

const answer = (text: string): string => `<response final="true">${text}</response>`;
const action = (type: string, id: string, name: string, parameters: object, more: object = {}): string =>
  `<action type="${type}" mode="async" id="${id}">${JSON.stringify({ name, parameters, ...more })}</action>`;
const recall = (parameters: object): string => action('internal', 'r', 'recall', parameters);
const withMemory = (agent: AgentDefinition): AgentDefinition => ({
  ...agent,
  memory: { maxTurns: 2, summarizeAfter: null },
});
const outputOf = (kit: SessionKit, id: string): Json | undefined =>
  eventsOf(kit.events, 'action_completed').findLast((event) => event.action_id === id)?.data.output;
const opened = (options: KitOptions): Promise<SessionKit> => sessionKit({ agent: withMemory, ...options });

describe('[C10] [P12] an earlier turn is a value', () => {
  test('with the message and the answer as the user read it, by its position', async () => {
    const kit = await opened({
      script: [
        action('tool', 'x', 'echo', { value: 'blue' }) + answer('It is $x.value.'),
        answer('second'),
        recall({ turns: ['$turn_1', '$turn_2', '$turn_2.answer'] }),
        answer('the first was: $turn_1.answer'),
      ],
    });
    await say(kit, 'which color?');
    await say(kit, 'and then?');
    const { response } = await say(kit, 'read it');
    const first = { user: 'which color?', answer: expect.stringContaining('blue') as string };
    expect(outputOf(kit, 'r')).toEqual({
      turns: [first, { user: 'and then?', answer: 'second' }, 'second'],
    });
    expect(response).toMatch(/^the first was: It is .*blue/);
  });

  test('only if it precedes the run: the turn itself and later ones are unknown', async () => {
    const kit = await opened({
      script: [answer('one'), recall({ turns: ['$turn_1.user', '$turn_2'] }), answer('done')],
    });
    await say(kit, 'a');
    await say(kit, 'b');
    expect(outputOf(kit, 'r')).toEqual({ turns: ['a', '$turn_2'] });
  });

  test('a variable, a result and an action of that name win', async () => {
    const kit = await opened({
      variables: { turn_1: 'a variable' },
      script: [
        action('tool', 'turn_2', 'echo', { value: 'a result' }) + answer('one'),
        answer('two'),
        answer('three'),
        action('tool', 'turn_3', 'echo', { value: 'an action' }) +
          recall({ values: ['$turn_1', '$turn_2.value', '$turn_3.value'] }),
        answer('done'),
      ],
    });
    for (const message of ['a', 'b', 'c', 'd']) await say(kit, message);
    expect(outputOf(kit, 'r')).toEqual({ values: ['a variable', 'a result', 'an action'] });
  });

  test('[C1] turns of a seeded history come first', async () => {
    const kit = await opened({
      history: [
        { role: 'user', content: 'before' },
        { role: 'assistant', content: 'then' },
      ],
      script: [answer('one'), recall({ turns: ['$turn_1', '$turn_2'] }), answer('done')],
    });
    await say(kit, 'a');
    await say(kit, 'b');
    expect(outputOf(kit, 'r')).toEqual({
      turns: [
        { user: 'before', answer: 'then' },
        { user: 'a', answer: 'one' },
      ],
    });
  });

  test('[C4] positions are those of the branch; programs are no turns', async () => {
    const kit = await opened({
      script: [
        answer('one'),
        answer('two'),
        answer('two again'),
        recall({ turns: ['$turn_1', '$turn_2'] }),
        answer('x'),
      ],
    });
    await say(kit, 'a');
    await runText(kit, action('tool', 'p', 'echo', { value: 1 }));
    await say(kit, 'b');
    const run = await send(kit, 'b2', { place: { parent: 2, retryOf: 3 } });
    await kit.session.ended(run.run);
    await say(kit, 'c');
    const turns = [
      { user: 'a', answer: 'one' },
      { user: 'b2', answer: 'two again' },
    ];
    expect(outputOf(kit, 'r')).toEqual({ turns });
    const fork = await opened({
      sql: await forked(kit.session, 5),
      script: [recall({ turns: ['$turn_1', '$turn_2'] }), answer('x')],
    });
    await say(fork, 'd');
    expect(outputOf(fork, 'r')).toEqual({ turns });
  });

  test('a long text is cut with a marker', async () => {
    const kit = await opened({ script: [answer('one'), recall({ turns: ['$turn_1'] }), answer('done')] });
    await say(kit, 'x'.repeat(limits.turnValueChars + 10));
    await say(kit, 'b');
    const text = JSON.stringify(outputOf(kit, 'r'));
    expect(text).toContain(`[cut after ${limits.turnValueChars} of ${limits.turnValueChars + 10} characters]`);
  });

  test('[J2] is recorded by its position with the first attempt, and is the same after a crash', async () => {
    const gate = Promise.withResolvers<void>();
    const script = [answer('one'), action('tool', 'e', 'echo', { value: '$turn_1' }) + answer('$e.value.user')];
    const kit = await opened({
      script,
      executors: { tool: async () => await gate.promise.then(() => ({ ok: true, output: null })) },
    });
    await say(kit, 'a');
    void send(kit, 'b');
    await settle();
    const states = kit.sql
      .exec(`SELECT state FROM ${EVERY_EVENT} WHERE type = 'action_started'`)
      .map(({ state }) => String(state));
    expect(JSON.parse(states[0] ?? '{}')).toMatchObject({ names: { turn_1: { turn: 1 } } });
    const calls: unknown[] = [];
    const next = await opened({
      sql: kit.sql,
      executors: {
        tool: async ({ parameters }) => {
          calls.push(parameters);
          return { ok: true, output: parameters };
        },
      },
    });
    await next.session.recover();
    await next.session.ended(2);
    expect(calls).toEqual([{ value: { user: 'a', answer: 'one' } }]);
    gate.resolve();
  });
});

describe('[C10] recall', () => {
  const failed = (kit: SessionKit): { code: string; message: string } | undefined =>
    eventsOf(kit.events, 'action_failed').at(-1)?.data.error;

  test('is not available if prompts have all turns', async () => {
    const kit = await sessionKit({ script: [recall({ turns: [] }), answer('x')] });
    await say(kit, 'a');
    expect(failed(kit)).toMatchObject({ code: 'not_allowed', message: expect.stringContaining('all turns') as string });
  });

  test.each([
    ['internal actions are disabled', { enabled: false, allowed: null, blocked: [] }, true],
    ['it is not in the list of allowed actions', { enabled: true, allowed: ['set_variable'], blocked: [] }, true],
    ['it is blocked', { enabled: true, allowed: null, blocked: ['recall'] }, false],
  ])('with a limit of turns, if %s', async (_, internalActions, isAllowed) => {
    const kit = await sessionKit({
      agent: (agent) => ({ ...withMemory(agent), internalActions }),
      script: [answer('1'), answer('2'), answer('3'), recall({ turns: ['$turn_1.answer'] }), answer('x')],
    });
    for (const message of ['a', 'b', 'c', 'd']) await say(kit, message);
    expect(outputOf(kit, 'r')).toEqual(isAllowed ? { turns: ['1'] } : undefined);
    const shown = JSON.stringify(kit.requests[3]?.messages);
    expect(shown.includes('recall')).toBe(isAllowed);
  });

  test('needs something to return', async () => {
    const kit = await opened({ script: [recall({}), answer('x')] });
    await say(kit, 'a');
    expect(failed(kit)).toMatchObject({ code: 'invalid_parameters' });
  });
});
