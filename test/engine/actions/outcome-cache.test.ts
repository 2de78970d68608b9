import { describe, expect, test } from 'vitest';
import type { ActionOutcome } from '../../../src/domain/action.ts';
import type { ActionCall } from '../../../src/executors/executor.ts';
import { OutcomeCache } from '../../../src/engine/actions/outcome-cache.ts';
import type { LookupResult, ResolvedAction } from '../../../src/engine/actions/outcome-cache.ts';
import { cacheTtlOf } from '../../../src/engine/actions/action-policy.ts';
import { Journal } from '../../../src/journal/journal.ts';
import type { SessionKit } from '../../support/session-kit.ts';
import { runText, sessionKit, settle } from '../../support/session-kit.ts';
import { eventsOf } from '../../support/events.ts';
import { eventually } from '../../support/eventually.ts';

const act = (id: string, parameters: object = {}, more: object = {}): string =>
  `<action type="tool" mode="async" id="${id}">${JSON.stringify({ name: 'echo', parameters, ...more })}</action>`;

/** A session whose tools count their executions; `run` returns the outcome. */
async function counting(
  run: (call: ActionCall, count: number) => Promise<ActionOutcome> | ActionOutcome = (_call, count) => ({
    ok: true,
    output: `run ${count}`,
  }),
): Promise<{ readonly kit: SessionKit; readonly ran: string[] }> {
  const ran: string[] = [];
  const kit = await sessionKit({
    executors: {
      tool: async (call) => {
        ran.push(call.action.id);
        return await run(call, ran.length);
      },
    },
  });
  return { kit, ran };
}

/** Runs until `done`: digests are computed by other threads, at any time. */
async function until(done: () => boolean): Promise<void> {
  await eventually(() => expect(done()).toBe(true));
}

const outputs = (result: Awaited<ReturnType<typeof runText>>): unknown[] => result.actions.map(({ output }) => output);

