/** Schema of relic definitions and calls from the Worker (R5). Closed: unknown fields are rejected. */
import { z } from 'zod';

import { imageBuild } from '../images/image-build.ts';
import { imageReference } from '../images/image-name.ts';
import { sessionId } from '../jobs/job.ts';
import { limits } from '../limits.ts';

export const relicName = z
  .string()
  .max(limits.relicNameChars)
  .regex(/^[a-z0-9][a-z0-9_-]*$/, 'lower case letters, digits and _- only');

/** The owner of relics: a session's id, or another name for relics that several sessions share. */
export const relicScope = sessionId;

const path = z
  .string()
  .max(limits.relicPathChars)
  .regex(/^\/[\w~!$&'()*+,;=:@%/.?-]*$/, 'must be a percent-encoded path');

/** An absolute path that no program of the image is in. */
const STATE_PATH =
  /^(?!\/(?:bin|boot|cortex|dev|etc|lib|lib32|lib64|proc|run|sbin|sys|tmp|usr)(?:\/|$))(?:\/(?!\.{1,2}(?:\/|$))[\w.-]+)+$/;

export const relicDefinition = z
  .strictObject({
    image: imageReference.nullable().default(null),
    build: imageBuild.nullable().default(null),
    command: z.array(z.string().max(4_096)).min(1).max(64).nullable().default(null),
    /** Environment variables of the service. */
    environment: z.record(z.string().regex(/^[A-Za-z_]\w{0,127}$/), z.string().max(8_192)).default({}),
    /** Directory of the persistent state in the service's container. */
    state: z
      .string()
      .max(255)
      .regex(STATE_PATH, 'must be an absolute path, and not a directory of the system')
      .nullable()
      .default(null),
    port: z.int().min(1).max(65_535),
    health: z.strictObject({
      path,
      interval_ms: z.int().min(limits.relicHealthMinMs).max(3_600_000).default(limits.relicHealthMs),
      start_ms: z.int().min(1).max(limits.relicStartMaxMs).default(limits.relicStartMs),
    }),
    persistent: z.boolean().default(false),
    idle_ms: z.int().min(1).max(limits.relicIdleMaxMs).default(limits.relicIdleMs),
    memory_mb: z.int().min(limits.minMemoryMb).default(limits.memoryMb),
    cpus: z.number().min(limits.minCpus).default(limits.cpus),
  })
  .refine(({ image, build: built }) => (image === null) !== (built === null), {
    path: ['image'],
    error: 'expected either image or build',
  });
export type RelicSpec = z.infer<typeof relicDefinition>;

const relicCall = z.strictObject({
  method: z.enum(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE']),
  path,
  /** JSON text of the request's body. */
  body: z.string().nullable().default(null),
});
export type RelicCall = z.infer<typeof relicCall> & {
  /** Header `traceparent` of the request to the service (O1). */
  readonly traceparent?: string;
};

const target = { space: relicScope, relic: relicDefinition };

export const startRequest = z.strictObject(target);

export const callRequest = z.strictObject({
  ...target,
  call: relicCall,
  timeout_ms: z.int().min(1).default(limits.timeoutMs),
});
