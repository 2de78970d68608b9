/** The entry with runners as Cloudflare Containers: `npm run deploy -- --env containers`. */
export { RunnerContainer } from 'cortex-edge';
export * from './worker.ts';
export { default } from './worker.ts';
