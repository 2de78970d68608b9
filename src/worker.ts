/** The Worker's entry: the fetch handler and the object classes. No decisions here. */
export { ExecutionIndexObject } from './durable/execution-index-object.ts';
export { SessionObject } from './durable/session-object.ts';
export { edge as default } from './durable/edge.ts';
