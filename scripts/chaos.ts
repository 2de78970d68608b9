/** `npm run test:chaos [-- kills [seed]]`: kills the whole system repeatedly and reports lost or repeated work. */
import { randomInt } from 'node:crypto';
import { runChaos } from '../test/chaos/chaos.ts';

const [kills = '100', seed = String(randomInt(2 ** 31))] = process.argv.slice(2);
if (![kills, seed].every((text) => /^\d+$/.test(text)) || Number(kills) === 0) {
  console.error('usage: npm run test:chaos -- [kills [seed]], both integers, at least one kill');
  process.exit(2);
}
console.log(`${kills} kills from seed ${seed} (again: npm run test:chaos -- ${kills} ${seed})`);
const report = await runChaos({ kills: Number(kills), seed: Number(seed), progress: (line) => console.log(line) });
for (const fault of report.faults) console.error(`FAULT ${fault}`);
console.log(
  `${report.kills} kills, ${report.runs} runs: ${report.completed} completed, ${report.recovered} of them after a recovery, ` +
    `${report.outcomesUnknown} actions with an unknown outcome, ${report.faults.length} faults`,
);
process.exit(report.faults.length === 0 ? 0 : 1);
