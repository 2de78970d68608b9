/** Runners that stop answering, and answer again (R7, X5). */
import { expect, test } from 'vitest';
import { limits } from '../../../src/domain/limits.ts';
import { RunnerWatch } from '../../../src/executors/runner/watch.ts';
import { VirtualClock } from '../../../testing/virtual-clock.ts';

test('[X5] a silent runner is reported once when it goes and once when it comes back, each on its own', () => {
  const clock = new VirtualClock();
  const watch = new RunnerWatch(() => clock.now());
  const said: string[] = [];
  const contact = (runner: string, answered: boolean): void =>
    watch.contact(runner, answered, (event, fields) => said.push(`${event} ${fields.runner}: ${fields.message}`));
  contact('http://a', true);
  for (let second = 0; second < 60; second += 1) {
    contact('http://a', false);
    contact('http://b', second % 3 === 0);
    clock.advance(1_000);
  }
  expect(said).toEqual(['runner_unreachable http://a: it has not answered for 5 s']);
  contact('http://a', true);
  contact('http://a', true);
  expect(said.slice(1)).toEqual(['runner_reachable http://a: it answers again, after 60 s']);
  contact('http://a', false);
  clock.advance(limits.runnerReportMs);
  contact('http://a', false);
  expect(said).toHaveLength(3);
});

test('[X5] a restart within the time is not reported', () => {
  const clock = new VirtualClock();
  const watch = new RunnerWatch(() => clock.now());
  const said: string[] = [];
  for (const answered of [false, false, true, false, true]) {
    watch.contact('http://a', answered, (event) => said.push(event));
    clock.advance(limits.runnerReportMs - 1_000);
  }
  expect(said).toEqual([]);
});
