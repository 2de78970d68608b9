/**
 * The program of a thread: loads bundled code tools, one after the other, and describes each of them. A module may end the
 * thread or block it, so the thread says which module it loads next.
 */
import { pathToFileURL } from 'node:url';
import { parentPort, workerData } from 'node:worker_threads';
import { describeTool } from './describe-tool.ts';
import type { BundledTool, LoadReport } from './tool-loader.ts';

function report(message: LoadReport): void {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread's port has no origin
  parentPort?.postMessage(message);
}

for (const { file, module } of workerData as readonly BundledTool[]) {
  report({ type: 'loading', file });
  const found = await describeTool(file, async () => (await import(pathToFileURL(module).href)) as unknown);
  report({ type: 'loaded', file, found });
}
