/** Reads and checks a manifest folder, for the build and `cortex validate`. */
import { MANIFEST_KINDS } from '../../src/domain/catalog.ts';
import type { ManifestProblem, ManifestFile } from '../../src/domain/catalog.ts';
import { isUtf8 } from 'node:buffer';
import { existsSync, readdirSync, statSync } from 'node:fs';
import { join, relative, sep } from 'node:path';
import { createCatalog } from '../../src/catalog/catalog.ts';
import { loadManifests } from '../../src/catalog/load.ts';
import type { Catalog } from '../../src/catalog/catalog.ts';
import type { LoadedManifests } from '../../src/catalog/load.ts';
import { formatProblem } from '../../src/catalog/check/problem.ts';
import { parseIntervals } from '../../src/domain/intervals.ts';
import { messageOf } from '../../src/domain/errors.ts';
import { limits } from '../../src/domain/limits.ts';
import { SkillFolders } from '../../src/catalog/read/skill-file.ts';
import type { Deployment } from '../../src/catalog/check/deployment.ts';
import { apiKeysOf } from '../../src/settings/keys.ts';
import { deploymentOf, modelsOnly } from '../../src/settings/deployment.ts';
import type { Variables } from '../../src/settings/settings.ts';
import { commandLine } from './command-line.ts';
import { nameOfFile, readCodeTools } from './code-tools.ts';
import type { ProjectTools, ToolRights } from './code-tools.ts';
import { HAS_PROJECT, IS_OWN_PROJECT, MANIFESTS, PACKAGE_ROOT, PROJECT_ROOT } from './folders.ts';
import { boundsOf, isWithin, PathIssue, readFileIn, realPathIn } from './real-path.ts';
import type { Bounds } from './real-path.ts';
import { isShipped, SHIPPED_FOLDER } from './shipped-manifests.ts';
import { withoutUnused } from './used-definitions.ts';
import { settingsOf } from '../system/settings.ts';
import { harmless } from '../terminal/visible.ts';

export interface ManifestFolder {
  readonly files: readonly ManifestFile[];
  /** Files with the name of a manifest whose text cannot be read. */
  readonly problems: readonly ManifestProblem[];
  /** Files of skills that are left out, because they are not text. */
  readonly warnings: readonly ManifestProblem[];
  readonly skipped: readonly ManifestProblem[];
}

/** The manifests of a project, with what its code tools add to the problems. */
export interface ProjectManifests extends LoadedManifests {
  /** How many of the problems are those of code tools. */
  readonly codeProblems: number;
  /** Files of code tools that define no tool because of a problem. */
  readonly faultyTools: readonly string[];
}

