/** The contestants in one workerd: our Worker, the bare objects, and the SDK's agent. */
export * from '../workerd/worker.ts';
export { default } from '../workerd/worker.ts';
export { ChatAgent } from './chat-agent.ts';
