/** What the checks ask outside of their own process: files, programs, addresses and the clock. Tests replace parts of it. */
import { spawn } from 'node:child_process';
import { readFileSync, statSync } from 'node:fs';
import { isAbsolute, join, relative, sep } from 'node:path';
import { secretsNamedBy } from '../../src/catalog/check/secrets.ts';
import { formatProblem } from '../../src/catalog/check/problem.ts';
import { messageOf } from '../../src/domain/errors.ts';
import type { ToolRights } from '../project/code-tools.ts';
import { loadProject } from '../project/manifest-files.ts';
import { requireReadable } from '../project/real-path.ts';
import { portIsFree } from '../system/services.ts';
import { QUIET, wranglerProgram } from '../system/wrangler.ts';

/** A file that a check reads: settings, configurations, lock files. */
const FILE_BYTES = 16_777_216;
/** Output of a program that a check reads. */
const OUTPUT_CHARS = 262_144;
/** Wrangler asks Cloudflare, and waits long without a network. */
const PROGRAM_MS = 20_000;
/** A health request of the Worker waits 2.5 seconds; another continent and a cold start may add to it. */
const FETCH_MS = 8_000;

export interface ProgramEnd {
  /** Null if the program does not exist, or was ended after its time. */
  readonly status: number | null;
  /** Both streams. */
  readonly output: string;
  /** Of the standard output alone. */
  readonly stdout: string;
}

export interface ManifestReport {
  /** Why nothing could be loaded, such as a setting that is not valid; null if the manifests were read. */
  readonly fault: string | null;
  /** Folders of manifests that do not exist. */
  readonly missing: readonly string[];
  /** `file:line:column: message` of each error. */
  readonly errors: readonly { readonly file: string; readonly text: string }[];
  readonly warnings: number;
  readonly definitions: number;
  /** Secrets that manifests name (`TOOL_…`), with the file. */
  readonly secrets: readonly { readonly name: string; readonly file: string }[];
  /** Bindings that the manifests of code tools name, with tool and file. */
  readonly bindings: readonly { readonly name: string; readonly tool: string; readonly file: string }[];
}

/** A configuration of wrangler as it is written in its file. */
export type WranglerFile = Readonly<Record<string, unknown>>;

export interface Machine {
  /** Without the `v`. */
  readonly nodeVersion: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Epoch milliseconds. */
  now(): number;
  /** @returns null if there is no such file, if a link leads out of the project to it, or if it is larger than 16 MiB */
  read(path: string): string | null;
  /** Runs a program in a folder. Never rejects. */
  run(folder: string, program: string, args: readonly string[]): Promise<ProgramEnd>;
  /** Runs the wrangler of the package, as the other commands do. @returns null if it is not installed */
  wrangler(folder: string, args: readonly string[]): Promise<ProgramEnd | null>;
  /** @throws if there is no answer within 8 seconds */
  fetch(url: string, init?: RequestInit): Promise<Response>;
  isPortFree(port: number): Promise<boolean>;
  /** @throws Error with wrangler's message for a file that is not valid */
  readWrangler(path: string): Promise<WranglerFile>;
  /** @param folders the folders of manifests, relative to the project */
  manifests(root: string, folders: readonly string[], rights: ToolRights): ManifestReport;
}

export const machine: Machine = {
  nodeVersion: process.versions.node,
  environment: process.env,
  now: () => Date.now(),
  read(path) {
    const stat = statSync(path, { throwIfNoEntry: false });
    if (stat?.isFile() !== true || stat.size > FILE_BYTES || !isReadable(path)) return null;
    return readFileSync(path, 'utf8');
  },
  run: runProgram,
  async wrangler(folder, args) {
    let program: string;
    try {
      program = wranglerProgram();
    } catch {
      return null;
    }
    return await runProgram(folder, process.execPath, [program, ...args]);
  },
  fetch: async (url, init = {}) => await fetch(url, { ...init, signal: AbortSignal.timeout(FETCH_MS) }),
  isPortFree: portIsFree,
  async readWrangler(path) {
    // Wrangler is large: only when its file is read.
    const { experimental_readRawConfig: readRawConfig } = await import('wrangler');
    return readRawConfig({ config: path }).rawConfig as unknown as WranglerFile;
  },
  manifests: manifestsOf,
};

/** Packages are often links. */
function isReadable(path: string): boolean {
  try {
    if (!path.includes(`${sep}node_modules${sep}`)) requireReadable(path);
    return true;
  } catch {
    return false;
  }
}

/** `git ls-files` runs the command that the configuration of the repository has in `core.fsmonitor`. */
const NO_MONITOR = { GIT_CONFIG_COUNT: '1', GIT_CONFIG_KEY_0: 'core.fsmonitor', GIT_CONFIG_VALUE_0: 'false' } as const;

function runProgram(folder: string, program: string, args: readonly string[]): Promise<ProgramEnd> {
  return new Promise((resolve) => {
    let output = '';
    let stdout = '';
    const child = spawn(program, args, {
      cwd: folder,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, ...QUIET, ...NO_MONITOR },
      timeout: PROGRAM_MS,
      killSignal: 'SIGKILL',
    });
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout = (stdout + text).slice(0, OUTPUT_CHARS);
      output = (output + text).slice(0, OUTPUT_CHARS);
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      output = (output + text).slice(0, OUTPUT_CHARS);
    });
    child.on('error', ({ message }) => resolve({ status: null, output: message, stdout: '' }));
    child.on('close', (status) => resolve({ status, output, stdout }));
  });
}

function manifestsOf(root: string, folders: readonly string[], rights: ToolRights): ManifestReport {
  // Paths of issues are relative to the current folder.
  const targets = folders.map((folder) => (isAbsolute(folder) ? folder : relative(process.cwd(), join(root, folder))));
  const missing = targets.filter((target) => statSync(target, { throwIfNoEntry: false })?.isDirectory() !== true);
  const nothing = { fault: null, missing, errors: [], warnings: 0, definitions: 0, secrets: [], bindings: [] };
  const there = targets.filter((target) => !missing.includes(target));
  if (there.length === 0) return nothing;
  try {
    const { problems, warnings, entries } = loadProject(root, there, rights);
    return {
      fault: null,
      missing,
      errors: problems.map((one) => ({ file: one.file, text: formatProblem(one) })),
      warnings: warnings.length,
      definitions: entries.length,
      secrets: entries.flatMap(({ definition, file }) =>
        secretsNamedBy(definition).map(({ name }) => ({ name, file })),
      ),
      bindings: entries.flatMap(({ definition, file }) => {
        if (definition.kind !== 'Tool' || definition.implementation.type !== 'code') return [];
        const { name: tool, implementation } = definition;
        return implementation.bindings.map((name) => ({ name, tool, file }));
      }),
    };
  } catch (fault) {
    return { ...nothing, fault: messageOf(fault) };
  }
}
