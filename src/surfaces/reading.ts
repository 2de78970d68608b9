/** What the adapters share when they read requests. */
import type * as z from 'zod';
import { EngineError } from '../domain/errors.ts';
import type { Json } from '../domain/json.ts';
import { limits } from '../domain/limits.ts';

/**
 * @param at what precedes the place of the value in the request, such as `messages.0.`
 * @throws EngineError `invalid_request` with the place of the first issue
 */
export function parsed<S extends z.ZodType>(schema: S, value: unknown, at: string): z.output<S> {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  const place = `${at}${issue?.path.join('.') ?? ''}`;
  const what = place === '' ? 'The body' : `"${place.replace(/\.$/, '')}"`;
  throw new EngineError('invalid_request', `${what}: ${issue?.message ?? 'not valid'}`);
}

/** A person's note about a decision, cut at its limit; null for none. */
export function noteOf(text: unknown): string | null {
  return typeof text === 'string' && text !== '' ? text.slice(0, limits.approvalNoteChars) : null;
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