describe('[P6] cache_ttl', () => {
  test('an equal action completes at once, without an attempt', async () => {
    const { kit, ran } = await counting();
    const cached = { cache_ttl: 60 };
    await runText(kit, act('a', { x: 1, y: [{ p: 1, q: 2 }] }, cached));
    const second = await runText(kit, act('b', { y: [{ q: 2, p: 1 }], x: 1 }, cached));
    expect(ran).toEqual(['a']);
    expect(second.actions).toMatchObject([{ status: 'completed', output: 'run 1', attempts: 0, started_at: null }]);
    const about = kit.events.filter((event) => event.action_id === 'b');
    expect(about.map(({ type }) => type)).toEqual(['action_queued', 'action_completed']);
    expect(about.at(-1)?.data).toEqual({ output: 'run 1', ms: 0, attempt: 0, cached: true });
  });

  const misses: readonly (readonly [title: string, second: string, afterMs: number])[] = [
    ['other parameters', act('b', { x: 2 }, { cache_ttl: 60 }), 0],
    ['another name', act('b', { x: 1 }, { cache_ttl: 60 }).replace('"echo"', '"calculator"'), 0],
    ['no cache_ttl', act('b', { x: 1 }), 0],
    ['a cache_ttl of 0', act('b', { x: 1 }, { cache_ttl: 0 }), 0],
    ['a result that has expired', act('b', { x: 1 }, { cache_ttl: 3_600 }), 60_000],
    ['a result older than the action’s own cache_ttl', act('b', { x: 1 }, { cache_ttl: 5 }), 5_000],
  ];
  test.each(misses)('an action with %s runs', async (_title, second, afterMs) => {
    const { kit, ran } = await counting();
    await runText(kit, act('a', { x: 1 }, { cache_ttl: 60 }));
    kit.clock.advance(afterMs);
    const result = await runText(
      kit,
      second.replace('"calculator","parameters":{"x":1}', '"calculator","parameters":{"expression":"1"}'),
    );
    expect(ran).toEqual(['a', 'b']);
    expect(result.actions[0]?.attempts).toBe(1);
  });

  test.each([
    ['pure', 60_000, null, 60_000],
    ['pure', null, 30_000, 30_000],
    ['pure', 60_000, 30_000, 60_000],
    ['pure', 0, 30_000, null],
    ['pure', null, null, null],
    ['idempotent', 60_000, 30_000, null],
    ['unsafe', 60_000, 30_000, null],
  ] as const)('%s, cache_ttl of the action %s ms and of the tool %s: %s', (effects, own, tools, expected) => {
    const tool = { cacheTtlMs: tools } as Parameters<typeof cacheTtlOf>[2];
    expect(cacheTtlOf({ cacheTtlMs: own }, effects, tool)).toBe(expected);
  });

  test('references are resolved before the comparison', async () => {
    const { kit, ran } = await counting((call) => ({ ok: true, output: call.parameters['v'] ?? 'none' }));
    const cached = { cache_ttl: 60 };
    const text = `${act('one', { v: 7 })}${act('two', { v: 7 })}${act('a', { v: '$one' }, cached)}`;
    await runText(kit, text);
    const result = await runText(
      kit,
      `${act('p', { v: 7 })}${act('b', { v: '$p' }, cached)}${act('q', { v: 8 })}${act('c', { v: '$q' }, cached)}`,
    );
    expect(ran).toEqual(['one', 'two', 'a', 'p', 'q', 'c']);
    expect(outputs(result)).toEqual([7, 7, 8, 8]);
  });

  test('a hit needs no slot and completes while every slot is in use', async () => {
    const never = new Promise<ActionOutcome>(() => undefined);
    const { kit } = await counting((call) => (call.action.id.startsWith('busy') ? never : { ok: true, output: 1 }));
    await runText(kit, act('a', { x: 1 }, { cache_ttl: 60 }));
    const busy = Array.from({ length: 5 }, (_, at) => act(`busy${at}`)).join('');
    void runText(kit, `${busy}${act('b', { x: 1 }, { cache_ttl: 60 })}`);
    await until(() => eventsOf(kit.events, 'action_completed').some(({ data }) => data.cached === true));
    expect(kit.events.findLast(({ type }) => type === 'action_completed')?.action_id).toBe('b');
    await kit.session.cancel('enough');
  });

  test('equal concurrent actions run once', async () => {
    const release = Promise.withResolvers<ActionOutcome>();
    const { kit, ran } = await counting(() => release.promise);
    const running = runText(kit, ['a', 'b', 'c'].map((id) => act(id, { x: 1 }, { cache_ttl: 60 })).join(''));
    await until(() => ran.length > 0);
    release.resolve({ ok: true, output: 'shared' });
    expect(outputs(await running)).toEqual(['shared', 'shared', 'shared']);
    expect(ran).toEqual(['a']);
  });

  test('if the first one fails, the next one runs; a cancelled one is not waited for', async () => {
    const { kit, ran } = await counting((call) =>
      call.action.id === 'a'
        ? { ok: false, error: { code: 'boom', message: 'no', retryable: false } }
        : { ok: true, output: call.action.id },
    );
    const result = await runText(kit, ['a', 'b', 'c'].map((id) => act(id, { x: 1 }, { cache_ttl: 60 })).join(''));
    expect(ran).toEqual(['a', 'b']);
    expect(result.actions.map(({ status }) => status)).toEqual(['failed', 'completed', 'completed']);

    const hanging = await counting(() => new Promise<ActionOutcome>(() => undefined));
    void runText(hanging.kit, act('a', { x: 1 }, { cache_ttl: 60 }) + act('b', { x: 1 }, { cache_ttl: 60 }));
    await until(() => hanging.ran.length === 1);
    await hanging.kit.session.cancel('stop');
    void runText(hanging.kit, act('c', { x: 1 }, { cache_ttl: 60 }));
    await until(() => hanging.ran.length === 2);
    expect(hanging.ran).toEqual(['a', 'c']);
    await hanging.kit.session.cancel('stop');
  });

  test('calls are resolved one after the other, and not for cancelled actions', async () => {
    const { kit } = await counting();
    const earlier = new OutcomeCache(new Journal(kit.sql), kit.clock);
    const action = { id: 'a', type: 'tool', name: 'echo', idempotencyKey: null } as const;
    const log: string[] = [];
    const ask = (owner: string): Promise<void> => {
      const call = (): ReturnType<ResolvedAction['call']> => {
        log.push(`resolve ${owner}`);
        return { parameters: { owner }, inputs: {} };
      };
      return earlier.lookup(owner, { action, call, version: null, cacheTtlMs: 60_000 }, () =>
        log.push(`answer ${owner}`),
      );
    };
    const asked = ['a', 'b', 'c'].map(ask);
    expect(log).toEqual([]);
    earlier.release('b');
    await Promise.all(asked);
    expect(log).toEqual(['resolve a', 'answer a', 'resolve c', 'answer c']);
  });

  test('an action cancelled during its lookup blocks no other', async () => {
    const { kit } = await counting();
    const earlier = new OutcomeCache(new Journal(kit.sql), kit.clock);
    const action = { id: 'a', type: 'tool', name: 'echo', idempotencyKey: null } as const;
    const call = (): ReturnType<ResolvedAction['call']> => ({ parameters: { x: 1 }, inputs: {} });
    const resolved = { action, call, version: null, cacheTtlMs: 60_000 };
    const answers: [owner: string, found: LookupResult['type']][] = [];
    const ask = (owner: string): Promise<void> =>
      earlier.lookup(owner, resolved, (found) => void answers.push([owner, found.type]));
    const gone = ask('gone');
    earlier.release('gone');
    await gone;
    await ask('next');
    expect(answers).toEqual([['next', 'nothing']]);
  });

  test('failures and long results are not cached', async () => {
    const { kit, ran } = await counting((call) =>
      call.action.id === 'a'
        ? { ok: false, error: { code: 'boom', message: 'no', retryable: false } }
        : { ok: true, output: 'x'.repeat(300_000) },
    );
    for (const id of ['a', 'b', 'c']) await runText(kit, act(id, { x: 1 }, { cache_ttl: 60 }));
    expect(ran).toEqual(['a', 'b', 'c']);
  });

  test('a hit expires with the original result', async () => {
    const { kit, ran } = await counting();
    await runText(kit, act('a', {}, { cache_ttl: 60 }));
    kit.clock.advance(40_000);
    await runText(kit, act('b', {}, { cache_ttl: 60 }));
    kit.clock.advance(40_000);
    await runText(kit, act('c', {}, { cache_ttl: 60 }));
    expect(ran).toEqual(['a', 'c']);
  });
});

