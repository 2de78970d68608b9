/** wrangler.toml and the Worker's entry: what the package needs of them. */
import { dirname, join } from 'node:path';
import { RUNTIME_ENTRYPOINTS, RUNTIME_OBJECTS } from '../../src/domain/bindings.ts';
import { found } from './finding.ts';
import type { CheckResult, Finding } from './finding.ts';
import type { Machine } from './machine.ts';
import type { Environment, ProjectFiles } from './project-files.ts';

/** From this date on, timers and waitUntil hold an object, and streams end with their request. */
export const COMPATIBILITY_DATE = '2026-10-01';
export const COMPATIBILITY_FLAGS = ['enable_request_signal', 'request_signal_passthrough'];

export function checkWrangler({ environment, fault }: ProjectFiles, machine: Machine): CheckResult {
  if (fault !== null) return found('wrangler_file_invalid', fault);
  if (environment === null) return found('wrangler_file_missing', 'the folder has no wrangler.toml');
  const findings = [
    bindings(environment),
    migrations(environment),
    build(environment),
    compatibility(environment, machine),
  ].flat();
  if (findings.length > 0) return findings;
  return `${environment.objects.size} objects, compatibility date ${environment.compatibilityDate}`;
}

function bindings({ objects }: Environment): Finding[] {
  return Object.entries(RUNTIME_OBJECTS).flatMap(([name, type]) => {
    const bound = objects.get(name);
    if (bound === type) return [];
    const message =
      bound === undefined ? `no binding ${name} of the class ${type}` : `the binding ${name} has the class ${bound}`;
    return found('binding_missing', message, bindingLines(name, type));
  });
}

function bindingLines(name: string, type: string): string {
  return `[[durable_objects.bindings]]\nname = "${name}"\nclass_name = "${type}"`;
}

function migrations({ objects, migrations: steps }: Environment): Finding[] {
  const states = new Map<string, 'sql' | 'plain'>();
  for (const step of steps) {
    for (const name of namesOf(step['new_sqlite_classes'])) states.set(name, 'sql');
    for (const name of namesOf(step['new_classes'])) states.set(name, 'plain');
    for (const { from, to } of renamings(step['renamed_classes'])) {
      const state = states.get(from);
      states.delete(from);
      if (state !== undefined) states.set(to, state);
    }
    for (const name of namesOf(step['deleted_classes'])) states.delete(name);
  }
  const wanted = new Set([...Object.values(RUNTIME_OBJECTS), ...objects.values()]);
  const missing = [...wanted].filter((name) => !states.has(name));
  const plain = Object.values(RUNTIME_OBJECTS).filter((name) => states.get(name) === 'plain');
  const list = missing.map((name) => `"${name}"`).join(', ');
  const fix = `[[migrations]]\ntag = "${nextTag(steps)}"\nnew_sqlite_classes = [${list}]`;
  return [
    ...(missing.length === 0 ? [] : [found('migration_missing', `no migration creates ${missing.join(', ')}`, fix)]),
    ...plain.map((name) =>
      found(
        'migration_without_sqlite',
        `${name} is in new_classes`,
        `new_sqlite_classes = ["${name}"] instead of new_classes`,
      ),
    ),
  ];
}

function namesOf(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((one) => typeof one === 'string') : [];
}

function renamings(value: unknown): { readonly from: string; readonly to: string }[] {
  const list: unknown[] = Array.isArray(value) ? value : [];
  return list.flatMap((one) => {
    const { from, to } = one as { from?: unknown; to?: unknown };
    return typeof from === 'string' && typeof to === 'string' ? [{ from, to }] : [];
  });
}

/** Tags are unique; this one follows the last of the form v1, v2. */
function nextTag(steps: Environment['migrations']): string {
  const numbers = steps.map(({ tag }) => Number(/^v(\d+)$/.exec(String(tag))?.[1] ?? 0));
  return `v${Math.max(steps.length, ...numbers) + 1}`;
}

function build({ hasBuild }: Environment): Finding | [] {
  if (hasBuild) return [];
  const fix = `[build]\ncommand = "${BUILD}"\nwatch_dir = ["manifests", "tools"]`;
  return found('build_missing', 'no [build] command', fix);
}

/** The command of the template. */
const BUILD = 'node node_modules/cortex-edge/dist/cli/main.js build';

