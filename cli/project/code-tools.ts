/** The code tools of a project: `tools/*.ts`. Their schemas exist only when their code has run, which a process does. */
import { spawnSync } from 'node:child_process';
import { existsSync, lstatSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import type { CommandCall } from '../command.ts';
import type { ManifestProblem } from '../../src/domain/catalog.ts';
import type { DescribedTool } from '../../src/domain/code-tool.ts';
import { messageOf } from '../../src/domain/errors.ts';
import { programPath, TOOLS } from './folders.ts';
import { boundsOf, readFileIn, realPathIn } from './real-path.ts';
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

/** What the code of the tools may do while it is loaded: nothing (K4), or all that the user may do. */
export type ToolRights = 'isolated' | 'of the user';

/** The option of commands that only read definitions. */
export const TRUST_OPTION = { trust: { type: 'boolean' } } as const;
export const TRUST_HELP =
  "  --trust          loads the project's tools/*.ts with your rights; default: in an isolate without any";

/** What the option says. */
export function rightsOf({ values }: Pick<CommandCall, 'values'>): ToolRights {
  return values['trust'] === true ? 'of the user' : 'isolated';
}

/** @param root the project's folder */
export function readCodeTools(root: string, rights: ToolRights = 'isolated'): ProjectTools {
  const { files, problems } = toolFiles(root);
  const refused = problems.map(({ file }) => file).filter((file) => file !== TOOLS);
  if (files.length === 0) return { tools: [], problems, faulty: refused, hash: '' };
  const folder = mkdtempSync(join(tmpdir(), 'cortex-tools-'));
  try {
    const answer = join(folder, 'tools.json');
    // a module can be loaded twice
    const timeout = BUNDLE_MS + files.length * 2 * MODULE_MS;
    const { status, signal, stderr } = spawnSync(
      process.execPath,
      [programPath('cli/project/read-code-tools'), root, answer, rights, ...files],
      { env: { PATH: process.env['PATH'] ?? '' }, encoding: 'utf8', timeout, killSignal: 'SIGKILL' },
    );
    if (status === 0 && existsSync(answer)) {
      const read = JSON.parse(readFileSync(answer, 'utf8')) as ProjectTools;
      return { ...read, problems: [...problems, ...read.problems], faulty: [...refused, ...read.faulty].sort() };
    }
    const why =
      signal === null ? `ended with ${status}: ${stderr.trim().slice(-2_000)}` : `took over ${timeout / 1_000} s`;
    const message = `the code of the tools could not be loaded: the process that loads ${files.join(', ')} ${why}`;
    const all = [...problems, { file: TOOLS, line: 1, column: 1, field: '', message }];
    return { tools: [], problems: all, faulty: [...refused, ...files].sort(), hash: '' };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * Files directly in `tools/`; those that begin with `_`, tests and declarations define no tools, and neither do folders.
 *
 * @returns also what is not a file of the project
 */
export function toolFiles(root: string): { readonly files: readonly string[]; readonly problems: ManifestProblem[] } {
  const files: string[] = [];
  const problems: ManifestProblem[] = [];
  const attempt = (file: string, act: () => void): void => {
    try {
      act();
    } catch (fault) {
      problems.push({ file, line: 1, column: 1, field: '', message: messageOf(fault) });
    }
  };
  const folder = join(root, TOOLS);
  if (lstatSync(folder, { throwIfNoEntry: false }) === undefined) return { files, problems };
  const bounds = boundsOf(root);
  attempt(TOOLS, () => {
    for (const entry of readdirSync(realPathIn(bounds, folder), { withFileTypes: true })) {
      const { name } = entry;
      if (entry.isDirectory() || !/\.[mc]?tsx?$/.test(name) || /^_|\.d\.[mc]?ts$|\.(test|spec)\./.test(name)) continue;
      // An editor's lock is a link to the name of its user.
      if (name.startsWith('.#')) continue;
      const file = `${TOOLS}/${name}`;
      attempt(file, () => {
        readFileIn(bounds, join(folder, name), 0);
        files.push(file);
      });
    }
  });
  return { files: files.sort(), problems };
}

/** The name that the tool in a file must have. */
export function nameOfFile(file: string): string {
  return basename(file).replace(/\.[mc]?tsx?$/, '');
}