describe('[P6] idempotency_key', () => {
  const shell = (id: string, command: string, key = 'once'): string =>
    `<action type="shell" id="${id}">${JSON.stringify({ command, idempotency_key: key })}</action>`;

  test('the same key reuses the outcome of the completed action, for any effects', async () => {
    const ran: string[] = [];
    const options = {
      executors: {
        shell: async (call: ActionCall): Promise<ActionOutcome> => {
          ran.push(call.action.id);
          return { ok: true, output: `sent by ${call.action.id}` };
        },
      },
    };
    const kit = await sessionKit(options);
    await runText(kit, shell('a', 'send'));
    kit.clock.advance(86_400_000);
    expect(outputs(await runText(kit, shell('b', 'send')))).toEqual(['sent by a']);
    const next = await sessionKit({ ...options, sql: kit.sql });
    expect(outputs(await runText(next, shell('c', 'send')))).toEqual(['sent by a']);
    expect(outputs(await runText(next, shell('d', 'send', 'other')))).toEqual(['sent by d']);
    expect(ran).toEqual(['a', 'd']);
  });

  test('the key is refused with other parameters, or for another action', async () => {
    const { kit, ran } = await counting();
    await runText(kit, act('a', { to: 'x' }, { idempotency_key: 'k' }));
    const result = await runText(
      kit,
      `${act('b', { to: 'y' }, { idempotency_key: 'k' })}${act('c', {}, { depends_on: ['b'] })}`,
    );
    expect(result.actions).toMatchObject([
      { status: 'failed', attempts: 0, error: { code: 'idempotency_mismatch', retryable: false } },
      { status: 'skipped' },
    ]);
    expect(ran).toEqual(['a']);
  });

  test('a failed action does not use up the key', async () => {
    const { kit, ran } = await counting((_call, count) =>
      count === 1
        ? { ok: false, error: { code: 'boom', message: 'no', retryable: false } }
        : { ok: true, output: count },
    );
    await runText(kit, act('a', {}, { idempotency_key: 'k', retry: 1 }));
    expect(outputs(await runText(kit, act('b', {}, { idempotency_key: 'k' })))).toEqual([2]);
    expect(ran).toEqual(['a', 'b']);
  });

  test('the second action waits while the first one runs, including from a later run', async () => {
    const release = Promise.withResolvers<ActionOutcome>();
    const { kit, ran } = await counting(() => release.promise);
    await runText(kit, act('a', {}, { idempotency_key: 'k' }).replace('"async"', '"fire_and_forget"'));
    const second = runText(kit, act('b', {}, { idempotency_key: 'k' }));
    await until(() => kit.events.some((event) => event.action_id === 'b' && event.type === 'action_queued'));
    await settle();
    release.resolve({ ok: true, output: 'once' });
    expect(outputs(await second)).toEqual(['once']);
    expect(ran).toEqual(['a']);
  });
});
