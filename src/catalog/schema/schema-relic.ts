/** Schema of relic manifests: edge stores and services in containers (R5, R6). */
import * as z from 'zod';
import {
  base,
  count,
  cpu,
  duration,
  imageBuild,
  json,
  jsonMap,
  memory,
  relativePath,
  resources,
  text,
} from './fields.ts';

const health = z.strictObject({
  path: z.string().regex(/^\//, { error: 'must be a path that begins with /' }).optional().describe('Default /health.'),
  interval: duration.optional().describe('Time between checks. Default 10 s.'),
  start: duration.optional().describe('Maximum time until the first successful check. Default 30 s.'),
});

/** An absolute path that no program of the image is in. */
const STATE_PATH =
  /^(?!\/(?:bin|boot|cortex|dev|etc|lib|lib32|lib64|proc|run|sbin|sys|tmp|usr)(?:\/|$))(?:\/(?!\.{1,2}(?:\/|$))[\w.-]+)+$/;

const environmentName = z
  .string()
  .regex(/^[A-Za-z_][A-Za-z0-9_]{0,127}$/, { error: 'must be the name of an environment variable' });

const compose = z.strictObject({
  file: relativePath.describe('Path relative to the manifest.'),
  service: z.string().min(1).max(128).optional().describe('Required if the file has several services.'),
  published_port: count
    .min(1)
    .max(65_535)
    .optional()
    .describe('The published port whose container port is the port of the service. Default: the first port.'),
});

const serviceBuild = imageBuild.extend({
  context: relativePath.optional().describe('The folder of a Dockerfile, relative to the manifest.'),
  dockerfile: relativePath.optional().describe('Path in the context. Default Dockerfile.'),
});

const container = z.strictObject({
  type: z.literal('container'),
  image: z.string().min(1).optional().describe("An image of the runner's engine, by name."),
  build: serviceBuild.optional().describe('Builds an image, instead of naming one.'),
  compose: z
    .union([relativePath, compose], { error: 'must be a path, or a map of file, service and published_port' })
    .optional()
    .describe(
      'A Docker Compose file, relative to the manifest: one of its services is the relic. If there is none, the Dockerfile in its folder is built.',
    ),
  environment: z
    .record(environmentName, z.union([z.string().max(8_192), z.number(), z.boolean(), z.null()]))
    .optional()
    .describe('Environment variables of the service.'),
  state: z
    .string()
    .regex(STATE_PATH, { error: 'must be an absolute path, and not a directory of the system' })
    .optional()
    .describe('Directory of the persistent state in the container. Default /state.'),
  command: z.array(z.string()).min(1).optional().describe("Command; overrides the image's own."),
  port: count.min(1).max(65_535).optional().describe('Port of the service. Default 8080.'),
  health: z
    .union([z.string().regex(/^\//), health], { error: 'must be a path, or a map of path, interval and start' })
    .optional()
    .describe('Health check: a path, or a map.'),
  resources: resources
    .omit({ timeout: true, sandbox: true })
    .extend({ memory: memory.optional(), cpu: cpu.optional() })
    .optional(),
});

/** The fields of a container that a Compose file may state. */
export const containerFields = container
  .pick({ command: true, port: true, state: true, resources: true })
  .extend({ health: health.optional() });

const implementation = z.discriminatedUnion('type', [
  z
    .strictObject({
      type: z.literal('edge'),
      store: z.enum(['kv', 'log', 'sql']).describe('Keys and values, an append-only log, or a SQLite database.'),
      ttl: duration.optional().describe('Default lifetime of an entry. Default: unlimited.'),
      quota: memory.optional().describe('Maximum size: MiB, or text with a unit. Default 10 MiB.'),
      schema: z
        .union([text, z.array(text)])
        .optional()
        .describe('For sql: statements that run once, when the store is created.'),
    })
    .describe('Backed by a Durable Object; needs no runner.'),
  container.describe('A service on the runner; starts at the first call.'),
]);

const endpoint = z.strictObject({
  name: z
    .string()
    .regex(/^[A-Za-z_][A-Za-z0-9_-]{0,63}$/, { error: 'must be letters, digits, "_" and "-", at most 64' })
    .optional(),
  summary: z.string().min(1).max(500).optional().describe('One sentence for the model.'),
  description: text.optional().describe('Used if summary is missing.'),
  parameters: json.optional().describe('In the same form as the parameters of a tool.'),
  parameters_schema: json.optional().describe('The same as parameters.'),
  returns: jsonMap
    .optional()
    .describe('JSON Schema of the answer; the prompt shows its keys and types in one line. Not checked.'),
  effects: z.enum(['pure', 'idempotent', 'unsafe']).optional().describe('Default unsafe; for GET and HEAD idempotent.'),
  timeout: duration.optional().describe('Default 60 s.'),
  method: z.enum(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE']).optional().describe('Default POST.'),
  path: z
    .string()
    .regex(/^\/\S*$/, { error: 'must be a path that begins with /' })
    .optional()
    .describe('May contain {parameter}, as in the URL of an HTTP tool. Default: / and the name.'),
});

export const relicSchema = z.strictObject({
  ...base,
  implementation: implementation.describe('How the relic runs.'),
  scope: z
    .enum(['session', 'shared'])
    .optional()
    .describe('One per session, or one for all sessions of the namespace. Default session.'),
  persistent: z
    .boolean()
    .optional()
    .describe('Keeps the state when the relic stops. Default true for edge stores, false for containers.'),
  idle: duration.optional().describe('Stops after this time without a call. Default 10 min.'),
  endpoints: z
    .union([z.record(z.string(), endpoint), z.array(z.union([z.string(), endpoint]))], {
      error: 'must be a map of name to endpoint, or a list of endpoints',
    })
    .optional()
    .describe('Endpoints. Edge stores have built-in ones; a list of names selects some of them.'),
});

export type RelicInput = z.infer<typeof relicSchema>;
export type EndpointInput = z.infer<typeof endpoint>;
