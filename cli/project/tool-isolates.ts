/**
 * Loads bundled code tools in isolates of workerd, so that their code has no rights of the user: no files, processes,
 * network, variables or bindings.
 *
 * Owns the workerd processes and their limits. Does not bundle, and does not check names.
 *
 * Invariants:
 * 1. Each module runs in an isolate of its own. One workerd runs at a time, and it ends with this process.
 * 2. An answer is read as untrusted data, with a limit of bytes and of depth: code of the module shares the isolate of the
 *    code that describes it.
 * 3. A module is blamed for the end of a workerd only if it was alone in it.
 */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import type { DescribedTool } from '../../src/domain/code-tool.ts';
import { messageOf } from '../../src/domain/errors.ts';
import { exceededLimit, isJsonObject, parseJson } from '../../src/domain/json.ts';
import { limits } from '../../src/domain/limits.ts';
import { wranglerProgram } from '../system/wrangler.ts';
import { UNLOADED } from './describe-tool.ts';
import { MODULE_MS } from './tool-loader.ts';
import type { BundledTool, RunTools, StartTimer } from './tool-loader.ts';

/** The name of a tool's module in its isolate. */
export const TOOL_MODULE = 'tool.mjs';

const ISOLATES_AT_ONCE = 16;
/** Of one workerd, in kilobytes and seconds. */
const MEMORY_KB = 1_048_576;
const CPU_SECONDS = 120;
/** What one tool may answer: a schema has a few kilobytes. */
const ANSWER_BYTES = 1_048_576;
const STDERR_CHARS = 8_000;

/**
 * Limits workerd, and ends it when our end of the pipe closes, also if this process is killed. workerd gets no standard
 * input, and the shell no descriptor of the ports.
 */
const GUARD = `ulimit -d ${MEMORY_KB}; ulimit -t ${CPU_SECONDS}; "$@" </dev/null & exec 3>&-; read -r _; kill -9 $!`;

/**
 * @param folder of the bundled modules and of `main.mjs`, which describes the tool in `TOOL_MODULE`
 * @returns loads tools for `loadTools`
 */
export function isolatesIn(folder: string): RunTools {
  return async function run(tools, results, startTimer) {
    const some = tools.slice(0, ISOLATES_AT_ONCE);
    const [first] = some;
    const ending = await runWorkerd(folder, some, results, startTimer);
    if (first === undefined || results.has(first.file)) return;
    if (some.length === 1)
      results.set(first.file, `${UNLOADED}: its isolate ended${ending === '' ? '' : `: ${ending}`}`);
    // Another one may have ended it: workerd reads all modules at its start.
    else await run([first], results, startTimer);
  };
}

/** Loads tools until one of them ends or blocks the workerd. @returns what it said about its end */
async function runWorkerd(folder: string, ...[tools, results, startTimer]: Parameters<RunTools>): Promise<string> {
  const file = join(folder, 'config.capnp');
  writeFileSync(file, configOf(tools));
  const workerd = new Workerd(file);
  try {
    for (const [at, tool] of tools.entries()) {
      const found = await workerd.ask(`tool${at}`, tool, startTimer);
      if (found !== null) results.set(tool.file, found);
      if (found === null || found === TOO_LONG) break;
    }
  } finally {
    await workerd.end();
  }
  return workerd.lastError;
}

const TOO_LONG = `${UNLOADED}: it took longer than ${MODULE_MS / 1_000} s`;

/** Nothing answers outgoing requests and connections; `internet` replaces the service that workerd has by default. */
function configOf(tools: readonly BundledTool[]): string {
  const worker = (modules: string): string =>
    `worker = (modules = [${modules}], compatibilityDate = "2026-10-01", globalOutbound = "nothing")`;
  const services = tools.map(({ module }, at) => {
    const modules = `(name = "main.mjs", esModule = embed "main.mjs"), (name = "${TOOL_MODULE}", esModule = embed ${JSON.stringify(basename(module))})`;
    return `(name = "tool${at}", ${worker(modules)}),`;
  });
  const sockets = tools.map(
    (_, at) => `(name = "tool${at}", address = "127.0.0.1:0", http = (), service = "tool${at}"),`,
  );
  return `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "internet", network = (allow = [])),
    (name = "nothing", worker = (modules = [(name = "nothing.mjs", esModule = "export default {}")], compatibilityDate = "2026-10-01")),
    ${services.join('\n    ')}
  ],
  sockets = [${sockets.join(' ')}],
);
`;
}

class Workerd {
  readonly #child: ChildProcess;
  readonly #ports = new Map<string, number>();
  readonly #waiting = new Map<string, (port: number | null) => void>();
  readonly #closed: Promise<unknown>;
  #hasEnded = false;
  #stderr = '';

