/** Where the code of Cortex Edge is, and where the project is that it works on. In this repository they are the same. */
import { existsSync } from 'node:fs';
import { dirname, isAbsolute, join, relative, resolve } from 'node:path';

/** The folder with `cli/`, `container-runner/` and `manifests/` of Cortex Edge: a clone, or `dist/` of the package. */
export const PACKAGE_ROOT = join(import.meta.dirname, '../..');

let found = nearest(process.cwd());

/** Whether the current folder is in a project. */
export let HAS_PROJECT = found !== null;

/** The project: the nearest folder, at or above the current one, with a `wrangler.toml`; else the current one. */
export let PROJECT_ROOT = found ?? process.cwd();

/** The project's manifests, relative to it. */
export const MANIFESTS = 'manifests';

/** The project's code tools, relative to it. */
export const TOOLS = 'tools';

/** What `cortex build` makes of manifests and code tools, relative to the project. */
export const GENERATED = 'src/project.generated.ts';

/** Whether the project is Cortex Edge itself, so that its manifests are the shipped ones. */
export let IS_OWN_PROJECT = PROJECT_ROOT === PACKAGE_ROOT;

/** Finds the project of the current folder again: each command line works on its own. */
export function findProject(): void {
  found = nearest(process.cwd());
  HAS_PROJECT = found !== null;
  PROJECT_ROOT = found ?? process.cwd();
  IS_OWN_PROJECT = PROJECT_ROOT === PACKAGE_ROOT;
}

/** A module of Cortex Edge that runs as a program: TypeScript in a clone, JavaScript in the package. */
export function programPath(path: string): string {
  const source = join(PACKAGE_ROOT, `${path}.ts`);
  return existsSync(source) ? source : join(PACKAGE_ROOT, `${path}.js`);
}

function nearest(folder: string): string | null {
  if (existsSync(join(folder, 'wrangler.toml'))) return folder;
  const above = dirname(folder);
  return above === folder ? null : nearest(above);
}

/**
 * Makes the project's folder the current one, because paths of manifests are relative to it.
 *
 * @param paths that the user has written, relative to the folder where the command was called
 * @returns the same paths, relative to the project
 */
export function enterProject(paths: readonly string[] = []): string[] {
  const entered = paths.map((path) => (isAbsolute(path) ? path : relative(PROJECT_ROOT, resolve(path)) || '.'));
  process.chdir(PROJECT_ROOT);
  return entered;
}
