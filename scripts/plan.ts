/** `npm run plan -- file.xml [agent]`: dry-runs protocol text. `-` reads standard input. */
import { readFileSync } from 'node:fs';
import pc from 'picocolors';
import { bundled } from '../src/catalog/bundled.ts';
import { planText } from '../src/dry-run/dry-run.ts';

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

const agent = agentName === undefined ? null : bundled.agent(agentName);
if (agentName !== undefined && agent === null) {
  const known = bundled.list('agent').map(({ name }) => name);
  console.error(`unknown agent "${agentName}" (known: ${known.join(', ')})`);
  process.exit(1);
}
const plan = planText(read(file), agent);
console.log(plan['report']);
for (const kind of ['rejected', 'warnings'] as const) {
  const list = plan[kind] as { id?: string; code: string; message: string }[];
  if (list.length > 0) console.log(`\n${kind === 'rejected' ? pc.red('Rejected') : pc.yellow('Warnings')}`);
  for (const { id, code, message } of list)
    console.log(`  ${id === undefined ? '' : `${id}: `}${pc.bold(code)}  ${message}`);
}
