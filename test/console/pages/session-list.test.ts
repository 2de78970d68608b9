/** Runs as `GET /executions` lists them, by session (U4). */
import { describe, expect, test } from 'vitest';
import { bySession, sessionIdIn } from '../../../console/pages/session-list.ts';
import type { ExecutionEntry } from '../../../src/client/index.ts';

const run = (session: string, id: string, agent = 'assistant'): ExecutionEntry => ({
  session_id: session,
  run_id: id,
  kind: 'chat',
  agent,
  status: 'completed',
  error: null,
  started_at: 0,
  ended_at: 1,
});

describe('[U4] the list of sessions', () => {
  test('has them in the order of their newest run, each with its runs from the newest on', () => {
    const list = bySession([run('b', 'b2'), run('a', 'a1', 'analyst'), run('b', 'b1'), run('c', 'c1')]);
    expect(list.map(({ id, agent, runs }) => [id, agent, runs.map(({ run_id: each }) => each)])).toEqual([
      ['b', 'assistant', ['b2', 'b1']],
      ['a', 'analyst', ['a1']],
      ['c', 'assistant', ['c1']],
    ]);
  });
});

const ID = `ses_${'0123456789abcdef'.repeat(2)}`;

test.each([
  [ID, ID],
  [`  ${ID}\n`, ID],
  [`http://127.0.0.1:8787/#/sessions/${ID}/runs/run_1`, ID],
  ['', null],
  ['ses_1', null],
  [`${ID}0`, null],
  [ID.toUpperCase(), null],
])('[U4] the id of a session in %j', (text, id) => {
  expect(sessionIdIn(text)).toBe(id);
});
