/**
 * Loads bundled code tools in a thread, and starts another one where a module ends or blocks it. tool-isolates.ts does the
 * same in isolates without rights.
 *
 * Owns the threads. Does not bundle, and does not check names.
 *
 * Invariants:
 * 1. One thread runs at a time.
 * 2. Each tool has one result, in the order of the tools.
 * 3. A module is blamed for the end of a thread only if it was the first one of that thread: another one may have started
 *    what ended it.
 */
import { Worker } from 'node:worker_threads';
import type { DescribedTool } from '../../src/domain/code-tool.ts';
import { messageOf } from '../../src/domain/errors.ts';
import { UNLOADED } from './describe-tool.ts';
import { programPath } from './folders.ts';

/** Limit for one module, without its bundling. Loading takes milliseconds. */
export const MODULE_MS = 10_000;

/** The exit code of Node where a top-level await can no longer settle. */
const UNSETTLED = 13;

export interface BundledTool {
  /** Relative to the project. */
  readonly file: string;
  /** Absolute path of the bundled module. */
  readonly module: string;
}

export type LoadReport =
  | { readonly type: 'loading'; readonly file: string }
  | { readonly type: 'loaded'; readonly file: string; readonly found: DescribedTool | string };

/** A tool, or what is wrong with its module. */
export type LoadedTools = ReadonlyMap<string, DescribedTool | string>;

/** Calls `expire` once after `ms`. @returns a function that cancels it */
export type StartTimer = (expire: () => void, ms: number, file: string) => () => void;

/** Loads the first tools, until a module ends or blocks what they run in. Adds at least one result. */
export type RunTools = (
  tools: readonly BundledTool[],
  results: Map<string, DescribedTool | string>,
  startTimer: StartTimer,
) => Promise<void>;

/**
 * Loads the modules one after the other.
 *
 * @param run in threads by default
 * @param startTimer starts the limit of one module; tests replace it
 * @returns what each file defines, or what is wrong with it
 * @throws Error if a thread fails before it loads a module
 */
export async function loadTools(
  tools: readonly BundledTool[],
  run: RunTools = runThread,
  startTimer: StartTimer = realTimer,
): Promise<LoadedTools> {
  const results = new Map<string, DescribedTool | string>();
  for (let left = tools; left.length > 0; left = tools.filter(({ file }) => !results.has(file))) {
    await run(left, results, startTimer);
  }
  return results;
}

function realTimer(expire: () => void, ms: number): () => void {
  const timer = setTimeout(expire, ms);
  return () => clearTimeout(timer);
}

/**
 * Runs one thread until it has loaded everything, or a module has ended or blocked it. Adds at least one result.
 *
 * @throws Error if the thread ends before it loads a module
 */
async function runThread(
  tools: readonly BundledTool[],
  results: Map<string, DescribedTool | string>,
  startTimer: StartTimer,
): Promise<void> {
  const thread = new Worker(programPath('cli/project/load-code-tools'), { workerData: tools });
  const state: { loading: string | null; fault: unknown } = { loading: null, fault: null };
  let cancel = (): void => undefined;
  thread.on('error', (fault) => (state.fault = fault));
  thread.on('message', ({ file, ...report }: LoadReport) => {
    cancel();
    // a thread that is being terminated can still report
    if (results.has(file)) return;
    if (report.type === 'loaded') {
      state.loading = null;
      results.set(file, report.found);
      // a tool may have started what keeps the thread alive
      if (tools.every((tool) => results.has(tool.file))) void thread.terminate();
      return;
    }
    state.loading = file;
    const expire = (): void => {
      results.set(file, `${UNLOADED}: it took longer than ${MODULE_MS / 1_000} s`);
      void thread.terminate();
    };
    cancel = startTimer(expire, MODULE_MS, file);
  });
  const code = await new Promise<number>((resolve) => thread.on('exit', resolve));
  cancel();
  const { loading, fault } = state;
  const first = tools[0]?.file ?? '';
  if (results.has(first)) return;
  if (loading === null) throw new Error(`the thread that loads ${first} ended: ${messageOf(fault ?? code)}`);
  const ending = fault === null ? 'it ended the process' : messageOf(fault);
  results.set(first, `${UNLOADED}: ${code === UNSETTLED ? 'a top-level await never settles' : ending}`);
}
