/** `npm run validate -- <folder or file> …`: checks manifests and reports each issue with file, line and column. */
import { existsSync } from 'node:fs';
import { checkOwnManifests, summarise } from '../project/manifest-files.ts';

const targets = process.argv.slice(2);
if (targets.length === 0) targets.push('manifests');

let errors = 0;
for (const target of targets) {
  if (!existsSync(target)) {
    console.error(`error    ${target}: no such file or folder`);
    errors += 1;
    continue;
  }
  const loaded = checkOwnManifests(target);
  const { problems, warnings, skipped } = loaded;
  errors += problems.length;
  const counts = [counted(problems.length, 'error'), counted(warnings.length, 'warning')];
  if (skipped.length > 0) counts.push(`${counted(skipped.length, 'file')} skipped`);
  console.log(`${target}: ${summarise(loaded)}, ${counts.join(', ')}`);
}
process.exitCode = errors > 0 ? 1 : 0;

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}
