/** Long use in simulated time: what a session and a process need does not grow with the time. */
import { queryObjects } from 'node:v8';
import { expect, test } from 'vitest';
import { checkHistory } from '../simulation/check.ts';
import { historyOf } from '../simulation/arbitrary.ts';
import { EIGHT_HOURS_MS, eightHours } from '../simulation/eight-hours.ts';
import { factsOf } from '../simulation/invariants/invariant.ts';
import { ActionRunner } from '../../src/engine/actions/action-runner.ts';
import { Feeds } from '../../src/engine/feeds/feeds.ts';
import { RunLog } from '../../src/engine/run/run-log.ts';
import { Broadcaster } from '../../src/engine/session/broadcaster.ts';
import { Session } from '../../src/engine/session/session.ts';
import { Journal } from '../../src/journal/journal.ts';

/** Sessions of one round, each with crashes, readers and clients of its own. */
const SESSIONS = 12;
/** The first of them fills caches. */
const ROUNDS = 2;
/** The last session may still be referenced, as that of the round before it was. */
const MOST_LEFT = 2;
/** The engine's parts that belong to a session or a run, and what its caches and lists are made of. */
const PARTS = [Session, Journal, Broadcaster, Feeds, RunLog, ActionRunner];
const CONTAINERS = [Map, Set];

test('[J2] eight hours of messages, feeds, readers, alarms and lost hosts leave no timer, and no more rows than they need', async () => {
  const { seen, violations } = await checkHistory(eightHours(1));
  expect(violations).toEqual([]);
  if (seen?.sizes == null) throw new Error('the session does not rest');
  const { timersLeft, holdsLeft, staleNotes, orphans, rows } = seen.sizes;
  expect({ timersLeft, holdsLeft, staleNotes, orphans }).toEqual({
    timersLeft: 0,
    holdsLeft: 0,
    staleNotes: 0,
    orphans: 0,
  });
  // Of a session at rest: nothing is recovered, scheduled or sent again.
  expect({ taken: rows['taken_up'], steered: rows['steered'] ?? 0 }).toEqual({ taken: 0, steered: 0 });
  expect(factsOf(seen, 'host_started').length).toBeGreaterThan(20);
  expect(seen.facts.at(-1)?.at).toBeGreaterThan(0.9 * EIGHT_HOURS_MS);
});

test('[J2] sessions that have ended leave nothing in the process', async () => {
  const containers: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    for (let seed = 1; seed <= SESSIONS; seed += 1)
      expect((await checkHistory(historyOf(seed))).violations).toEqual([]);
    containers.push(CONTAINERS.reduce((sum, container) => sum + queryObjects(container, { format: 'count' }), 0));
  }
  // After a collection of garbage, which takes most of the time of this test.
  const left = PARTS.map((part) => [part.name, queryObjects(part, { format: 'count' })]);
  expect(left.filter(([, count]) => Number(count) > MOST_LEFT)).toEqual([]);
  const [first = 0, last = 0] = containers;
  expect(last - first, `maps and sets: ${containers.join(', ')}`).toBeLessThan(SESSIONS);
});
