import { expect, test } from 'vitest';
import { limits } from '../../../src/domain/limits.ts';
import { LearnedDurations } from '../../../src/engine/actions/learned-durations.ts';
import { runText, sessionKit, settle } from '../../support/session-kit.ts';
import type { SessionKit } from '../../support/session-kit.ts';
import { eventsOf, membersOf } from '../../support/events.ts';

const act = (id: string, delayMs: number, more: object = {}): string =>
  `<action type="tool" mode="async" id="${id}">${JSON.stringify({ name: 'echo', parameters: { delay_ms: delayMs }, ...more })}</action>`;

/** Waits until the tool has started its four-second wait: the next timer can be another one. */
async function asleep({ clock }: SessionKit): Promise<void> {
  while (clock.next !== clock.now() + 4_000) await settle();
}

test('[S5] the first duration is the initial average, and later ones move the average', () => {
  const learned = new LearnedDurations();
  expect(learned.get('tool/x')).toBeUndefined();
  const seen = [1_000, 2_000, 2_000, 2_000].map((ms) => {
    learned.learn('tool/x', ms);
    return learned.get('tool/x');
  });
  expect(seen).toEqual([1_000, 1_300, 1_510, 1_657]);
});

test('[S5] the target that was unused for the longest time is dropped at the limit', () => {
  const learned = new LearnedDurations();
  for (let at = 0; at < limits.learnedDurations; at += 1) learned.learn(`tool/t${at}`, at);
  learned.learn('tool/t0', 0);
  expect(learned.get('tool/t1')).toBe(1);
  learned.learn('tool/new', 5);
  expect([0, 1, 2].map((at) => learned.get(`tool/t${at}`))).toEqual([0, undefined, 2]);
  expect(learned.get('tool/new')).toBe(5);
});

test('[S13] learned durations are used in the plan of the next run, and by the next instance of the session', async () => {
  const kit = await sessionKit();
  const estimate = (events: typeof kit.events): unknown => eventsOf(events, 'plan_generated').at(-1)?.data.estimates;
  const first = runText(kit, act('a', 4_000));
  await asleep(kit);
  kit.clock.advance(4_000);
  await first;
  expect(estimate(kit.events)).toMatchObject({ sequential_ms: limits.actionTimeoutMs });
  const next = await sessionKit({ sql: kit.sql });
  await runText(next, `${act('b', 0)}${act('c', 0)}`);
  expect(estimate(next.events)).toMatchObject({ sequential_ms: 8_000, critical_path_ms: 4_000 });
});

test('[S5] the duration of a cached outcome is not learned', async () => {
  const kit = await sessionKit();
  const cached = { cache_ttl: 600 };
  const first = runText(kit, act('a', 4_000, cached));
  await asleep(kit);
  kit.clock.advance(4_000);
  await first;
  for (const id of ['b', 'c', 'd']) await runText(kit, act(id, 4_000, cached));
  const plan = kit.events.findLast(({ type }) => type === 'plan_generated');
  expect(membersOf(plan)['estimates']).toMatchObject({ sequential_ms: 4_000 });
});
