/**
 * `npm run test:soak [-- --minutes 60 --seed 1 --samples FILE]`: runs the system under a low load, and checks that nothing
 * grows. FILE gets everything that was measured: a line of JSON for each checkpoint.
 */
import { randomInt } from 'node:crypto';
import { appendFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { tableOf } from '../test/soak/report.ts';
import { runSoak } from '../test/soak/soak.ts';

const USAGE = 'usage: npm run test:soak -- [--minutes 60] [--seed 1] [--samples FILE], integers, at least one minute';
const SHOWN_FAILURES = 20;

const { minutes, seed, samples } = optionsOf(process.argv.slice(2));
if (process.platform !== 'linux') {
  console.error(`The soak test reads /proc, so it needs Linux; this is ${process.platform}.`);
  process.exit(2);
}
console.log(`${minutes} minutes from seed ${seed} (again: npm run test:soak -- --minutes ${minutes} --seed ${seed})`);
const stop = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => stop.abort());
const progress = (line: string): void => console.log(`${new Date().toISOString().slice(11, 19)} ${line}`);
const report = await runSoak({
  minutes,
  seed,
  signal: stop.signal,
  progress,
  onCheckpoint: (checkpoint) => {
    if (samples !== null) appendFileSync(samples, `${JSON.stringify(checkpoint)}\n`);
  },
});

for (const failure of report.failures.slice(0, SHOWN_FAILURES)) console.error(`FAILED: ${failure}`);
console.log(`\n${tableOf(report.judged)}\n`);
for (const { measure, verdict } of report.judged) {
  if (verdict.result === 'grows')
    console.log(`${measure.name}: ${measure.points.map(({ value }) => value).join(', ')}`);
}
const grows = report.judged.flatMap(({ measure, verdict }) => (verdict.result === 'grows' ? [measure.name] : []));
console.log(
  `${report.visits} visits, ${report.kills} kills, ${report.swept} sessions swept up, ` +
    `${(report.load * 100).toFixed(0)} % of one core, ${report.failures.length} failures; ` +
    (grows.length === 0 ? 'nothing grows' : `these grow: ${grows.join(', ')}`),
);
if (stop.signal.aborted) console.error('Stopped early: the verdicts are of a part of the time.');
process.exit(grows.length === 0 && report.failures.length === 0 && !stop.signal.aborted ? 0 : 1);

interface Options {
  readonly minutes: number;
  readonly seed: number;
  readonly samples: string | null;
}

function optionsOf(args: string[]): Options {
  try {
    const text = { type: 'string' } as const;
    const { values } = parseArgs({ args, options: { minutes: text, seed: text, samples: text } });
    const { minutes: length = '60', seed: from = String(randomInt(2 ** 31)), samples: file = null } = values;
    if (![length, from].every((given) => /^\d+$/.test(given)) || Number(length) === 0)
      throw new Error('not an integer');
    return { minutes: Number(length), seed: Number(from), samples: file };
  } catch (fault) {
    console.error(`${fault instanceof Error ? fault.message : String(fault)}\n${USAGE}`);
    process.exit(2);
  }
}
