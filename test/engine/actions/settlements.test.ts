/** The first and the last event of an action (S10). */
import { describe, expect, test } from 'vitest';
import { noteOf } from '../../../src/engine/actions/settlements.ts';
import type { ActionOutcome } from '../../../src/domain/action.ts';
import type { SessionEvent } from '../../../src/domain/event.ts';
import { eventsOf } from '../../support/events.ts';
import { runText, say, sessionKit, settle } from '../../support/session-kit.ts';
import type { SessionKit } from '../../support/session-kit.ts';

const act = (id: string, fields: object = {}): string =>
  `<action type="tool" mode="async" id="${id}">${JSON.stringify({ name: 'echo', parameters: { n: 1 }, ...fields })}</action>`;

/** The last event of an action, without what every event has. */
function lastOf(kit: SessionKit, id: string): Pick<SessionEvent, 'type' | 'data'> | null {
  const event = kit.events.findLast(({ action_id: about }) => about === id);
  return event === undefined ? null : { type: event.type, data: event.data };
}

describe('[S10] an action ends', () => {
  test('completed, with its output, its duration over all attempts, and its last attempt', async () => {
    const kit = await sessionKit();
    const running = runText(
      kit,
      act('a', { parameters: { fail_times: 1, n: 1 }, retry: { max_attempts: 2, delay: 2, backoff: 'none' } }),
    );
    await settle();
    kit.clock.advance(2_000);
    await running;
    expect(lastOf(kit, 'a')).toEqual({
      type: 'action_completed',
      data: { output: expect.objectContaining({ n: 1 }) as object, ms: 2_000, attempt: 2 },
    });
  });

  test('failed: with the duration of what started, and without one if nothing did', async () => {
    const gate = Promise.withResolvers<ActionOutcome>();
    const kit = await sessionKit({ executors: { tool: async () => await gate.promise } });
    const running = runText(kit, act('a', { retry: 1 }), act('b', { when: '1 + "x" == 2' }));
    await settle();
    kit.clock.advance(400);
    gate.resolve({ ok: false, error: { code: 'boom', message: 'it broke', retryable: false } });
    await running;
    expect(lastOf(kit, 'a')).toStrictEqual({
      type: 'action_failed',
      data: { error: { code: 'boom', message: 'it broke', retryable: false }, attempt: 1, ms: 400 },
    });
    expect(lastOf(kit, 'b')?.type).toBe('action_failed');
    expect(lastOf(kit, 'b')?.data).not.toHaveProperty('ms');
  });

  test('skipped, with the dependency or without one', async () => {
    const kit = await sessionKit();
    await runText(
      kit,
      act('a', { parameters: { fail_times: 9 }, retry: 1 }),
      act('b', { depends_on: ['a'] }),
      act('c', { when: '1 == 2' }),
    );
    expect(lastOf(kit, 'b')).toEqual({ type: 'action_skipped', data: { reason: 'dependency', because: 'a' } });
    expect(lastOf(kit, 'c')).toEqual({ type: 'action_skipped', data: { reason: 'condition', because: null } });
  });

  test('cancelled, with the reason', async () => {
    const kit = await sessionKit({ executors: { tool: () => new Promise(() => undefined) } });
    void runText(kit, act('a'));
    await settle();
    await kit.session.cancel('enough');
    expect(lastOf(kit, 'a')).toEqual({ type: 'action_cancelled', data: { reason: 'enough' } });
  });

  test('rejected: by the parser with the place in the text, by the policy without one', async () => {
    const kit = await sessionKit();
    await runText(kit, `${act('a', { name: 'nosuchtool' })}\n<action type="tool" mode="sync" id="b">{broken</action>`);
    expect(lastOf(kit, 'a')).toStrictEqual({
      type: 'action_rejected',
      data: {
        code: 'unknown_name',
        message: expect.stringContaining('No tool is called "nosuchtool"') as string,
        type: 'tool',
        mode: 'async',
        parameters: { n: 1 },
      },
    });
    expect(lastOf(kit, 'b')).toMatchObject({
      type: 'action_rejected',
      data: { code: 'invalid_json', type: 'tool', mode: 'sync', line: 2, column: expect.any(Number) as number },
    });
    expect(lastOf(kit, 'b')?.data).toHaveProperty('excerpt');
  });

  test.each([
    [{ status: 'completed' }, null],
    [{ status: 'failed', error: { code: 'boom', message: 'it broke', retryable: false } }, 'boom: it broke'],
    [{ status: 'skipped', reason: 'dependency', because: 'a' }, 'dependency: a'],
    [{ status: 'skipped', reason: 'condition', because: null }, 'condition'],
    [{ status: 'cancelled', reason: 'enough' }, 'enough'],
    [{ status: 'rejected', code: 'unknown_name', message: 'no such tool' }, 'unknown_name: no such tool'],
  ] as const)('with a line for the model: %o', (settlement, note) => {
    expect(noteOf(settlement)).toBe(note);
  });
});

describe('[S10] an action is accepted', () => {
  test('with what it declares and what it waits for', async () => {
    const kit = await sessionKit();
    await runText(
      kit,
      act('a', { output_key: 'out' }),
      `<thought>so ${act('b', { parameters: { v: '$a' } })}</thought>`,
      `<action type="tool" mode="sync" id="c">{name: 'echo', parameters: {}}</action>`,
    );
    const queued = eventsOf(kit.events, 'action_queued').map(({ action_id: id, data }) => [id, data]);
    const plain = { type: 'tool', mode: 'async', output_key: null };
    expect(queued).toStrictEqual([
      ['a', { ...plain, depends_on: [], output_key: 'out', parameters: { n: 1 } }],
      ['b', { ...plain, depends_on: ['a'], parameters: { v: '$a' }, embedded_in_thought: true }],
      ['c', { ...plain, mode: 'sync', depends_on: [], parameters: {}, repaired: true }],
    ]);
  });

  test.each([
    ['a cache_ttl that has no effect', 'python', { code: '1', cache_ttl: 60 }, 1],
    ['a cache_ttl of 0', 'python', { code: '1', cache_ttl: 0 }, 0],
    ['no cache_ttl', 'python', { code: '1' }, 0],
    ['a cache_ttl of a pure tool', 'tool', { name: 'echo', parameters: {}, cache_ttl: 60 }, 0],
  ])('[P6] with a warning about %s only', async (_name, type, body, count) => {
    const kit = await sessionKit({ executors: { python: async () => ({ ok: true, output: 1 }) } });
    await runText(kit, `<action type="${type}" mode="async" id="a">${JSON.stringify(body)}</action>`);
    const message = 'Action "a" has a cache_ttl, but python "python" is not pure: it runs every time';
    const warnings = eventsOf(kit.events, 'warning').map(({ action_id: id, data }) => ({ id, ...data }));
    expect(warnings).toEqual(Array.from({ length: count }, () => ({ id: 'a', code: 'cache_ignored', message })));
  });
});

test('[S4] the result of a fire_and_forget action is not shown to the model', async () => {
  const kit = await sessionKit({
    script: [`${act('a').replace('"async"', '"fire_and_forget"')}${act('b')}`, '<response final="true">ok</response>'],
  });
  await say(kit, 'go');
  const told = kit.requests[1]?.messages.at(-1)?.content;
  expect(told).toContain('id="b"');
  expect(told).not.toContain('id="a"');
});
