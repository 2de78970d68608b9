/** The code tools of a project: `tools/*.ts`. Their schemas exist only when their code has run, which a process does. */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import type { ManifestProblem } from '../../src/domain/catalog.ts';
import type { DescribedTool } from '../../src/domain/code-tool.ts';
import { programPath, TOOLS } from './folders.ts';
import { MODULE_MS } from './tool-loader.ts';

/** Allowance for bundling and the start of threads. Each module has a limit of its own (tool-loader.ts). */
const BUNDLE_MS = 30_000;

export interface ProjectTools {
  readonly tools: readonly DescribedTool[];
  /** Files that cannot be bundled or loaded, or that define no tool. */
  readonly problems: readonly ManifestProblem[];
  /** Files that define no tool because of a problem, in order. */
  readonly faulty: readonly string[];
  /** Hash of the code of all tools. */
  readonly hash: string;
}

/** @param root the project's folder */
export function readCodeTools(root: string): ProjectTools {
  const files = toolFiles(root);
  if (files.length === 0) return { tools: [], problems: [], faulty: [], hash: '' };
  const folder = mkdtempSync(join(tmpdir(), 'cortex-tools-'));
  try {
    const answer = join(folder, 'tools.json');
    // a module can be loaded twice
    const timeout = BUNDLE_MS + files.length * 2 * MODULE_MS;
    const { status, signal, stderr } = spawnSync(
      process.execPath,
      [programPath('cli/project/read-code-tools'), root, answer, ...files],
      { env: { PATH: process.env['PATH'] ?? '' }, encoding: 'utf8', timeout, killSignal: 'SIGKILL' },
    );
    if (status === 0 && existsSync(answer)) return JSON.parse(readFileSync(answer, 'utf8')) as ProjectTools;
    const why =
      signal === null ? `ended with ${status}: ${stderr.trim().slice(-2_000)}` : `took over ${timeout / 1_000} s`;
    const message = `the code of the tools could not be loaded: the process that loads ${files.join(', ')} ${why}`;
    return { tools: [], problems: [{ file: TOOLS, line: 1, column: 1, field: '', message }], faulty: files, hash: '' };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Files directly in `tools/`; those that begin with `_`, tests and declarations define no tools, and neither do folders. */
export function toolFiles(root: string): string[] {
  const folder = join(root, TOOLS);
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.[mc]?tsx?$/.test(entry.name))
    .filter(({ name }) => !/^_|\.d\.[mc]?ts$|\.(test|spec)\./.test(name))
    .map(({ name }) => `${TOOLS}/${name}`)
    .sort();
}

/** The name that the tool in a file must have. */
export function nameOfFile(file: string): string {
  return basename(file).replace(/\.[mc]?tsx?$/, '');
}
