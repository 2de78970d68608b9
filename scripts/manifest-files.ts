/** Reads and checks a manifest folder, for the bundler and `npm run validate`. */
import { MANIFEST_KINDS } from '../src/domain/catalog.ts';
import type { ManifestProblem, ManifestFile } from '../src/domain/catalog.ts';
import { isUtf8 } from 'node:buffer';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { isAbsolute, join, relative, sep } from 'node:path';
import { createCatalog } from '../src/catalog/catalog.ts';
import type { Catalog } from '../src/catalog/catalog.ts';
import { loadManifests } from '../src/catalog/load.ts';
import type { LoadedManifests } from '../src/catalog/load.ts';
import { formatProblem } from '../src/catalog/check/problem.ts';
import { parseIntervals } from '../src/domain/intervals.ts';
import { limits } from '../src/domain/limits.ts';
import type { Deployment } from '../src/catalog/check/deployment.ts';
import { apiKeysOf } from '../src/settings/keys.ts';
import { deploymentOf, modelsOnly } from '../src/settings/deployment.ts';
import type { Variables } from '../src/settings/settings.ts';
import { settingsOf } from './system/settings.ts';

const SHIPPED = 'manifests';

interface ManifestFolder {
  readonly files: readonly ManifestFile[];
  /** Files with the name of a manifest whose text cannot be read. */
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
      const why = found === null ? `has ${stat.size} bytes (maximum ${limits.manifestBytes})` : 'is not UTF-8 text';
      unreadable.push({ file, line: 1, column: 1, field: '', message: `the file ${why}` });
    }
  }
  return { files, unreadable };
}

/** All text files below `folder` (or the one file), sorted by path; skips large and binary files. */
export function readManifestFiles(folder: string): readonly ManifestFile[] {
  return readFolder(folder).files;
}

/**
 * Loads a folder, or a single file that must be a manifest.
 *
 * @param own warns about what the settings of this machine do not allow; the bundler checks for any deployment
 */
function load(target: string, bundled: Catalog | null = null, own: Deployment | boolean = false): LoadedManifests {
  const { files, unreadable } = readFolder(target);
  // the deployment's settings, from this folder or the environment
  const { worker } = settingsOf(join(import.meta.dirname, '..'), process.env);
  const deployment = own === true ? localDeployment(worker) : own === false ? null : own;
  const loaded = loadManifests(files, { bundled, deployment, intervals: parseIntervals(worker) });
  const problems = [...unreadable, ...loaded.problems];
  if (problems.length === 0 && loaded.entries.length === 0 && statSync(target).isFile()) {
    const message = 'is not a manifest (expected YAML, or Markdown with "kind" in its front matter)';
    problems.push({ file: target, line: 1, column: 1, field: '', message });
  }
  return { ...loaded, problems };
}

/** The settings of `npm start`, which adds a runner; the manifests may belong to any namespace. */
function localDeployment(worker: Variables): Deployment {
  const owners = new Set(apiKeysOf(worker).map(({ owner }) => owner));
  return deploymentOf(worker, owners.size === 0 ? [null] : [...owners], { runner: false });
}

/** A summary of the number of manifests of each kind. */
export function summarise({ catalog }: Pick<LoadedManifests, 'catalog'>): string {
  const counts = MANIFEST_KINDS.map((kind) => [kind, catalog.list(kind).length] as const)
    .filter(([, count]) => count > 0)
    .map(([kind, count]) => `${count} ${kind}${count === 1 ? '' : 's'}`);
  return `${counts.length > 0 ? counts.join(', ') : 'nothing'} loaded`;
}

/** Loads a folder and prints its issues to stderr. @param settings of the Worker, to warn about missing models */
export function checkManifests(folder: string, settings: Variables | null = null): LoadedManifests {
  return told(load(folder, null, settings === null ? false : modelsOnly(localDeployment(settings))));
}

/**
 * Loads any folder or file of an author. Imports may refer to bundled manifests, and a path inside the bundled folder
 * is checked together with all bundled manifests.
 */
export function checkOwnManifests(target: string): LoadedManifests {
  const inside = relative(SHIPPED, target).split(sep).join('/');
  if (inside === '') return told(load(target, null, true));
  if (inside.startsWith('..') || isAbsolute(inside)) {
    return told(load(target, loadManifests(readManifestFiles(SHIPPED)).catalog, true));
  }
  const all = load(SHIPPED, null, true);
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
