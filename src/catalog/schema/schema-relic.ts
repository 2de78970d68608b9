/** What authors may write about relics: edge stores and services in containers (R5, R6). */
import { z } from 'zod';
import { base, count, cpu, duration, imageBuild, json, jsonMap, memory, resources, text } from './fields.ts';

const health = z.strictObject({
  path: z.string().regex(/^\//, { error: 'must be a path that begins with /' }).optional().describe('Default /health.'),
  interval: duration.optional().describe('Between checks. Default 10 s.'),
  start: duration.optional().describe('How long it may take until it is healthy for the first time. Default 30 s.'),
});

const implementation = z.discriminatedUnion('type', [
  z
    .strictObject({
      type: z.literal('edge'),
      store: z.enum(['kv', 'log', 'sql']).describe('Keys and values, an append-only log, or a SQLite database.'),
      ttl: duration.optional().describe('How long an entry lives that says nothing of its own. Default: for ever.'),
      quota: memory.optional().describe('How much it may hold: MiB, or text with a unit. Default 10 MiB.'),
      schema: z
        .union([text, z.array(text)])
        .optional()
        .describe('Of sql: statements that run once, when the store is made.'),
    })
    .describe('Backed by a Durable Object; needs no runner.'),
  z
    .strictObject({
      type: z.literal('container'),
      image: z.string().min(1).optional().describe("An image of the runner's engine, by name."),
      build: imageBuild.optional().describe('What an image is made of, instead of its name.'),
      command: z.array(z.string()).min(1).optional().describe('What is started, instead of what the image says.'),
      port: count.min(1).max(65_535).optional().describe('Where the service listens. Default 8080.'),
      health: z
        .union([z.string().regex(/^\//), health], { error: 'must be a path, or a map of path, interval and start' })
        .optional()
        .describe('Where it says that it is well; a path alone, or a map.'),
      resources: resources
        .omit({ timeout: true, sandbox: true })
        .extend({ memory: memory.optional(), cpu: cpu.optional() })
        .optional(),
    })
    .describe('A service on the runner, started at the first call.'),
]);

const endpoint = z.strictObject({
  name: z
    .string()
    .regex(/^[A-Za-z_][A-Za-z0-9_-]{0,63}$/, { error: 'must be letters, digits, "_" and "-", at most 64' })
    .optional(),
  summary: z.string().min(1).max(500).optional().describe('One sentence for the model.'),
  description: text.optional().describe('The same as summary, where that is missing.'),
  parameters: json.optional().describe('As those of a tool.'),
  parameters_schema: json.optional().describe('The same as parameters.'),
  returns: jsonMap.optional().describe('JSON Schema of the answer, for readers.'),
  effects: z.enum(['pure', 'idempotent', 'unsafe']).optional().describe('Default unsafe; of GET and HEAD idempotent.'),
  timeout: duration.optional().describe('Default 60 s.'),
  method: z.enum(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE']).optional().describe('Default POST.'),
  path: z
    .string()
    .regex(/^\/\S*$/, { error: 'must be a path that begins with /' })
    .optional()
    .describe('May hold {parameter}. Default: / and the name.'),
});

export const relicSchema = z.strictObject({
  ...base,
  implementation: implementation.describe('What it runs on.'),
  scope: z
    .enum(['session', 'shared'])
    .optional()
    .describe("Each session's own, or one for all sessions of the API key's namespace. Default session."),
  persistent: z
    .boolean()
    .optional()
    .describe('Whether its state outlives a stop. Default true at the edge, false in a container.'),
  idle: duration.optional().describe('Stopped after so long without a call. Default 10 min.'),
  endpoints: z
    .union([z.record(z.string(), endpoint), z.array(z.union([z.string(), endpoint]))], {
      error: 'must be a map of name to endpoint, or a list of endpoints',
    })
    .optional()
    .describe('What it can be asked to do; edge stores have their standard ones, of which a list of names picks some.'),
});

export type RelicInput = z.infer<typeof relicSchema>;
export type EndpointInput = z.infer<typeof endpoint>;
