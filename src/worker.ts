/** The Worker's entry: the fetch handler and the object classes. No decisions here. */
export { CatalogObject } from './durable/catalog-object.ts';
export { EndpointStatusObject } from './durable/endpoint-status-object.ts';
export { ExecutionIndexObject } from './durable/execution-index-object.ts';
export { IdentityObject } from './durable/identity-object.ts';
export { RateLimitObject } from './durable/rate-limit-object.ts';
export { RelicObject } from './durable/relic-object.ts';
export { ScheduleObject } from './durable/schedule-object.ts';
export { SessionObject } from './durable/session-object.ts';
export { edge as default } from './durable/edge.ts';