function compatibility({ compatibilityDate, compatibilityFlags }: Environment, machine: Machine): Finding[] {
  const missing = COMPATIBILITY_FLAGS.filter((flag) => !compatibilityFlags.includes(flag));
  const all = [...new Set([...compatibilityFlags, ...missing])].map((flag) => `"${flag}"`).join(', ');
  const isOld = compatibilityDate === null || compatibilityDate < COMPATIBILITY_DATE;
  const today = new Date(machine.now()).toISOString().slice(0, 10);
  const date = `compatibility_date = "${COMPATIBILITY_DATE}"`;
  const findings: Finding[] = [];
  if (compatibilityDate !== null && compatibilityDate > today) {
    const message = `the compatibility date ${compatibilityDate} is in the future`;
    findings.push(found('compatibility_date_future', message, date));
  }
  if (isOld) {
    const message = `the compatibility date is ${compatibilityDate ?? 'not set'}; at least ${COMPATIBILITY_DATE} is needed`;
    findings.push(found('compatibility_date_old', message, date));
  }
  if (missing.length > 0) {
    const message = `the compatibility flags lack ${missing.join(', ')}`;
    findings.push(found('compatibility_flag_missing', message, `compatibility_flags = [${all}]`));
  }
  return findings;
}

/** The Worker's entry must export the classes that its bindings name, and the entrypoints of the package. */
export function checkWorker({ root, environment }: ProjectFiles, machine: Machine): CheckResult {
  if (environment === null) return [];
  const { main } = environment;
  if (main === null) return found('main_missing', 'wrangler.toml has no "main"');
  const exported = exportsOf(join(root, main), machine);
  if (exported === null) {
    return found(
      'main_missing',
      `${main} does not exist`,
      `main = "src/worker.ts" in wrangler.toml, or create ${main}`,
    );
  }
  const isMissing = (name: string): boolean => !exported.has(name) && !(exported.has('*') && isOfPackage(name));
  const objects = [...new Set([...Object.values(RUNTIME_OBJECTS), ...environment.objects.values()])];
  const missing = objects.filter(isMissing);
  const entrypoints = RUNTIME_ENTRYPOINTS.filter(isMissing);
  if (missing.length + entrypoints.length === 0) {
    return `${main} exports all ${objects.length + RUNTIME_ENTRYPOINTS.length} classes`;
  }
  const findings: Finding[] = [];
  if (missing.length > 0) {
    const own = missing.filter(isOfPackage);
    const fix = own.length === 0 ? `export ${missing.join(', ')} in ${main}` : exportLine(own);
    findings.push(found('object_not_exported', `${main} does not export ${missing.join(', ')}`, fix));
  }
  if (entrypoints.length > 0) {
    const message = `${main} does not export ${entrypoints.join(', ')}`;
    findings.push(found('entrypoint_not_exported', message, exportLine(entrypoints)));
  }
  return findings;
}

function exportLine(names: readonly string[]): string {
  return `export { ${names.join(', ')} } from 'cortex-edge';`;
}

function isOfPackage(name: string): boolean {
  return Object.values(RUNTIME_OBJECTS).includes(name) || RUNTIME_ENTRYPOINTS.includes(name);
}

/** Files that `export *` leads through. */
const MOST_FILES = 20;
const COMMENTS = /\/\*[^]*?\*\/|\/\/[^\n]*/g;

/** The exported names; `*` for all of the package. Null if the file does not exist. */
function exportsOf(path: string, machine: Machine, visited = new Set<string>()): ReadonlySet<string> | null {
  const text = machine.read(path)?.replaceAll(COMMENTS, '');
  if (text === undefined) return null;
  visited.add(path);
  const names = new Set<string>();
  for (const [, list = ''] of text.matchAll(/\bexport\s*\{([^}]*)\}/g)) {
    for (const one of list.split(','))
      names.add(
        one
          .trim()
          .split(/\s+as\s+/)
          .at(-1) ?? '',
      );
  }
  for (const [, name = ''] of text.matchAll(/\bexport\s+(?:class|const|function)\s+([\w$]+)/g)) names.add(name);
  for (const [, from = ''] of text.matchAll(/\bexport\s*\*\s*from\s*["']([^"']+)["']/g)) {
    const target = join(dirname(path), from);
    if (!from.startsWith('.')) names.add('*');
    else if (visited.size < MOST_FILES && !visited.has(target)) {
      for (const name of exportsOf(target, machine, visited) ?? []) names.add(name);
    }
  }
  return names;
}
