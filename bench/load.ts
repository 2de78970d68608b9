/**
 * `npm run bench:load`: how many sessions one local system carries. Live sessions double until the first byte is late or
 * the machine is full; the memory for a session in each state; the first byte of a session that was evicted. A bare
 * object in the same run is the limit. Options: bench/load/options.ts.
 */
import { BARE, OURS } from './load/client.ts';
import type { Subject } from './load/client.ts';
import { measureMemory } from './load/memory.ts';
import type { SessionMemory } from './load/memory.ts';
import { loadOptions } from './load/options.ts';
import { ramp } from './load/ramp.ts';
import type { Stage } from './load/ramp.ts';
import { report } from './load/report.ts';
import { startLoadSystem } from './load/system.ts';
import { measureWake } from './load/wake.ts';
import type { Wake } from './load/wake.ts';
import { percentile, writeSection } from './report.ts';

const options = loadOptions(process.argv.slice(2));
const SUBJECTS = [OURS, BARE];

const memory = new Map<Subject, SessionMemory>();
for (const subject of SUBJECTS) {
  await using system = await startLoadSystem();
  const measured = await measureMemory(system, subject, options);
  memory.set(subject, measured);
  console.error(`${subject.name}: ${measured.idle.resident.toFixed(0)} KiB for an idle session`);
}

const { wakes, stages } = await underLoad();
const body = report({ options, memory, wakes, stages });
if (!options.smoke) writeSection('Load', 'npm run bench:load', body);
console.log(body);

async function underLoad(): Promise<{ wakes: Wake[]; stages: Map<Subject, Stage[]> }> {
  await using system = await startLoadSystem();
  const ours = options.histories.map((turns) => ({ subject: OURS, turns, canFork: turns > 1 }));
  const wakes = await measureWake(system, [{ subject: BARE, turns: 1, canFork: false }, ...ours], options);
  for (const { subject, turns, coldMs } of wakes) {
    console.error(`${subject.name}, ${turns} turns: first byte ${percentile(coldMs, 0.5).toFixed(1)} ms cold`);
  }
  const stages = new Map<Subject, Stage[]>();
  for (const subject of SUBJECTS) {
    const progress = ({ sessions, firstMs, core, exceeded }: Stage): void => {
      const p99 = `p99 of the first byte ${percentile(firstMs, 0.99).toFixed(0)} ms`;
      console.error(
        `${subject.name}: ${sessions} live sessions, ${p99}, ${(core * 100).toFixed(0)}% of a core. ${exceeded ?? ''}`,
      );
    };
    stages.set(subject, await ramp(system, subject, options, progress));
  }
  return { wakes, stages };
}
