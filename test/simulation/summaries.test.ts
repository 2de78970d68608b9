/** Generated histories with an agent whose model summarises older turns (C10): the faults are those of the histories. */
import { expect, test } from 'vitest';
import { RUN_TERMINAL_EVENTS } from '../../src/domain/event.ts';
import { historyOf } from './arbitrary.ts';
import { runOf } from './invariants/invariant.ts';
import type { Observation } from './observation.ts';
import { Thread } from './pool.ts';

const HISTORIES = 80;
/** They expect all turns in each prompt. */
const OF_ALL_TURNS: ReadonlySet<string> = new Set(['history first', 'own branch', 'images shown']);

test(`[C10] ${HISTORIES} histories violate no invariant, and no turns are summarised twice`, async () => {
  const found: string[] = [];
  let summaries = 0;
  await using thread = new Thread();
  for (let seed = 1; seed <= HISTORIES; seed += 1) {
    const history = historyOf(seed);
    const agent = { ...history.agent, summarizeAfter: 2 };
    const { violations, seen } = await thread.run({ ...history, agent }, { isDetailed: true });
    for (const { invariant, what } of violations) {
      if (!OF_ALL_TURNS.has(invariant)) found.push(`seed ${seed}: ${invariant}: ${what}`);
    }
    if (seen === null) continue;
    summaries += seen.events.filter(({ type }) => type === 'memory_changed').length;
    found.push(...Array.from(wrongSummaries(seen), (what) => `seed ${seed}: ${what}`));
  }
  expect(found).toEqual([]);
  expect(summaries).toBeGreaterThan(20);
});

function* wrongSummaries({ events, places }: Observation): Generator<string> {
  const ended = new Set<number>();
  const covered = new Set<string>();
  for (const event of events) {
    const run = runOf(event);
    if (RUN_TERMINAL_EVENTS.has(event.type)) ended.add(run);
    if (event.type !== 'memory_changed') continue;
    const { until_run: until, turns = 0 } = event.data;
    const what = `${until ?? 'the seeded history'}, ${turns} turns`;
    if (!ended.has(run)) yield `a summary of ${what} precedes the end of run ${run}`;
    if (covered.has(what)) yield `two summaries of ${what}`;
    covered.add(what);
    const last = Number(until?.split('_').at(-1) ?? 0);
    let at = run;
    while (at > last) at = places.get(at)?.parent ?? at - 1;
    if (at !== last) yield `a summary behind run ${run} ends with run ${last}, which does not precede it`;
  }
}
