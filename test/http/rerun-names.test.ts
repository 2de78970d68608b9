/** What an action that runs again gets for the names in its parameters (C4). */
import { describe, expect, test } from 'vitest';
import { forked } from '../support/forked.ts';
import { say, sessionKit } from '../support/session-kit.ts';
import type { KitOptions, SessionKit } from '../support/session-kit.ts';

const answer = (text: string): string => `<response final="true">${text}</response>`;
const echo = (id: string, value: unknown): string =>
  `<action type="tool" mode="async" id="${id}">${JSON.stringify({ name: 'echo', parameters: { value } })}</action>`;
const setVariable = (value: string): string =>
  `<action type="internal" mode="async" id="set">${JSON.stringify({ name: 'set_variable', parameters: { key: 'v', value } })}</action>`;

/** Runs the action `b` of a run again. @returns the new run */
async function rerun({ session }: SessionKit, run: number): Promise<number> {
  const [of] = session.runs(1, run + 1);
  if (of === undefined) throw new Error(`run ${run} does not exist`);
  const accepted = await session.branches.rerun(of, 'b', { ifBusy: 'queue', idempotencyKey: null });
  const { run: again } = await accepted.run;
  await session.ended(again);
  return again;
}

describe.each(['in its session', 'in a fork'])('[C4] an action that runs again %s', (where) => {
  test.each([
    ['results of its run', { of: '$a' }, { of: 'first' }],
    ['results of earlier runs, and variables', { of: '$early', v: '$v' }, { of: 'before', v: 'v1' }],
    ['the same text for a name that meant nothing', { of: '$unknown' }, { of: '$unknown' }],
  ])('gets %s, also the second time', async (_, value, expected) => {
    const given: unknown[] = [];
    const options: KitOptions = {
      executors: {
        tool: async ({ parameters }) => {
          given.push(parameters['value']);
          return await Promise.resolve({ ok: true, output: parameters['value'] ?? null });
        },
      },
    };
    const script = [
      echo('early', 'before') + setVariable('v1'),
      answer('0'),
      echo('a', 'first') + echo('b', value),
      answer('1'),
      echo('a', 'later') + echo('early', 'now') + echo('unknown', 'known') + setVariable('v2'),
      answer('2'),
    ];
    const first = await sessionKit({ ...options, script });
    for (const content of ['zero', 'one', 'two']) await say(first, content);
    const kit = where === 'in a fork' ? await sessionKit({ ...options, sql: await forked(first.session, 3) }) : first;
    given.length = 0;
    const again = await rerun(kit, 2);
    expect(given).toEqual([expected]);
    await rerun(kit, again);
    expect(given).toEqual([expected, expected]);
    const whole = await sessionKit({ ...options, sql: await forked(kit.session, again) });
    await rerun(whole, again);
    expect(given).toEqual([expected, expected, expected]);
  });
});
