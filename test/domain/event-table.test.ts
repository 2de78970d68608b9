import { expect, test } from 'vitest';
import * as z from 'zod';
import type { SessionEvent } from '../../src/domain/event.ts';
import { EVENT_SCHEMAS } from '../../src/domain/event-table.ts';
import { eventIssue } from '../support/event-check.ts';

const completed: SessionEvent = {
  seq: 3,
  type: 'action_completed',
  session_id: 's',
  run_id: 'run_1',
  iteration: 1,
  timestamp: 5,
  action_id: 'a',
  action_name: 'echo',
  data: { output: { any: ['JSON'] }, ms: 3, attempt: 1 },
};

test('[H3] an event that matches its schema passes the check', () => {
  expect(eventIssue(completed)).toBeNull();
  expect(eventIssue({ ...completed, data: { ...completed.data, cached: true } })).toBeNull();
});

test.each([
  ['a missing member', { ...completed, data: { output: 1, ms: 3 } }],
  ['an undeclared member of the envelope', { ...completed, extra: 1 }],
  ['an action event without its action', { ...completed, action_id: undefined }],
  ['a journaled event without seq', { ...completed, seq: null }],
  ['an unknown type', { ...completed, type: 'action_done' }],
])('[H3] the check refuses an event with %s', (_, event) => {
  expect(eventIssue(event as unknown as SessionEvent)).toEqual(expect.any(String));
});

test('[H4] every event is described as JSON Schema', () => {
  expect([...EVENT_SCHEMAS].length).toBeGreaterThan(30);
  for (const [type, schema] of EVENT_SCHEMAS) {
    expect(z.toJSONSchema(schema), type).toMatchObject({ properties: { type: { const: type } } });
    expect(schema.description, type).toEqual(expect.any(String));
  }
});
