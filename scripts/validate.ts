/** `npm run validate -- <folder or file> …`: checks manifests and names every fault by file, line and column. */
import { existsSync } from 'node:fs';
import { CATALOG_KINDS } from '../src/catalog/catalog.ts';
import { checkManifests } from './manifest-files.ts';

const targets = process.argv.slice(2);
if (targets.length === 0) targets.push('manifests');

let errors = 0;
for (const target of targets) {
  if (!existsSync(target)) {
    console.error(`error    ${target}: no such file or folder`);
    errors += 1;
    continue;
  }
  const { catalog, problems, warnings } = checkManifests(target);
  errors += problems.length;
  const counts = CATALOG_KINDS.map((kind) => [kind, catalog.list(kind).length] as const)
    .filter(([, count]) => count > 0)
    .map(([kind, count]) => `${count} ${kind}${count === 1 ? '' : 's'}`);
  const loaded = counts.length > 0 ? counts.join(', ') : 'nothing';
  console.log(`${target}: ${loaded} loaded, ${problems.length} errors, ${warnings.length} warnings`);
}
process.exitCode = errors > 0 ? 1 : 0;