/** All text files below a folder, or one file, sorted by path. */
export function readFolder(target: string): ManifestFolder {
  const files: ManifestFile[] = [];
  const problems: ManifestProblem[] = [];
  const others: ManifestProblem[] = [];
  const skipped: ManifestProblem[] = [];
  const bounds = boundsOfManifests(target);
  const { paths, isFolder, issues } = listFiles(target, bounds);
  for (const path of paths.sort()) {
    const file = path.split(sep).join('/');
    let found: ReturnType<typeof readFileIn>;
    try {
      found = readFileIn(bounds, path, limits.manifestBytes);
    } catch (fault) {
      issues.push({ path, fault });
      continue;
    }
    const { size, bytes } = found;
    const isLarge = size > limits.manifestBytes;
    const why = isLarge ? `has ${size} bytes (maximum ${limits.manifestBytes})` : 'is not UTF-8 text';
    if (!isLarge && isUtf8(bytes) && !bytes.includes(0)) {
      files.push({ path: file, text: bytes.toString('utf8'), ...(isFolder ? {} : { isAlone: true }) });
    } else if (!isFolder || /\.(ya?ml|md|markdown)$/i.test(file)) {
      const isManifest = !isFolder || /^["']?kind["']?[ \t]*:/m.test(bytes.toString('latin1'));
      const message = `the file ${why}${isManifest ? '' : '; skipped'}`;
      (isManifest ? problems : skipped).push({ file, line: 1, column: 1, field: '', message });
    } else {
      others.push({ file, line: 1, column: 1, field: '', message: `the file ${why} and is left out of the skill` });
    }
  }
  for (const { path, fault } of issues) {
    problems.push({ file: path.split(sep).join('/'), line: 1, column: 1, field: '', message: messageOf(fault) });
  }
  const skills = new SkillFolders(files);
  const warnings = others.filter(({ file }) => skills.ownerOf(file) !== null);
  return { files, problems, warnings, skipped };
}

/** Files of one folder of manifests, with links: a few links can make many paths. */
const MOST_FILES = 100_000;
/** Folders that hold no manifests. Some file systems ignore the case of names. */
const OTHER_FOLDERS = /^(\.git|node_modules|__pycache__)$/i;
/** An editor's lock is a link to the name of its user. */
const LOCK = /^\.#/;

/** A folder that the user or a setting names may be anywhere; its links lead into it or into the project. */
function boundsOfManifests(target: string): Bounds {
  const project = HAS_PROJECT ? [PROJECT_ROOT] : [];
  return boundsOf(...project, ...(relative(MANIFESTS, target) === '' && HAS_PROJECT ? [] : [target]));
}

/** The files of a folder, also those that links lead to, and what cannot be listed. */
function listFiles(
  target: string,
  bounds: Bounds,
): {
  readonly paths: string[];
  readonly isFolder: boolean;
  readonly issues: { readonly path: string; readonly fault: unknown }[];
} {
  const paths: string[] = [];
  const issues: { readonly path: string; readonly fault: unknown }[] = [];
  /** @param above the real paths of this folder and of those that it was reached through */
  const list = (folder: string, above: readonly string[]): void => {
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
      const path = join(folder, entry.name);
      if (paths.length + issues.length >= MOST_FILES) throw new PathIssue(`has more than ${MOST_FILES} files`);
      if (entry.isFile()) paths.push(path);
      else if (!OTHER_FOLDERS.test(entry.name) && !(entry.isSymbolicLink() && LOCK.test(entry.name)))
        visit(path, above);
    }
  };
  const visit = (path: string, above: readonly string[]): void => {
    try {
      const real = realPathIn(bounds, path);
      if (!statSync(real).isDirectory()) paths.push(path);
      else if (above.some((one) => isWithin(real, one))) throw new PathIssue('is a link to a folder that it is in');
      else list(path, [...above, real]);
    } catch (fault) {
      issues.push({ path, fault });
    }
  };
  visit(target, []);
  return { paths, isFolder: statSync(target, { throwIfNoEntry: false })?.isDirectory() === true, issues };
}

/** All text files below `folder` (or the one file), sorted by path; skips large and binary files. */
export function readManifestFiles(folder: string): readonly ManifestFile[] {
  return readFolder(folder).files;
}

/** The manifests of the package, in a folder of their own. */
function shippedFolder(): ManifestFolder {
  const root = join(PACKAGE_ROOT, 'manifests');
  const files = readManifestFiles(root).map(({ path, text }) => ({
    path: `${SHIPPED_FOLDER}/${relative(root, path).split(sep).join('/')}`,
    text,
  }));
  return { files, problems: [], warnings: [], skipped: [] };
}

/**
 * Loads folders as one, or a single file that must be a manifest. Definitions of the project replace shipped ones.
 *
 * @param own warns about what the settings of this machine do not allow; the bundler checks for any deployment
 */
function load(targets: readonly string[], own: Deployment | boolean, code: ProjectTools): ProjectManifests {
  return loadFolders(targets.map(readFolder), own, code);
}

function loadFolders(
  given: readonly ManifestFolder[],
  own: Deployment | boolean,
  code: ProjectTools,
  usedOf: (all: LoadedManifests) => LoadedManifests = (all) => withoutUnused(all, isShipped),
): ProjectManifests {
  const folders = [...(IS_OWN_PROJECT ? [] : [shippedFolder()]), ...given];
  // the deployment's settings, from this folder or the environment
  const { worker } = settingsOf(PROJECT_ROOT, process.env);
  const codeTools = new Map(code.tools.map((tool) => [tool.name, tool]));
  const faulty = code.faulty.map((file) => [nameOfFile(file), file] as const);
  const all = loadManifests(
    folders.flatMap(({ files }) => files),
    {
      codeTools,
      faultyTools: new Map(faulty.filter(([name]) => !codeTools.has(name))),
      deployment: own === true ? localDeployment(worker) : own === false ? null : own,
      intervals: parseIntervals(worker),
      isShipped,
      // Other projects use the shipped manifests as a library.
      warnsOfReplaced: IS_OWN_PROJECT,
    },
  );
  const loaded = IS_OWN_PROJECT ? all : usedOf(all);
  return {
    ...loaded,
    problems: [...code.problems, ...folders.flatMap(({ problems }) => problems), ...loaded.problems],
    warnings: [...folders.flatMap(({ warnings }) => warnings), ...loaded.warnings],
    skipped: [...folders.flatMap(({ skipped }) => skipped), ...loaded.skipped],
    codeProblems: code.problems.length,
    faultyTools: code.faulty,
  };
}

