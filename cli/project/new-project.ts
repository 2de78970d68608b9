/** Makes a project from the template, for `cortex init` and `npm create cortex-edge`. Uses Node only. */
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { basename, join, relative, resolve } from 'node:path';

/** The name of the template's Worker and package. */
const TEMPLATE_NAME = 'my-agent';
/** The rule for names of Workers, which is stricter than that of npm. */
const NAME = /^[a-z0-9]([a-z0-9-]{0,52}[a-z0-9])?$/;
/** Files with the name. */
const NAMED = ['package.json', 'package-lock.json', 'wrangler.toml', 'README.md', 'runner/Dockerfile'];
/** What npm, `cortex` and wrangler write into a project; the template of a clone can contain it. */
const WRITTEN =
  /(^|[\\/])(node_modules|\.cortex|\.wrangler|\.dev\.vars|wrangler\.[^\\/]*\.jsonc)([\\/]|$)|\.generated\.ts$/;
/** Files that may be in the folder already. */
const HARMLESS: ReadonlySet<string> = new Set(['.git', '.DS_Store', 'LICENSE']);

/**
 * @param template the folder of the template
 * @param folder where the project is made; relative to the current one
 * @param name of the Worker and the package; default: that of the folder
 * @returns the project's folder and name
 * @throws Error that says what to do; nothing is written then
 */
export function newProject(
  template: string,
  folder: string,
  name: string = nameOf(folder),
): { readonly folder: string; readonly name: string } {
  if (folder.trim() === '') throw new Error('Name the folder of the project');
  if (!NAME.test(name)) {
    throw new Error(
      `"${name}" is not a name for a Worker: up to 54 lower-case letters, digits and "-". Give another one with --name`,
    );
  }
  const target = resolve(folder);
  if (statSync(target, { throwIfNoEntry: false })?.isFile() === true) {
    throw new Error(`${folder} is a file. Name a new folder`);
  }
  const present = existsSync(target) ? readdirSync(target).filter((file) => !HARMLESS.has(file)) : [];
  if (present.length > 0) {
    const shown = present.slice(0, 3).join(', ');
    throw new Error(`${folder} is not empty (${shown}${present.length > 3 ? ', …' : ''}). Name a new folder`);
  }
  mkdirSync(target, { recursive: true });
  cpSync(template, target, { recursive: true, filter: (file) => isOfTemplate(relative(template, file)) });
  if (existsSync(join(target, '_gitignore'))) renameSync(join(target, '_gitignore'), join(target, '.gitignore'));
  for (const file of NAMED) {
    const path = join(target, file);
    writeFileSync(path, readFileSync(path, 'utf8').replaceAll(TEMPLATE_NAME, name));
  }
  return { folder: relative(process.cwd(), target) || '.', name };
}

/**
 * Whether a new project gets this file.
 *
 * @param path of a file or a folder, relative to the template
 */
export function isOfTemplate(path: string): boolean {
  return !WRITTEN.test(path);
}

/** What to do next, as lines. */
export function nextSteps(folder: string): string[] {
  const enter = folder === '.' ? [] : [`  cd ${asArgument(folder)}`];
  return ['Next:', ...enter, '  npm install', '  npm test', '  npm start'];
}

/** As it can be pasted into a shell. */
function asArgument(path: string): string {
  const safe = path.startsWith('-') ? `./${path}` : path;
  return /^[\w./:\\@+-]+$/.test(safe) ? safe : `'${safe.replaceAll("'", String.raw`'\''`)}'`;
}

function nameOf(folder: string): string {
  return basename(resolve(folder))
    .toLowerCase()
    .replaceAll(/[^a-z0-9-]+/g, '-')
    .replaceAll(/^-+|-+$/g, '');
}
