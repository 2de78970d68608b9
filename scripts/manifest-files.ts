/** Reads a manifest folder and checks it: what the bundler and `npm run validate` share. */
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { isAbsolute, join, relative, sep } from 'node:path';
import { CATALOG_KINDS, createCatalog } from '../src/catalog/catalog.ts';
import { loadManifests } from '../src/catalog/load.ts';
import type { LoadedManifests, ManifestFile } from '../src/catalog/load.ts';
import { formatProblem } from '../src/catalog/problem.ts';
import { limits } from '../src/domain/limits.ts';

const SHIPPED = 'manifests';

/** Every text file under `folder` (or the one file), sorted by path; too large and binary ones are left out. */
export function readManifestFiles(folder: string): ManifestFile[] {
  const paths = statSync(folder).isDirectory()
    ? readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((name) => join(folder, name))
    : [folder];
  const files: ManifestFile[] = [];
  for (const path of paths.sort()) {
    const stat = statSync(path, { throwIfNoEntry: false });
    if (stat?.isFile() !== true || stat.size > limits.manifestBytes) continue;
    const bytes = readFileSync(path);
    if (!bytes.includes(0)) files.push({ path: path.split(sep).join('/'), text: bytes.toString('utf8') });
  }
  return files;
}

/** How much of each kind was loaded, in words. */
export function summarise({ catalog }: Pick<LoadedManifests, 'catalog'>): string {
  const counts = CATALOG_KINDS.map((kind) => [kind, catalog.list(kind).length] as const)
    .filter(([, count]) => count > 0)
    .map(([kind, count]) => `${count} ${kind}${count === 1 ? '' : 's'}`);
  return `${counts.length > 0 ? counts.join(', ') : 'nothing'} loaded`;
}

/** Loads a folder and prints what is wrong with it to stderr. */
export function checkManifests(folder: string): LoadedManifests {
  return told(loadManifests(readManifestFiles(folder)));
}

/**
 * The same for any folder or file of an author: its imports may mean what is shipped, and what stands inside the
 * shipped folder is judged together with the rest of that.
 */
export function checkOwnManifests(target: string): LoadedManifests {
  const shipped = readManifestFiles(SHIPPED);
  const inside = relative(SHIPPED, target).split(sep).join('/');
  if (inside === '') return checkManifests(target);
  if (inside.startsWith('..') || isAbsolute(inside)) {
    return told(loadManifests(readManifestFiles(target), loadManifests(shipped).catalog));
  }
  const all = loadManifests(shipped);
  const ours = ({ file }: { readonly file: string }): boolean => {
    const path = relative(target, file);
    return path === '' || !path.startsWith('..');
  };
  const definitions = all.entries.filter(ours).map(({ definition }) => definition);
  const catalog = createCatalog({
    agents: definitions.filter((one) => one.kind === 'Agent'),
    tools: definitions.filter((one) => one.kind === 'Tool'),
    relics: definitions.filter((one) => one.kind === 'Relic'),
    workflows: definitions.filter((one) => one.kind === 'Workflow'),
    monuments: definitions.filter((one) => one.kind === 'Monument'),
  });
  return told({ ...all, catalog, problems: all.problems.filter(ours), warnings: all.warnings.filter(ours) });
}

function told(loaded: LoadedManifests): LoadedManifests {
  for (const problem of loaded.problems) console.error(`error    ${formatProblem(problem)}`);
  for (const warning of loaded.warnings) console.error(`warning  ${formatProblem(warning)}`);
  return loaded;
}