/** The settings of `npm start`, which adds a runner; the manifests may belong to any namespace. */
function localDeployment(worker: Variables): Deployment {
  const owners = new Set(apiKeysOf(worker).map(({ owner }) => owner));
  return deploymentOf(worker, owners.size === 0 ? [null] : [...owners], { runner: false });
}

/** What happens to what has errors while the system runs. */
export function ruleOfErrors({
  problems,
  codeProblems,
  faultyTools,
}: Pick<ProjectManifests, 'problems' | 'codeProblems' | 'faultyTools'>): string {
  const manifests = 'a manifest with errors keeps its previous version, if it has one';
  const are = faultyTools.length === 1 ? 'is not available until it is' : 'are not available until they are';
  const tools = `${faultyTools.join(', ')} ${are} corrected`;
  const rules = [...(problems.length > codeProblems ? [manifests] : []), ...(faultyTools.length > 0 ? [tools] : [])];
  return rules.join('; ');
}

/** A summary of the number of manifests of each kind. */
export function summarise({ catalog }: Pick<LoadedManifests, 'catalog'>): string {
  const counts = MANIFEST_KINDS.map((kind) => [kind, catalog.list(kind).length] as const)
    .filter(([, count]) => count > 0)
    .map(([kind, count]) => `${count} ${kind}${count === 1 ? '' : 's'}`);
  return `${counts.length > 0 ? counts.join(', ') : 'nothing'} loaded`;
}

/** The folders of the project: `manifests/` and those of the setting CORTEX_MANIFESTS. */
export function projectFolders(written = settingsOf(PROJECT_ROOT, process.env).start.CORTEX_MANIFESTS): string[] {
  const further = (written ?? '').split(',').map((folder) => folder.trim());
  return [MANIFESTS, ...new Set(further.filter((folder) => folder !== '' && folder !== MANIFESTS))];
}

/**
 * Loads the folders of the project, and prints their issues to stderr.
 *
 * @param settings of the Worker, to warn about missing models
 */
export function checkManifests(
  folders: readonly string[],
  settings: Variables | null = null,
  code: ProjectTools = readCodeTools(PROJECT_ROOT),
): ProjectManifests {
  return told(load(folders, settings === null ? false : modelsOnly(localDeployment(settings)), code), folders);
}

/** The same for an author: prints also what was skipped. Imports may refer to shipped manifests. */
export function checkOwnManifests(target: string, code: ProjectTools): LoadedManifests {
  const loaded = loadOwn(target, code);
  return told({ ...loaded, warnings: [...loaded.warnings, ...undescribed(loaded)] });
}

/** What does not say what it returns: the model can then use its results only after it has seen one (L4). */
function undescribed({ entries }: Pick<LoadedManifests, 'entries'>): ManifestProblem[] {
  const warning = (file: string, what: string, how: string): ManifestProblem => ({
    file,
    line: 1,
    column: 1,
    field: 'returns',
    message: `${what} does not say what it returns, so the model cannot use its result before it has seen one${how}`,
  });
  return entries.flatMap(({ definition, file }) => {
    const { name } = definition;
    if (isShipped(file)) return [];
    if (definition.kind === 'Tool' && definition.returns === null && definition.implementation.type !== 'code')
      return [
        warning(file, `the tool "${name}"`, ` (${commandLine('returns', name)} writes it from recorded results)`),
      ];
    if (definition.kind !== 'Relic') return [];
    const without = Object.values(definition.endpoints).filter(({ returns }) => returns === null);
    return without.map((endpoint) => warning(file, `the endpoint "${name}.${endpoint.name}"`, ''));
  });
}

