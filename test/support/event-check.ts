/**
 * Checks that events are what their schemas say: all members that are declared, and no other. Every session
 * of the session kit is checked in this way; a test that wrote something else fails when it ends.
 */
import type * as z from 'zod';
import type { SessionEvent } from '../../src/domain/event.ts';
import { EVENT_SCHEMAS } from '../../src/domain/event-schemas.ts';

const issues: string[] = [];

// Benchmarks use the session kit too, without a test runner.
if (process.env['VITEST'] !== undefined) {
  const { afterEach, expect } = await import('vitest');
  afterEach(() => {
    expect(issues.splice(0), 'events that differ from their schemas').toEqual([]);
  });
}

export function checkEvent(event: SessionEvent): void {
  const issue = eventIssue(event);
  if (issue !== null) issues.push(issue);
}

/** What is wrong with an event; null if nothing is. */
export function eventIssue(event: SessionEvent): string | null {
  const schema = EVENT_SCHEMAS.get(event.type);
  if (schema === undefined) return `${event.type}: no schema`;
  return schemaIssue(schema, event, event.type);
}

/** What is wrong with a value: what its schema refuses, or members that it does not declare. */
export function schemaIssue(schema: z.ZodType, value: unknown, name: string): string | null {
  const parsed = schema.safeParse(value);
  if (!parsed.success) return `${name}: ${parsed.error.message}`;
  const undeclared = undeclaredMember(value, parsed.data, name);
  return undeclared === null ? null : `${undeclared}: not in the schema`;
}

/** The first member of a value that its schema has taken out; null if it has kept all. */
function undeclaredMember(value: unknown, kept: unknown, path: string): string | null {
  if (value === kept || typeof value !== 'object' || value === null) return null;
  for (const [key, member] of Object.entries(value)) {
    const place = `${path}.${key}`;
    if (!Object.hasOwn(kept as object, key)) return place;
    const found = undeclaredMember(member, (kept as Record<string, unknown>)[key], place);
    if (found !== null) return found;
  }
  return null;
}
