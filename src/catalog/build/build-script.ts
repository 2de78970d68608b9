/** Builds the program of a script tool: its source, the files beside it, and how it starts (M3). */
import { limits } from '../../domain/limits.ts';
import type { ScriptLaunch, ScriptRuntime } from '../../domain/manifests/program.ts';
import { normalPath } from '../read/paths.ts';
import type { ToolInput } from '../schema/schema.ts';
import { runtimeOf } from './build-base.ts';
import type { BuildContext } from './build-base.ts';
import { pythonImports } from './python-imports.ts';

type ScriptInput = Extract<ToolInput['implementation'], { type: 'script' }>;

export interface ScriptProgram {
  readonly runtime: ScriptRuntime;
  readonly source: string;
  readonly launch?: ScriptLaunch;
}

const AT = ['implementation'] as const;
const BASH = /^#![^\n]*\bbash\b/;
/** The script reads its first argument as JSON, or as a file. */
const READS_JSON = /\bjson\.loads\(\s*sys\.argv\[1\]\s*\)/;
const READS_FILE = /\bopen\(\s*sys\.argv\[1\]/;

export function toScript(written: ScriptInput, context: BuildContext): ScriptProgram {
  const { script, entrypoint } = written;
  if ((script === undefined) === (entrypoint === undefined)) {
    context.addIssue(AT, 'needs exactly one of "entrypoint" (a path) and "script" (the source code)');
  }
  const runtime = runtimeOfScript(written);
  if (runtime === undefined) context.addIssue([...AT, 'runtime'], 'is missing (allowed: python3, node, shell)');
  const read = entrypoint === undefined ? null : context.readFile(entrypoint, [...AT, 'entrypoint']);
  const source = script ?? read ?? '';
  const launch: ScriptLaunch = {
    ...filesOf(written, runtime ?? 'python3', source, context),
    argument: written.argument ?? argumentOf(source),
    environment: Object.fromEntries(
      Object.entries(written.environment ?? {}).map(([name, value]) => [name, String(value)]),
    ),
    bash: runtime === 'shell' && (written.runtime === 'bash' || BASH.test(source)),
  };
  return { runtime: runtime ?? 'python3', source, ...(isPlain(launch) ? {} : { launch }) };
}

function runtimeOfScript({ runtime, entrypoint = '' }: ScriptInput): ScriptRuntime | undefined {
  if (runtime === 'python') return 'python3';
  return runtime === 'bash' ? 'shell' : (runtime ?? runtimeOf(entrypoint));
}

function isPlain({ files, argument, environment, bash }: ScriptLaunch): boolean {
  return Object.keys(files).length === 0 && argument === 'json' && Object.keys(environment).length === 0 && !bash;
}

/** If the manifest does not say it: a script that clearly reads one of the forms gets that form. */
function argumentOf(source: string): ScriptLaunch['argument'] {
  return !readsJson(source) && READS_FILE.test(source) ? 'file' : 'json';
}

/** Whether a script clearly reads its first argument as JSON. */
export function readsJson(source: string): boolean {
  return READS_JSON.test(source);
}

/** The files that the manifest names, and the Python modules that the script imports, relative to one folder. */
function filesOf(
  { entrypoint, files: named = [] }: ScriptInput,
  runtime: ScriptRuntime,
  source: string,
  context: BuildContext,
): Pick<ScriptLaunch, 'path' | 'files'> {
  function findFile(path: string): string | null {
    return context.hasFile(path) ? context.readFile(path, [...AT, 'entrypoint']) : null;
  }
  const main = entrypoint ?? `tool.${EXTENSION[runtime]}`;
  const found = new Map<string, string>();
  for (const [index, path] of named.entries()) {
    const inside = path.endsWith('/') ? context.listFiles(path).slice(0, limits.scriptFiles + 1) : null;
    for (const one of inside?.map((name) => `${path}${name}`) ?? [path]) {
      const text = context.readFile(one, [...AT, 'files', index]);
      if (text !== null) found.set(one, text);
    }
  }
  if (runtime === 'python3' && entrypoint !== undefined) {
    for (const [path, text] of pythonImports(entrypoint, source, findFile)) found.set(path, text);
  }
  const inFolder = commonFolder([main, ...found.keys()]);
  const path = inFolder(main);
  const files = Object.fromEntries(
    [...found].map(([one, text]) => [inFolder(one), text]).filter(([one]) => one !== path),
  );
  if (found.size > limits.scriptFiles) {
    context.addIssue([...AT, 'files'], `${found.size} files (maximum ${limits.scriptFiles})`);
  }
  return { path, files };
}

const EXTENSION = { python3: 'py', node: 'js', shell: 'sh' } as const;

/** Maps paths relative to the manifest, also with `..`, to paths in a folder that contains all of them. */
function commonFolder(paths: readonly string[]): (path: string) => string {
  const normal = paths.map((path) => normalPath(path.replace(/^[/\\]+|^[A-Za-z]:[/\\]*/, '')));
  const ups = Math.max(...normal.map((path) => path.split('/').filter((step) => step === '..').length));
  const above = 'folder/'.repeat(ups);
  return (path) => normalPath(`${above}${path.replace(/^[/\\]+|^[A-Za-z]:[/\\]*/, '')}`);
}
