/**
 * `npm run plan -- file.xml [agent]`: dry-runs protocol text. `-` reads standard input. Looks names up in the running
 * system, with the key in CORTEX_API_KEY; without one, in the bundled manifests.
 */
import { readFileSync } from 'node:fs';
import pc from 'picocolors';
import type { JsonObject } from '../../src/domain/json.ts';
import { planText } from '../../src/dry-run/dry-run.ts';
import { bundledAgent, runningSystem } from '../terminal/running-system.ts';

const [file, agentName] = process.argv.slice(2);
if (file === undefined) {
  console.error('usage: npm run plan -- <file.xml | -> [agent]');
  process.exit(2);
}
function read(path: string): string {
  try {
    return readFileSync(path === '-' ? 0 : path, 'utf8');
  } catch (fault) {
    console.error(`${path} cannot be read: ${fault instanceof Error ? fault.message : String(fault)}`);
    process.exit(1);
  }
}

/** Without an agent, no names are looked up, so no system is asked. */
async function planOf(text: string): Promise<JsonObject> {
  if (agentName === undefined) return planText(text, null);
  const ask = await runningSystem(process.env);
  if (ask === null) return planText(text, bundledAgent(agentName));
  const body = JSON.stringify({ protocol_text: text, agent: agentName });
  const headers = { 'content-type': 'application/json' };
  return (await (await ask('/plan', { method: 'POST', headers, body })).json()) as JsonObject;
}

const text = read(file);
const plan = await planOf(text).catch((fault: unknown) => {
  console.error(fault instanceof Error ? fault.message : String(fault));
  process.exit(1);
});
console.log(plan['report']);
for (const kind of ['rejected', 'warnings'] as const) {
  const list = plan[kind] as { id?: string; code: string; message: string }[];
  if (list.length > 0) console.log(`\n${kind === 'rejected' ? pc.red('Rejected') : pc.yellow('Warnings')}`);
  for (const { id, code, message } of list)
    console.log(`  ${id === undefined ? '' : `${id}: `}${pc.bold(code)}  ${message}`);
}
