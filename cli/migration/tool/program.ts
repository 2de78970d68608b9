/**
 * The program of a tool or feed (M1). Cortex-MK1 calls a script with its input as JSON in the first argument; agent-lib
 * passes it on standard input, and the first argument is the path of a file with it.
 */
import { isJsonObject } from '../../../src/domain/json.ts';
import type { Json, JsonObject } from '../../../src/domain/json.ts';
import { readsJson } from '../../../src/catalog/build/build-script.ts';
import type { Draft } from '../draft.ts';

/** Fields of the top level that belong to the implementation in agent-lib. */
const PROGRAM = ['runtime', 'entrypoint', 'script', 'input_type', 'text_param'] as const;
/** Names of `timeout`, at the top level and in the implementation. */
const TIMEOUTS = ['timeout_secs', 'timeout_sec', 'timeout'] as const;
/** Runtimes that only start a file: a compiled program. */
const COMPILED: ReadonlySet<Json> = new Set(['process', 'binary', 'exec', 'direct', 'c', 'cpp', 'c++', 'go', 'rust']);
const AT = ['implementation'] as const;
const IMAGE_ADVICE =
  'use implementation: {type: container, build: {files: [Dockerfile, …]}} with a Dockerfile that compiles it; it gets its input as JSON in the first argument and on standard input';
const COMPILER_ADVICE =
  'with the files beside the manifest and the compiler of the sandbox; an image has its own compiler: implementation: {type: container, build: {files: [Dockerfile, …]}}';
const PACKAGE_ADVICE = 'use implementation: {type: container, build: {files, entrypoint, requirements}}';

export function understandProgram(draft: Draft): void {
  if (['executor', 'execution', 'service'].some((name) => draft.has([name]))) return;
  const implementation = draft.get(AT);
  if (implementation !== undefined && !isJsonObject(implementation)) return;
  const isAgentLib = implementation?.['type'] === undefined || draft.has(['input_schema']);
  gatherProgram(draft);
  if (!draft.has(AT)) return;
  compiledProgram(draft);
  firstArgument(draft, isAgentLib);
  timeout(draft);
  address(draft);
  build(draft);
  healthCheck(draft);
  environment(draft);
  dependencies(draft);
}

/** agent-lib has the fields of the program at the top level. */
function gatherProgram(draft: Draft): void {
  const moved = PROGRAM.filter((name) => draft.has([name]) && !draft.has([...AT, name]));
  const [first] = moved;
  if (first === undefined) return;
  draft.note([first], `understood as implementation: {${moved.join(', ')}}`);
  for (const name of moved) draft.move([name], [...AT, name]);
}

/**
 * A program with a build command is built in the sandbox by a script, at each call. The schema rejects the type of any
 * other, and the note says what to do.
 */
function compiledProgram(draft: Draft): void {
  const runtime = draft.get([...AT, 'runtime']);
  const isCompiled = runtime !== undefined && COMPILED.has(runtime);
  if (!isCompiled && draft.get([...AT, 'type']) !== 'binary') return;
  const path = isCompiled ? [...AT, 'runtime'] : [...AT, 'type'];
  const script = isCompiled ? buildScript(draft) : null;
  if (script === null) {
    draft.lose(path, `a compiled program runs only from an image: ${IMAGE_ADVICE}`);
    draft.set([...AT, 'type'], draft.get(path) ?? 'binary', path);
    return;
  }
  draft.lose(path, `understood as a script that builds and starts the program at each call, ${COMPILER_ADVICE}`);
  draft.set([...AT, 'type'], 'script', path);
  draft.set([...AT, 'runtime'], 'shell', path);
  draft.set([...AT, 'script'], script, path);
  draft.set([...AT, 'files'], ['./'], path);
  for (const name of ['entrypoint', 'build']) draft.remove([...AT, name]);
  draft.remove(['build']);
}

/** Source code that builds the program in the folder of the manifest; null if no command is given. */
function buildScript(draft: Draft): string | null {
  const written = draft.get([...AT, 'build']) ?? draft.get(['build']);
  const entrypoint = draft.get([...AT, 'entrypoint']);
  if (!isJsonObject(written) || typeof written['command'] !== 'string' || typeof entrypoint !== 'string') return null;
  const { command, cwd = '.' } = written;
  const quoted = (word: string): string => `'${word.replaceAll("'", String.raw`'\''`)}'`;
  const folder = typeof cwd === 'string' ? cwd : '.';
  const program = entrypoint.includes('/') ? entrypoint : `./${entrypoint}`;
  return `cd "\${0%/*}" || exit 1\n( cd ${quoted(folder)} && ${command}\n) >&2 || exit 1\nexec ${quoted(program)} "$@"\n`;
}