/** Everything that a build of the project loads; the issues are not printed. @param root the project's folder */
export function loadProject(root: string, folders: readonly string[], rights: ToolRights): LoadedManifests {
  return load(folders, true, readCodeTools(root, rights));
}

/** Loads any folder or file of an author together with the project's manifests, and returns the part of the author. */
function loadOwn(target: string, code: ProjectTools): LoadedManifests {
  const folders = projectFolders().filter((folder) => existsSync(folder));
  const isKnown = folders.some((folder) => isWithin(folder, target));
  const all = load(isKnown ? folders : [...folders, target], true, code);
  const others = folders.filter((folder) => folder !== MANIFESTS);
  if (relative(MANIFESTS, target) === '') {
    // What belongs to no folder, such as an issue of a code tool, counts for the first one.
    return others.length === 0 ? all : partOf(all, target, ({ file }) => !others.some((one) => isWithin(one, file)));
  }
  return partOf(all, target, ({ file }) => isWithin(target, file));
}

/**
 * Loads other texts in place of those of a folder, together with the project's manifests.
 *
 * @returns `load` returns everything, also of the project; `others` is what the project has without the folder
 */
export function inPlaceOf(
  target: string,
  code: ProjectTools,
): { readonly load: (files: readonly ManifestFile[]) => LoadedManifests; readonly others: Catalog } {
  const others = projectFolders()
    .filter((folder) => existsSync(folder))
    .map(readFolder)
    .map((folder) => ({ ...folder, files: folder.files.filter(({ path }) => !isWithin(target, path)) }));
  const load = (files: readonly ManifestFile[]): LoadedManifests =>
    loadFolders([...others, { files, problems: [], warnings: [], skipped: [] }], true, code, (all) => all);
  return { load, others: load([]).catalog };
}

function partOf(
  all: LoadedManifests,
  target: string,
  isOurs: (one: { readonly file: string }) => boolean,
): LoadedManifests {
  const entries = all.entries.filter(isOurs);
  const definitions = entries.map(({ definition }) => definition);
  const problems = all.problems.filter(isOurs);
  if (problems.length === 0 && entries.length === 0 && statSync(target).isFile()) {
    const message = 'is not a manifest (expected YAML, or Markdown with "kind" in its front matter)';
    problems.push({ file: target, line: 1, column: 1, field: '', message });
  }
  const catalog = createCatalog({
    agents: definitions.filter((one) => one.kind === 'Agent'),
    tools: definitions.filter((one) => one.kind === 'Tool'),
    relics: definitions.filter((one) => one.kind === 'Relic'),
    workflows: definitions.filter((one) => one.kind === 'Workflow'),
    skills: definitions.filter((one) => one.kind === 'Skill'),
    monuments: definitions.filter((one) => one.kind === 'Monument'),
  });
  const read = new Map([...all.read].filter(([file]) => isOurs({ file })));
  const warnings = all.warnings.filter(isOurs);
  return { ...all, entries, catalog, problems, warnings, skipped: all.skipped.filter(isOurs), read };
}

/** Warnings of a start; a folder of another system can have hundreds. */
const STARTING_WARNINGS = 12;

/** Its further lines are indented: a text from a file does not look like a line of this command. */
function lineOf(problem: ManifestProblem): string {
  return harmless(formatProblem(problem)).replaceAll('\n', '\n         ');
}

/** @param starting the folders of a start: prints the first warnings, and the command for the others */
function told<T extends LoadedManifests>(loaded: T, starting: readonly string[] | null = null): T {
  const { problems, warnings, skipped } = loaded;
  const shown = starting === null ? warnings : warnings.slice(0, STARTING_WARNINGS);
  for (const problem of problems) console.error(`error    ${lineOf(problem)}`);
  for (const warning of shown) console.error(`warning  ${lineOf(warning)}`);
  if (starting === null) for (const one of skipped) console.error(`note     ${lineOf(one)}`);
  else if (shown.length < warnings.length) {
    const rest = warnings.length - shown.length;
    const folder = starting.find((one) => warnings.at(-1)?.file.startsWith(one)) ?? MANIFESTS;
    console.error(`warning  … and ${rest} more; \`${commandLine('validate', folder)}\` prints all`);
  }
  return loaded;
}
