/** Every request body, validated; the OpenAPI document is generated from the same schemas (H4). */
import * as z from 'zod';
import { EngineError } from '../domain/errors.ts';
import { limits } from '../domain/limits.ts';

const name = z.string().min(1).max(128);
const freeObject = z.record(z.string(), z.json());

export const createSessionBody = z.object({
  user_id: z.string().max(256).optional().meta({ description: 'Whose session it is; yours to choose' }),
  initial_state: freeObject.optional().meta({ description: 'Session variables, readable as $name' }),
  metadata: freeObject.optional().meta({ description: 'Kept with the session, not shown to the model' }),
});

export const messageBody = z.object({
  content: z
    .string()
    .min(1)
    .meta({ description: `The user's message, up to ${limits.messageBytes} bytes` }),
  stream: z.boolean().default(true).meta({ description: 'SSE, or one JSON document when the run has ended' }),
  llm_tokens: z.boolean().default(false).meta({ description: 'Also send the raw model text as llm_token events' }),
});

export const executeBody = z.object({
  protocol_text: z.string().min(1).meta({ description: 'Protocol text to run as if a model had written it' }),
  context: freeObject.optional().meta({ description: 'Session variables, readable as $name' }),
  agent: name.default('assistant').meta({ description: 'Whose tools and permissions apply' }),
  stream: z.boolean().default(true),
});

export const planBody = z.object({
  protocol_text: z.string().min(1),
  agent: name.optional().meta({ description: 'When given, names are looked up and missing ones are warned about' }),
});

export const approvalBody = z.object({
  decision: z.enum(['approve', 'deny']),
  note: z.string().max(2_000).optional(),
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
    message: issue.message,
  }));
  const first = issues[0];
  const where = first === undefined || first.path === '' ? 'The body' : `"${first.path}"`;
  throw new EngineError('invalid_request', `${where}: ${first?.message ?? 'not valid'}`, { issues });
}
