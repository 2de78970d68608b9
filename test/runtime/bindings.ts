/** The bindings of the Worker under test. */
import { env } from 'cloudflare:workers';
import type { Env } from '../../src/durable/env.ts';
import type { RelicObject } from '../../src/durable/objects/relic-object.ts';
import type { ScheduleObject } from '../../src/durable/objects/schedule-object.ts';
import type { SharedFeedObject } from '../../src/durable/objects/shared-feed-object.ts';
import type { SessionObject } from '../../src/durable/objects/session-object.ts';
import type { StatusObject } from '../../src/durable/objects/status-object.ts';

/** The types that the Worker declares. */
export const here = env as unknown as Env;

/** The platform's types, with stubs that `runInDurableObject` accepts. */
export const { SESSIONS, SCHEDULES, RELICS, FEEDS, STATUS, FILES } = env as unknown as {
  readonly SESSIONS: DurableObjectNamespace<SessionObject>;
  readonly SCHEDULES: DurableObjectNamespace<ScheduleObject>;
  readonly RELICS: DurableObjectNamespace<RelicObject>;
  readonly FEEDS: DurableObjectNamespace<SharedFeedObject>;
  readonly STATUS: DurableObjectNamespace<StatusObject>;
  readonly FILES: R2Bucket;
};
