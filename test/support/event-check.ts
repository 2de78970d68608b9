/**
 * Checks that events match their schemas: all declared members, and no others. Every session of the session kit is
 * checked; a test fails at its end if one of its sessions wrote an invalid event.
 */
import type * as z from 'zod';
import type { SessionEvent } from '../../src/domain/event.ts';
import { EVENT_SCHEMAS } from '../../src/domain/event-table.ts';

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

/** The error of an event; null if it is valid. */
export function eventIssue(event: SessionEvent): string | null {
  const schema = EVENT_SCHEMAS.get(event.type);
  if (schema === undefined) return `${event.type}: no schema`;
  return schemaIssue(schema, event, event.type);
}

/** The error of a value: the schema refuses it, or it has undeclared members. */
export function schemaIssue(schema: z.ZodType, value: unknown, name: string): string | null {
  const parsed = schema.safeParse(value);
  if (!parsed.success) return `${name}: ${parsed.error.message}`;
  const undeclared = undeclaredMember(value, parsed.data, name);
  return undeclared === null ? null : `${undeclared}: not in the schema`;
}

/** The first member of a value that its schema has removed; null if it has kept all. */
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
