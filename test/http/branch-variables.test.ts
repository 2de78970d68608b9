/** The variables of branches while actions of other runs go on in the background (C4). */
import { expect, test } from 'vitest';
import { sessionKit, say, settle, variablesOf } from '../support/session-kit.ts';
import type { KitOptions, SessionKit } from '../support/session-kit.ts';

const answer = (text: string): string => `<response final="true">${text}</response>`;
const setVariable = (value: unknown, mode = 'async'): string =>
  `<action type="internal" mode="${mode}" id="set">${JSON.stringify({ name: 'set_variable', parameters: { key: 'n', value } })}</action>`;
/** The tool waits for the test and has the only slot; then the variable is set. */
const LATE =
  `<action type="tool" mode="fire_and_forget" id="slow">{"name":"echo","parameters":{}}</action>` +
  setVariable('late', 'fire_and_forget');
const agent: NonNullable<KitOptions['agent']> = (made) => ({ ...made, loop: { ...made.loop, maxParallelActions: 1 } });

interface Late {
  readonly kit: SessionKit;
  /** Ends the tool. */
  readonly finish: () => Promise<void>;
}

async function late(script: readonly string[]): Promise<Late> {
  const gate = Promise.withResolvers<void>();
  const tool = async (): Promise<{ ok: true; output: string }> =>
    await gate.promise.then(() => ({ ok: true, output: 'done' }));
  const kit = await sessionKit({ agent, executors: { tool }, script: [LATE + answer('1'), ...script] });
  await say(kit, 'a');
  const finish = async (): Promise<void> => {
    gate.resolve();
    await settle();
    await settle();
  };
  return { kit, finish };
}

async function retry({ session }: SessionKit, run: number): Promise<void> {
  const [of] = session.runs(1, run + 1);
  if (of === undefined) throw new Error(`run ${run} does not exist`);
  const message = session.branches.messageOf(of);
  const { run: again } = await session.message({ ...message, ifBusy: 'queue', tokens: false, idempotencyKey: null });
  await session.ended(again);
}

test('[C4] what a background action of an earlier run sets is kept after a retry of a later one', async () => {
  const { kit, finish } = await late([answer('2'), answer('3'), answer('it is $n')]);
  await say(kit, 'b');
  await retry(kit, 2);
  await finish();
  expect(await variablesOf(kit.session)).toEqual({ n: 'late' });
  expect((await say(kit, 'c')).response).toBe('it is late');
});

test('[C4] what a background action of another branch sets counts when that branch continues', async () => {
  const { kit, finish } = await late([answer('2'), answer('it is $n'), answer('it is $n')]);
  await retry(kit, 1);
  await finish();
  expect(await variablesOf(kit.session)).toEqual({});
  expect((await say(kit, 'b')).response).toBe('it is $n');
  await kit.session.branches.moveHead(kit.session.runs(1, 2)[0] as never);
  expect((await say(kit, 'c')).response).toBe('it is late');
});

test('[C4] the session comes back to a branch whose background action is still running', async () => {
  const { kit, finish } = await late([answer('2'), answer('3'), answer('it is $n')]);
  await retry(kit, 1);
  await kit.session.branches.moveHead(kit.session.runs(1, 2)[0] as never);
  await say(kit, 'b');
  await finish();
  expect(await variablesOf(kit.session)).toEqual({ n: 'late' });
  expect((await say(kit, 'c')).response).toBe('it is late');
});

test.each([
  ['another branch', true, {}],
  ['an earlier run of the branch', false, { n: 'late' }],
])(
  '[C4] after a restart, a background action of %s has the variables of its own branch',
  async (_, isOther, expected) => {
    const { kit } = await late([answer('2')]);
    if (isOther) await retry(kit, 1);
    else await say(kit, 'b');
    const executors = { tool: async () => await Promise.resolve({ ok: true as const, output: 'done' }) };
    const next = await sessionKit({ agent, sql: kit.sql, executors });
    await next.session.recover();
    await settle();
    expect(next.events.map(({ type }) => type)).toContain('variable_changed');
    expect(await variablesOf(next.session)).toEqual(expected);
  },
);

test('[C4] a run that could not begin changes no variables', async () => {
  let isGone = false;
  const kit = await sessionKit({
    gone: () => isGone,
    script: [setVariable(1), answer('1'), setVariable(2), answer('2'), answer('it is $n')],
  });
  await say(kit, 'a');
  await say(kit, 'b');
  const [first, second] = kit.session.runs();
  if (first === undefined || second === undefined) throw new Error('there are two runs');
  await kit.session.branches.moveHead(first);
  isGone = true;
  expect((await say(kit, 'c')).status).toBe('failed');
  isGone = false;
  const place = kit.session.branches.after(second);
  const { run } = await kit.session.message({
    content: 'd',
    ifBusy: 'queue',
    tokens: false,
    idempotencyKey: null,
    place,
  });
  await kit.session.ended(run);
  expect(kit.session.events(0).findLast(({ type }) => type === 'agent_completed')?.data).toMatchObject({
    response: 'it is 2',
  });
});
