/** Every request body, validated; the OpenAPI document is generated from the same schemas (H4). */
import * as z from 'zod';
import { EngineError } from '../domain/errors.ts';
import { limits } from '../domain/limits.ts';
import { SCOPES } from './tokens.ts';

const name = z.string().min(1).max(128);
const freeObject = z.record(z.string().max(256), z.json());
/** Session variables: what `$name` can spell (P12), within the session's limits. */
const variables = z
  .record(
    z.string().regex(/^[^<>&"'\s\p{Cc}]{1,64}$/u, 'a name has 1 to 64 characters, none of < > & " \' or white space'),
    z.json(),
  )
  .refine((values) => Object.keys(values).length <= limits.variables, `at most ${limits.variables} variables`)
  .refine(
    (values) => Object.values(values).every((value) => JSON.stringify(value).length <= limits.variableBytes),
    `a variable holds at most ${limits.variableBytes} bytes of JSON`,
  );

export const createSessionBody = z.object({
  user_id: z.string().max(256).optional().meta({ description: 'Whose session it is; yours to choose' }),
  initial_state: variables.optional().meta({ description: 'Session variables, readable as $name' }),
  metadata: freeObject
    .refine(
      (metadata) => JSON.stringify(metadata).length <= limits.metadataBytes,
      `at most ${limits.metadataBytes} bytes of JSON`,
    )
    .optional()
    .meta({ description: 'Kept with the session, not shown to the model' }),
});

export const messageBody = z.object({
  content: z
    .string()
    .regex(/\S/, 'a message must not be empty')
    .meta({ description: `The user's message, up to ${limits.messageBytes} bytes` }),
  stream: z.boolean().default(true).meta({ description: 'SSE, or one JSON document when the run has ended' }),
  llm_tokens: z.boolean().default(false).meta({ description: 'Also send the raw model text as llm_token events' }),
});

export const executeBody = z.object({
  protocol_text: z
    .string()
    .regex(/\S/, 'the text must not be empty')
    .meta({ description: 'Protocol text to run as if a model had written it' }),
  context: variables.optional().meta({ description: 'Session variables, readable as $name' }),
  agent: name.default('assistant').meta({ description: 'Whose tools and permissions apply' }),
  stream: z.boolean().default(true),
});

/** Closed: inputs that stand beside `inputs` would be lost without a word. */
export const workflowBody = z.strictObject({
  inputs: variables
    .default({})
    .meta({ description: 'As the workflow declares them; its steps read them as $(trigger.name)' }),
  stream: z.boolean().default(true),
});

export const eventBody = z.strictObject({
  data: variables.default({}).meta({ description: 'Inputs of the workflows that the event starts' }),
});

/** A folder of manifests, by path (M4). */
export const manifestFilesBody = z.object({
  files: z.record(z.string().max(255), z.string().max(limits.manifestBytes)).meta({ description: 'Texts by path' }),
});

export const planBody = z.object({
  protocol_text: z.string().min(1),
  agent: name.optional().meta({ description: 'When given, names are looked up and missing ones are warned about' }),
});

/** `{"decision": "approve"}`, or `{"approve": true}`, or `{"deny": true}`. */
export const approvalBody = z
  .object({
    decision: z.enum(['approve', 'deny']).optional(),
    approve: z.boolean().optional(),
    deny: z.boolean().optional(),
    note: z.string().max(2_000).optional(),
  })
  .refine(
    ({ decision, approve, deny }) => [decision, approve, deny].filter((said) => said !== undefined).length === 1,
    'say one of decision, approve, deny',
  );

export const tokenBody = z.object({
  scopes: z
    .array(z.enum(SCOPES))
    .min(1)
    .default(['read', 'message'])
    .meta({ description: 'What the token is good for' }),
  expires_in: z
    .int()
    .min(1)
    .max(limits.sessionTokenMaxSeconds)
    .default(limits.sessionTokenSeconds)
    .meta({ description: 'Seconds' }),
});

export const cancelBody = z.object({ reason: z.string().max(500).default('cancelled by request') });

/**
 * Checks a parsed body.
 *
 * @throws EngineError `invalid_request` with `issues: [{path, message}]`
 */
export function validate<S extends z.ZodType>(schema: S, value: unknown): z.output<S> {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const issues = parsed.error.issues.slice(0, 20).map((issue) => ({
    path: issue.path.map(String).join('.'),
    // What is wrong with a key stands one level down.
    message: issue.code === 'invalid_key' ? (issue.issues[0]?.message ?? issue.message) : issue.message,
  }));
  const first = issues[0];
  const where = first === undefined || first.path === '' ? 'The body' : `"${first.path}"`;
  throw new EngineError('invalid_request', `${where}: ${first?.message ?? 'not valid'}`, { issues });
}
