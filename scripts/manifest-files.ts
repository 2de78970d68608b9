/** Reads a manifest folder and checks it: what the bundler and `npm run validate` share. */
import { isUtf8 } from 'node:buffer';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { isAbsolute, join, relative, sep } from 'node:path';
import { CATALOG_KINDS, createCatalog } from '../src/catalog/catalog.ts';
import type { Catalog } from '../src/catalog/catalog.ts';
import { loadManifests } from '../src/catalog/load.ts';
import type { LoadedManifests, ManifestFile } from '../src/catalog/load.ts';
import { formatProblem } from '../src/catalog/check/problem.ts';
import type { ManifestProblem } from '../src/catalog/check/problem.ts';
import { parseClocks } from '../src/domain/clocks.ts';
import { limits } from '../src/domain/limits.ts';
import { settingsOf } from './settings.ts';

const SHIPPED = 'manifests';

interface ManifestFolder {
  readonly files: readonly ManifestFile[];
  /** Files that are named like manifests, and of which there is no text. */
  readonly unreadable: readonly ManifestProblem[];
}

function readFolder(target: string): ManifestFolder {
  const isFolder = statSync(target).isDirectory();
  const paths = isFolder
    ? readdirSync(target, { recursive: true, encoding: 'utf8' }).map((name) => join(target, name))
    : [target];
  const files: ManifestFile[] = [];
  const unreadable: ManifestProblem[] = [];
  for (const path of paths.sort()) {
    const stat = statSync(path, { throwIfNoEntry: false });
    if (stat?.isFile() !== true) continue;
    const file = path.split(sep).join('/');
    const found = stat.size > limits.manifestBytes ? null : readFileSync(path);
    if (found !== null && isUtf8(found) && !found.includes(0)) files.push({ path: file, text: found.toString('utf8') });
    else if (!isFolder || /\.(ya?ml|md|markdown)$/i.test(file)) {
      const why =
        found === null ? `has ${stat.size} bytes, of ${limits.manifestBytes} allowed` : 'is not text in UTF-8';
      unreadable.push({ file, line: 1, column: 1, field: '', message: `the file ${why}` });
    }
  }
  return { files, unreadable };
}

/** Every text file under `folder` (or the one file), sorted by path; too large and binary ones are left out. */
export function readManifestFiles(folder: string): readonly ManifestFile[] {
  return readFolder(folder).files;
}

/** Loads a folder, or the one file, which is meant to be a manifest then. */
function load(target: string, common: Catalog | null = null): LoadedManifests {
  const { files, unreadable } = readFolder(target);
  // What the deployment's clocks may do, where that is set in this folder or in the environment.
  const clocks = parseClocks(settingsOf(join(import.meta.dirname, '..'), process.env).worker);
  const loaded = loadManifests(files, { common, clocks });
  const problems = [...unreadable, ...loaded.problems];
  if (problems.length === 0 && loaded.entries.length === 0 && statSync(target).isFile()) {
    const message = 'is no manifest: those are YAML, or Markdown whose front matter has a "kind"';
    problems.push({ file: target, line: 1, column: 1, field: '', message });
  }
  return { ...loaded, problems };
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
  return told(load(folder));
}

/**
 * The same for any folder or file of an author: its imports may mean what is shipped, and what stands inside the
 * shipped folder is judged together with the rest of that.
 */
export function checkOwnManifests(target: string): LoadedManifests {
  const inside = relative(SHIPPED, target).split(sep).join('/');
  if (inside === '') return checkManifests(target);
  if (inside.startsWith('..') || isAbsolute(inside)) {
    return told(load(target, loadManifests(readManifestFiles(SHIPPED)).catalog));
  }
  const all = load(SHIPPED);
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
