/** The entry with runners as Cloudflare Containers: `--env containers` (docs/runner-operations.md). */
export { RunnerContainer } from './durable/runner-container.ts';
export * from './worker.ts';
export { default } from './worker.ts';