/** What the script gets as its first argument. */
function firstArgument(draft: Draft, isAgentLib: boolean): void {
  const path = [...AT, 'input_type'];
  const parameter = draft.get([...AT, 'text_param']);
  const written = draft.get(path);
  if (written === 'text' && typeof parameter === 'string') {
    draft.note(path, `text, understood as implementation.argument: {parameter: ${parameter}}`);
    draft.move([...AT, 'text_param'], [...AT, 'argument', 'parameter']);
    draft.remove(path);
    return;
  }
  if (written === 'json') draft.remove(path);
  const { type = 'script', runtime, entrypoint, script, argument } = draft.get(AT) as JsonObject;
  // without a runtime, it may be the name of a built-in tool
  const isScript = typeof script === 'string' || runtime !== undefined || /[./]/.test(String(entrypoint));
  if (!isAgentLib || !isScript || type !== 'script' || argument !== undefined) return;
  const source = typeof entrypoint === 'string' ? draft.around.textOf(entrypoint) : script;
  // agent-lib gives a script the path of a file
  if (!readsJson(String(source))) draft.set([...AT, 'argument'], 'file', AT);
}

function timeout(draft: Draft): void {
  for (const path of TIMEOUTS.flatMap((name) => [[name], [...AT, name]])) {
    if (path.length === 1 && path[0] === 'timeout') continue;
    if (!draft.has(path)) continue;
    if (draft.has(['timeout'])) {
      draft.note(path, 'has no effect beside timeout');
      draft.remove(path);
    } else {
      draft.note(path, 'understood as timeout');
      draft.move(path, ['timeout']);
    }
  }
}

/** A tool of type `api` has its URL in `entrypoint`; the original posts the parameters to it. */
function address(draft: Draft): void {
  const path = [...AT, 'entrypoint'];
  const entrypoint = draft.get(path);
  const type = draft.get([...AT, 'type']);
  if (type !== 'api' || typeof entrypoint !== 'string' || draft.has([...AT, 'url'])) return;
  draft.note(path, 'understood as implementation: {type: http, method: POST, url}');
  draft.set([...AT, 'type'], 'http');
  if (!draft.has([...AT, 'method'])) draft.set([...AT, 'method'], 'POST', path);
  draft.move(path, [...AT, 'url']);
}

/** Scripts run with the interpreter and its own library. */
function build(draft: Draft): void {
  const type = draft.get([...AT, 'type']);
  for (const path of [[...AT, 'build'], ['build']]) {
    const written = draft.get(path);
    if (!isJsonObject(written) || (type !== undefined && type !== 'script')) continue;
    const { requirements_file: file } = written;
    const packages = typeof file === 'string' ? `, so the packages of ${file.slice(0, 100)} are not installed` : '';
    draft.lose(path, `ignored: scripts are not built${packages}; for a tool that needs it, ${PACKAGE_ADVICE}`);
    draft.remove(path);
  }
}

/** Tools start anew for each call. */
function healthCheck(draft: Draft): void {
  for (const path of [[...AT, 'health_check'], ['health_check']]) {
    if (!draft.has(path)) continue;
    draft.note(path, 'ignored: a tool starts anew for each call');
    draft.remove(path);
  }
}

function environment(draft: Draft): void {
  const path = ['environment'];
  const written = draft.get(path);
  if (!isJsonObject(written)) return;
  const variables = isJsonObject(written['variables']) ? [...path, 'variables'] : null;
  const type = draft.get([...AT, 'type']);
  if (variables !== null && (type === undefined || type === 'script') && !draft.has([...AT, 'environment'])) {
    draft.note(variables, 'understood as implementation.environment');
    draft.move(variables, [...AT, 'environment']);
  }
  const rest = Object.keys(written);
  if (rest.length > 0)
    draft.lose(
      path,
      `ignored: ${rest.join(', ')}; the tools of an agent get the agent's secrets, see docs/manifests.md`,
    );
  draft.remove(path);
}

function dependencies(draft: Draft): void {
  if (!Array.isArray(draft.get(['dependencies']))) return;
  draft.lose(['dependencies'], 'ignored: nothing is installed or imported for a tool');
  draft.remove(['dependencies']);
}