  constructor(config: string) {
    const command = [workerdProgram(), 'serve', config, '--control-fd=3'];
    const [program = '', ...args] = process.platform === 'win32' ? command : ['/bin/sh', '-c', GUARD, 'sh', ...command];
    this.#child = spawn(program, args, { stdio: ['pipe', 'ignore', 'pipe', 'pipe'], env: {} });
    this.#closed = new Promise((resolve) => this.#child.once('close', resolve));
    this.#child.on('error', (fault) => this.#stop(messageOf(fault)));
    this.#child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.#stderr = `${this.#stderr}${text}`.slice(-STDERR_CHARS);
    });
    // An end of the pipe that is closed already.
    this.#child.stdin?.on('error', () => undefined);
    const control = createInterface({ input: this.#child.stdio[3] as Readable });
    control.on('line', (line) => this.#listens(line));
    control.on('close', () => this.#stop());
  }

  /** @returns null if this workerd has ended */
  async ask(socket: string, { file }: BundledTool, startTimer: StartTimer): Promise<DescribedTool | string | null> {
    const late = new AbortController();
    const cancel = startTimer(() => late.abort(), MODULE_MS, file);
    try {
      const port = await this.#portOf(socket, late.signal);
      if (port === null) return late.signal.aborted ? TOO_LONG : null;
      const response = await fetch(`http://127.0.0.1:${port}/`, { signal: late.signal, redirect: 'error' });
      const text = await textOf(response);
      return text === null ? `${UNLOADED}: its description has more than ${ANSWER_BYTES} bytes` : toolOf(file, text);
    } catch {
      return late.signal.aborted ? TOO_LONG : null;
    } finally {
      cancel();
    }
  }

  get lastError(): string {
    // V8 and the allocator each say it in their own words.
    if (/out of memory|cannot allocate memory/i.test(this.#stderr))
      return `out of memory (at most ${MEMORY_KB / 1_024} MiB)`;
    return /(?:error|fatal)[^\n]*/i.exec(this.#stderr)?.[0] ?? this.#stderr.trim().split('\n')[0] ?? '';
  }

  async end(): Promise<void> {
    this.#child.stdin?.end();
    if (process.platform === 'win32') this.#child.kill();
    await this.#closed;
  }

  async #portOf(socket: string, late: AbortSignal): Promise<number | null> {
    const known = this.#ports.get(socket) ?? null;
    if (known !== null || this.#hasEnded || late.aborted) return known;
    return await new Promise((resolve) => {
      this.#waiting.set(socket, resolve);
      late.addEventListener('abort', () => resolve(null), { once: true });
    });
  }

  #listens(line: string): void {
    const event = parseJson(line);
    if (!isJsonObject(event) || typeof event['socket'] !== 'string' || typeof event['port'] !== 'number') return;
    this.#ports.set(event['socket'], event['port']);
    this.#waiting.get(event['socket'])?.(event['port']);
  }

  #stop(why = ''): void {
    this.#hasEnded = true;
    this.#stderr += why;
    for (const resolve of this.#waiting.values()) resolve(null);
  }
}

/** workerd is a package that wrangler depends on. @throws Error if it is not installed, or not for this machine */
function workerdProgram(): string {
  const { default: program } = createRequire(wranglerProgram())('workerd') as { readonly default: string };
  return program;
}

/** @returns null for more than `ANSWER_BYTES` */
async function textOf({ body }: Response): Promise<string | null> {
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const part of (body ?? []) as AsyncIterable<Uint8Array>) {
    bytes += part.length;
    if (bytes > ANSWER_BYTES) return null;
    parts.push(part);
  }
  return Buffer.concat(parts).toString('utf8');
}

const EFFECTS: readonly unknown[] = ['pure', 'idempotent', 'unsafe'] satisfies DescribedTool['effects'][];

function toolOf(file: string, text: string): DescribedTool | string {
  const answer = exceededLimit(text, { depth: limits.jsonDepth }) === null ? parseJson(text) : undefined;
  if (typeof answer === 'string') return answer.slice(0, limits.codeToolErrorChars);
  const { name, description, effects, parameters, example } = isJsonObject(answer) ? answer : {};
  if (
    typeof name !== 'string' ||
    typeof description !== 'string' ||
    !EFFECTS.includes(effects) ||
    !isJsonObject(parameters)
  ) {
    return `${UNLOADED}: its description is not valid`;
  }
  const described = { file, name, description, effects: effects as DescribedTool['effects'], parameters };
  return example === undefined ? described : { ...described, example };
}
