/** Attempts: what their executors get, and what becomes of their outcomes (S7, S8, J1, J2). */
import { describe, expect, test } from 'vitest';
import type { ActionOutcome } from '../../../src/domain/action.ts';
import { limits } from '../../../src/domain/limits.ts';
import type { ActionCall, ActionContext, Executor } from '../../../src/executors/executor.ts';
import { SESSION_ID } from '../../journal/journal-kit.ts';
import { toolOf } from '../../support/definitions.ts';
import { eventsOf } from '../../support/events.ts';
import { hostScene } from '../../support/host-scene.ts';
import { resultOf, runText, sessionKit, settle, variablesOf } from '../../support/session-kit.ts';
import type { SessionKit } from '../../support/session-kit.ts';
import { EVERY_EVENT } from '../../support/event-sql.ts';

const OK: ActionOutcome = { ok: true, output: 'done' };
const fail = (code: string, retryable: boolean): ActionOutcome => ({
  ok: false,
  error: { code, message: `${code} happened`, retryable },
});
const act = (id: string, more: object = {}, name = 'echo'): string =>
  `<action type="tool" mode="async" id="${id}">${JSON.stringify({ name, parameters: { n: 1 }, ...more })}</action>`;
const code = (id: string): string => `<action type="python" mode="async" id="${id}">{"code":"1"}</action>`;
const errorOf = ({ events }: Pick<SessionKit, 'events'>): unknown =>
  eventsOf(events, 'action_failed').at(-1)?.data.error;

describe('[S7] an executor', () => {
  test('gets the call, its runtime key, its limits and its definition', async () => {
    const calls: ActionCall[] = [];
    const contexts: ActionContext[] = [];
    const execute = async (call: ActionCall, context: ActionContext): Promise<ActionOutcome> => {
      calls.push(call);
      contexts.push(context);
      return calls.length === 1 ? fail('flaky', true) : OK;
    };
    const kit = await sessionKit({ executors: { tool: execute, python: execute } });
    const running = runText(kit, act('a', { timeout: 7, retry: { max_attempts: 2, delay: 1, backoff: 'none' } }));
    await settle();
    kit.clock.advance(1_000);
    await running;
    await runText(kit, code('b'));
    const [first, second, third] = calls;
    expect(first).toMatchObject({
      action: { id: 'a' },
      runtimeKey: `${SESSION_ID}/1/1/0`,
      attempt: 1,
      parameters: { n: 1 },
      inputs: {},
      tool: { name: 'echo' },
      relic: null,
      timeoutMs: 7_000,
      budget: null,
    });
    expect(second).toMatchObject({ runtimeKey: `${SESSION_ID}/1/1/0`, attempt: 2, parameters: { n: 1 } });
    expect(third).toMatchObject({
      runtimeKey: `${SESSION_ID}/2/1/0`,
      tool: null,
      timeoutMs: limits.actionTimeoutMs,
    });
    expect(contexts[0]).toMatchObject({ session: SESSION_ID, owner: null, edgeRelics: null, runner: null });
    expect(contexts[0]?.runnerNeeds).toEqual({});
    expect(eventsOf(kit.events, 'action_retrying').map(({ data }) => data)).toEqual([
      {
        attempt: 1,
        delay_ms: expect.any(Number) as number,
        error: { code: 'flaky', message: 'flaky happened', retryable: true },
      },
    ]);
  });

  test('that throws fails the action, without a retry', async () => {
    const kit = await sessionKit({
      executors: {
        tool: async () => {
          throw new TypeError('broken');
        },
      },
    });
    const result = await runText(kit, act('a'));
    expect(result.actions).toMatchObject([{ status: 'failed', attempts: 1 }]);
    expect(errorOf(kit)).toEqual({ code: 'executor_fault', message: 'broken', retryable: false });
  });

  test('[J3] of an unsafe tool starts after its start is on disk', async () => {
    const started: string[] = [];
    const tools = (['unsafe', 'idempotent'] as const).map((effects) =>
      toolOf({ type: 'builtin', entrypoint: 'echo' }, { name: effects, effects }),
    );
    const kit = await sessionKit({
      tools,
      executors: {
        tool: async ({ action }) => {
          started.push(action.name);
          return OK;
        },
      },
    });
    const gate = Promise.withResolvers<void>();
    kit.sql.onSync = async () => {
      const [row] = kit.sql.exec(`SELECT COUNT(*) AS n FROM ${EVERY_EVENT} WHERE type = 'action_started'`);
      if (Number(row?.['n']) > 0) await gate.promise;
    };
    const running = runText(kit, `${act('a', {}, 'unsafe')}${act('b', {}, 'idempotent')}`);
    await settle();
    expect(started).toEqual(['idempotent']);
    gate.resolve();
    await running;
    expect(started).toEqual(['idempotent', 'unsafe']);
  });

  test('[J4] sends progress of its own attempt only, while that runs', async () => {
    const contexts: ActionContext[] = [];
    const second = Promise.withResolvers<ActionOutcome>();
    const kit = await sessionKit({
      executors: {
        tool: async (_call, context) => {
          contexts.push(context);
          context.progress({ text: `from ${contexts.length}` });
          return contexts.length === 1 ? fail('flaky', true) : await second.promise;
        },
      },
    });
    const running = runText(kit, act('a', { retry: { max_attempts: 2, delay: 1, backoff: 'none' } }));
    await settle();
    contexts[0]?.progress({ text: 'between attempts' });
    await settle();
    kit.clock.advance(1_000);
    await settle();
    contexts[0]?.progress({ text: 'late' });
    contexts[1]?.progress({ text: 'again' });
    await settle();
    second.resolve(OK);
    await running;
    contexts[1]?.progress({ text: 'after the end' });
    await settle();
    expect(eventsOf(kit.events, 'progress').map(({ action_id: id, data }) => [id, data.text])).toEqual([
      ['a', 'from 1'],
      ['a', 'from 2'],
      ['a', 'again'],
    ]);
  });

  test.each([
    ['the run is cancelled', async ({ session }: SessionKit) => void (await session.cancel('enough')), 'enough'],
    [
      'its time is over',
      async ({ clock }: SessionKit) => {
        clock.advance(3_000);
        await settle();
      },
      'timeout',
    ],
  ])('[S8] is aborted when %s, with the reason', async (_name, end, reason) => {
    let signal: AbortSignal | null = null;
    const kit = await sessionKit({
      executors: {
        tool: async (_call, context) => {
          ({ signal } = context);
          return await new Promise(() => undefined);
        },
      },
    });
    const running = runText(kit, act('a', { timeout: 3, retry: 1 }));
    await settle();
    await end(kit);
    await running;
    expect(signal).toMatchObject({ aborted: true, reason: { name: 'AbortError', message: reason } });
  });
});

