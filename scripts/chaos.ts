/** `npm run test:chaos [-- histories [seed]]`: runs histories on a system that is killed repeatedly, and checks them. */
import { randomInt } from 'node:crypto';
import { runChaos } from '../test/chaos/chaos.ts';

const [histories = '200', seed = String(randomInt(2 ** 31))] = process.argv.slice(2);
if (![histories, seed].every((text) => /^\d+$/.test(text)) || Number(histories) === 0) {
  console.error('usage: npm run test:chaos -- [histories [seed]], both integers, at least one history');
  process.exit(2);
}
console.log(`${histories} histories from seed ${seed} (again: npm run test:chaos -- ${histories} ${seed})`);
const report = await runChaos({
  histories: Number(histories),
  seed: Number(seed),
  progress: (line) => console.log(line),
});
const shown = new Set<number>();
for (const { history, seed: own, invariant, what, command, observed } of report.findings) {
  console.error(`VIOLATION in history ${history} (seed ${own}): ${invariant}: ${what}`);
  console.error(`  again: ${command}`);
  if (!shown.has(history)) for (const line of observed) console.error(`  ${line}`);
  shown.add(history);
}
console.log(
  `${report.histories} histories, ${report.kills} kills, ${report.cuts} generations cut off by them, ${report.runs} runs, ${report.recovered} of them recovered, ` +
    `${report.outcomesUnknown} actions with an unknown outcome, ${report.results} results of clients, ` +
    `${report.files} files, ${report.findings.length} violations`,
);
process.exit(report.findings.length === 0 ? 0 : 1);
