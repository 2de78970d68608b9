/**
 * Checks `manifests/` and writes what is in it as plain data to `src/catalog/bundled.generated.ts`,
 * so that the Worker parses no YAML at start-up. When a manifest is wrong, nothing is written, and the exit code is 1;
 * with CORTEX_KEEP_BUNDLE=1 it is 0 where there is an earlier bundle.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { checkManifests } from './manifest-files.ts';

const root = join(import.meta.dirname, '..');
const target = join(root, 'src/catalog/bundled.generated.ts');

process.chdir(root);
const { catalog, problems, entries } = checkManifests('manifests');
if (problems.length > 0) {
  console.error(`manifests/: ${problems.length} ${problems.length === 1 ? 'error' : 'errors'}, nothing written`);
  // while the system runs, a mistake in a file must not end it: what was bundled before goes on
  process.exit(process.env['CORTEX_KEEP_BUNDLE'] === '1' && existsSync(target) ? 0 : 1);
}
const sources = Object.fromEntries(
  entries.map(({ definition, source }) => [`${definition.kind.toLowerCase()}/${definition.name}`, source]),
);
const text = `// Written by scripts/bundle-manifests.ts from manifests/.
import type { CatalogData } from './catalog.ts';

export const bundledCatalog: CatalogData = ${JSON.stringify(catalog.data, null, 1)};

/** As they were written, by kind and name. */
export const bundledSources: Readonly<Record<string, string>> = ${JSON.stringify(sources, null, 1)};
`;
// an unchanged file keeps its time stamp, so that watchers stay quiet
if (!existsSync(target) || readFileSync(target, 'utf8') !== text) writeFileSync(target, text);
const { agents, tools } = catalog.data;
console.log(`${relative(root, target)}: ${agents.length} agents, ${tools.length} tools`);