test('[J1] changes of variables are journaled; deleting a missing one is none', async () => {
  const kit = await sessionKit();
  const change = (id: string, name: string, parameters: object): string =>
    `<action type="internal" mode="sync" id="${id}">${JSON.stringify({ name, parameters })}</action>`;
  await runText(
    kit,
    change('a', 'set_variable', { key: 'k', value: { n: 1 } }),
    change('b', 'set_variable', { key: 'other', value: 2 }),
    change('c', 'delete_variable', { key: 'k' }),
    change('d', 'delete_variable', { key: 'k' }),
  );
  expect(eventsOf(kit.events, 'variable_changed').map(({ data }) => data)).toEqual([
    { key: 'k', value: { n: 1 } },
    { key: 'other', value: 2 },
    { key: 'k', deleted: true },
  ]);
  expect(await variablesOf(kit.session)).toEqual({ other: 2 });
});

type Recover = NonNullable<Executor['recover']>;

/** Runs an action on a host that is lost, then on the next one. @returns its end and the number of executions */
async function afterLoss(
  type: 'tool' | 'python',
  recover: Recover | null,
): Promise<{ readonly action: unknown; readonly error: unknown; readonly executions: number }> {
  const stage = await hostScene({ recover: recover === null ? {} : { [type]: recover } });
  await stage.run(type === 'tool' ? act('a', { retry: 1 }) : code('a'));
  stage.ends.push({ ok: true, output: 'again' });
  const { session } = await stage.start();
  const [run] = session.runs();
  if (run === undefined) throw new Error('there is no run');
  const { actions } = await resultOf(session, run);
  return { action: actions[0], error: errorOf(stage), executions: stage.calls.length };
}

describe('[J2] an attempt that was running when its host was lost', () => {
  const found =
    (outcome: ActionOutcome | null): Recover =>
    () =>
      Promise.resolve(outcome);
  const broken: Recover = () => Promise.reject(new Error('the runner does not answer'));
  const unknown = (why: string): object => ({
    code: 'outcome_unknown',
    message: `Action "a" was running when its host was restarted, and its outcome is unknown${why}. It may have taken effect: check before repeating it`,
    retryable: false,
  });

  test.each<[string, 'tool' | 'python', Recover | null, object | null, string | null, number]>([
    ['unsafe, its executor knows nothing', 'python', null, unknown(''), null, 1],
    ['unsafe, the attempt is unknown', 'python', found(null), unknown(''), null, 1],
    ['unsafe, its executor cannot be asked', 'python', broken, unknown(' (the runner does not answer)'), null, 1],
    ['unsafe, it was lost', 'python', found(fail('lost', false)), { code: 'lost' }, null, 1],
    ['unsafe, it failed', 'python', found(fail('boom', false)), { code: 'boom' }, null, 1],
    ['unsafe, it completed', 'python', found({ ok: true, output: 'found' }), null, 'found', 1],
    ['repeatable, its executor knows nothing', 'tool', null, null, 'again', 2],
    ['repeatable, the attempt is unknown', 'tool', found(null), null, 'again', 2],
    ['repeatable, its executor cannot be asked', 'tool', broken, null, 'again', 2],
    ['repeatable, it was lost', 'tool', found(fail('lost', false)), null, 'again', 2],
    ['repeatable, it failed', 'tool', found(fail('boom', false)), { code: 'boom' }, null, 1],
    ['repeatable, it completed', 'tool', found({ ok: true, output: 'found' }), null, 'found', 1],
  ])('%s', async (_name, type, recover, error, output, executions) => {
    const end = await afterLoss(type, recover);
    expect(end).toMatchObject({
      action: { status: error === null ? 'completed' : 'failed', output },
      executions,
    });
    if (error !== null) expect(end.error).toMatchObject(error);
  });
});
