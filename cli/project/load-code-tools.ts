/**
 * The program of a thread: loads bundled code tools, one after the other, and describes each of them. A module may end the
 * thread or block it, so the thread says which module it loads next.
 */
import { pathToFileURL } from 'node:url';
import { parentPort, workerData } from 'node:worker_threads';
import { parsedIssue, schemaOf } from '../../src/code-tools/define-tool.ts';
import type { CodeTool } from '../../src/code-tools/define-tool.ts';
import type { DescribedTool } from '../../src/domain/code-tool.ts';
import { messageOf } from '../../src/domain/errors.ts';
import type { BundledTool, LoadReport } from './tool-loader.ts';

/** @returns the tool, or what is wrong with the module */
async function describe({ file, module }: BundledTool): Promise<DescribedTool | string> {
  try {
    const { default: tool } = (await import(pathToFileURL(module).href)) as { default?: unknown };
    if (!isTool(tool)) return 'must export a tool by default: export default defineTool({…})';
    const { name, description, effects, example } = tool;
    const parameters = schemaOf(tool);
    if (parameters['type'] !== 'object') return '"parameters" must be a zod object';
    const issue = parsedIssue(tool);
    if (issue !== null) return issue;
    const shown = example === undefined ? {} : { example };
    // a schema or an example may have members that cannot be sent to another thread
    return JSON.parse(JSON.stringify({ file, name, description, effects, parameters, ...shown })) as DescribedTool;
  } catch (fault) {
    return `cannot be loaded: ${messageOf(fault)}`;
  }
}

function isTool(value: unknown): value is CodeTool {
  return typeof value === 'object' && value !== null && 'run' in value && 'parameters' in value && 'name' in value;
}

function report(message: LoadReport): void {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread's port has no origin
  parentPort?.postMessage(message);
}

for (const tool of workerData as readonly BundledTool[]) {
  report({ type: 'loading', file: tool.file });
  const found = await describe(tool);
  report({ type: 'loaded', file: tool.file, found });
}
