/** The Worker's entry: the fetch handler and the object classes. No decisions here. */
export { CatalogObject } from './durable/objects/catalog-object.ts';
export { DirectoryObject } from './durable/objects/directory-object.ts';
export { EndpointStatusObject } from './durable/objects/endpoint-status-object.ts';
export { ExecutionIndexObject } from './durable/objects/execution-index-object.ts';
export { IdentityObject } from './durable/objects/identity-object.ts';
export { RateLimitObject } from './durable/objects/rate-limit-object.ts';
export { RelicObject } from './durable/objects/relic-object.ts';
export { ScheduleObject } from './durable/objects/schedule-object.ts';
export { SharedFeedObject } from './durable/objects/shared-feed-object.ts';
export { SessionObject } from './durable/objects/session-object.ts';
export { edge as default } from './durable/edge.ts';
