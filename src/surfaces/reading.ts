/** What the adapters share when they read requests. */
import type * as z from 'zod';
import { EngineError } from '../domain/errors.ts';
import type { Json } from '../domain/json.ts';

/**
 * @param at what precedes the place of the value in the request, such as `messages.0.`
 * @throws EngineError `invalid_request` with the place of the first issue
 */
export function parsed<S extends z.ZodType>(schema: S, value: unknown, at: string): z.output<S> {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  throw new EngineError('invalid_request', `"${at}${issue?.path.join('.') ?? ''}": ${issue?.message ?? 'not valid'}`);
}

/** The result of a call: JSON if it is an object or a list, so that later actions can use its members. */
export function callOutput(text: string): Json {
  if (!/^\s*[[{]/.test(text)) return text;
  try {
    return JSON.parse(text) as Json;
  } catch {
    return text;
  }
}
