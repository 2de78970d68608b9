/** A run that cannot continue ends with all its actions (S10, J3). */
import { expect, test } from 'vitest';
import type { EventData, JournaledEventType, SessionEvent } from '../../../src/domain/event.ts';
import type { RunRecord } from '../../../src/domain/session.ts';
import { endAbandonedRun } from '../../../src/engine/replay/abandoned-run.ts';
import type { Journal } from '../../../src/journal/journal.ts';
import { newJournal } from '../../journal/journal-kit.ts';
import { openNodeSql } from '../../support/node-sql.ts';

const ERROR = { code: 'recovery_exhausted' as const, message: 'it was stopped' };
const USAGE = { prompt_tokens: 0, completion_tokens: 0, cached_tokens: 0, model_calls: 0, estimated: false };

/** An active run in the journal of a session, and functions that write its events. */
function running(): {
  readonly journal: Journal;
  readonly run: RunRecord;
  readonly write: <T extends JournaledEventType>(
    type: T,
    data: EventData[T],
    iteration: number,
    action?: { readonly id: string; readonly key: string; readonly name?: string },
  ) => void;
} {
  const journal = newJournal(openNodeSql());
  const run = journal.runs.create({ content: 'x' }, 5, 'running');
  return {
    journal,
    run,
    write: (type, data, iteration, action) => {
      journal.append({
        type,
        runId: run.runId,
        iteration,
        at: 5,
        ...(action === undefined ? {} : { actionId: action.id, state: { key: action.key } }),
        ...(action?.name === undefined ? {} : { actionName: action.name }),
        data,
      });
    },
  };
}

const queued = (id: string, key: string): Parameters<ReturnType<typeof running>['write']> => [
  'action_queued',
  { type: 'tool', mode: 'async', depends_on: [], output_key: null, parameters: {} },
  Number(key.split('/')[0]),
  { id, key, name: 'echo' },
];

const shown = (events: readonly SessionEvent[]): unknown[] =>
  events.map(({ type, iteration, action_id: id, action_name: name, timestamp, data }) => ({
    type,
    iteration,
    id,
    name,
    timestamp,
    data,
  }));

test('[S10] every unfinished action gets an end, then the run ends', () => {
  const { journal, run, write } = running();
  write('agent_started', { agent: 'assistant', version: '1', source: 'model' }, 0);
  write(...queued('done', '1/0'));
  write('action_started', { attempt: 1 }, 1, { id: 'done', key: '1/0' });
  write('action_completed', { output: 1, ms: 1, attempt: 1 }, 1, { id: 'done', key: '1/0' });
  write(...queued('started', '1/1'));
  write('action_started', { attempt: 1 }, 1, { id: 'started', key: '1/1' });
  write(...queued('waits', '2/0'));
  const request = { approval_id: 'apr_1', type: 'tool', sha256: '', bytes: 0, complete: true } as const;
  write('approval_requested', request, 2, { id: 'waits', key: '2/0' });
  const events = endAbandonedRun(journal, run, { at: 9, error: ERROR });
  const unknown = {
    code: 'outcome_unknown',
    message: 'The action had started, and its outcome is unknown',
    retryable: false,
  };
  const [of, none] = [{ name: 'echo', timestamp: 9 }, undefined];
  expect(shown(events)).toEqual([
    { type: 'action_failed', iteration: 1, id: 'started', ...of, data: { error: unknown } },
    { type: 'action_cancelled', iteration: 2, id: 'waits', ...of, data: { reason: 'it was stopped' } },
    { type: 'agent_failed', iteration: 2, id: none, ...of, name: none, data: { error: ERROR, iterations: 2 } },
  ]);
  const states = journal.range({ after: (events[0]?.seq ?? 0) - 1, limit: 9 }).map(({ state }) => state);
  expect(states).toEqual([{ key: '1/1' }, { key: '2/0' }, null]);
  expect(journal.runs.get(1)).toMatchObject({ status: 'failed', endedAt: 9, lastSeq: events.at(-1)?.seq });
  expect(journal.runs.open()).toEqual([]);
});

test.each<[JournaledEventType, EventData[JournaledEventType]]>([
  ['action_completed', { output: 1, ms: 1, attempt: 1 }],
  ['action_failed', { error: { code: 'x', message: 'y', retryable: false } }],
  ['action_skipped', { reason: 'condition', because: null }],
  ['action_cancelled', { reason: 'x' }],
  ['action_rejected', { code: 'x', message: 'y', type: null, mode: null }],
])('[S10] an action with %s has ended', (type, data) => {
  const { journal, run, write } = running();
  write(...queued('a', '1/0'));
  write(type, data, 1, { id: 'a', key: '1/0' });
  expect(endAbandonedRun(journal, run, { at: 9, error: ERROR }).map((event) => event.type)).toEqual(['agent_failed']);
});

test.each([
  ['agent_completed', { response: 'x', iterations: 1, usage: USAGE }, 'completed'],
  ['agent_failed', { error: ERROR }, 'failed'],
  ['agent_cancelled', {}, 'cancelled'],
] as const)('[J3] a run with %s keeps its end; only its unfinished actions are ended', (type, data, status) => {
  const { journal, run, write } = running();
  write(...queued('left', '1/0'));
  write(type, data, 1);
  write('warning', { code: 'x', message: 'y' }, 1);
  expect(endAbandonedRun(journal, run, { at: 9, error: ERROR }).map((event) => event.type)).toEqual([
    'action_cancelled',
  ]);
  expect(journal.runs.get(1)).toMatchObject({ status, endedAt: 9 });
  expect(journal.runs.open()).toEqual([]);
});

test('[J3] events of actions that were never accepted are ignored, and so are events of other runs', () => {
  const { journal, run, write } = running();
  write('action_started', { attempt: 1 }, 1, { id: 'a', key: '1/0' });
  journal.runs.create({ content: 'y' }, 6, 'running');
  journal.append({
    type: 'action_queued',
    runId: journal.runs.require(2).runId,
    iteration: 4,
    at: 6,
    actionId: 'other',
    data: { type: 'tool', mode: 'async', depends_on: [], output_key: null, parameters: {} },
    state: { key: '4/0' },
  });
  expect(shown(endAbandonedRun(journal, run, { at: 9, error: ERROR }))).toMatchObject([
    { type: 'agent_failed', iteration: 1 },
  ]);
});

test('[J4] open blocks are closed as cut, with their text if it is known, and readers get that text', () => {
  const { journal, run, write } = running();
  write('thought_started', {}, 1);
  write('thought_completed', { segment: 1, content: 'hm' }, 1);
  write('text_started', {}, 1);
  write('thought_started', { reasoning: true }, 1);
  write('response_started', { final: true }, 2);
  const known = { segment: 5, content: 'the answer so', written: 'the $a so' };
  const events = endAbandonedRun(journal, run, { at: 9, error: ERROR, texts: [known] });
  expect(events.map(({ seq, type, iteration, data }) => ({ seq, type, iteration, data }))).toMatchObject([
    { seq: null, type: 'text', iteration: 1, data: { segment: 3, offset: 0, delta: '' } },
    { seq: 6, type: 'text_completed', iteration: 1, data: { segment: 3, content: '', cut: true } },
    { seq: null, type: 'thought', iteration: 1, data: { segment: 4, offset: 0, delta: '' } },
    { seq: 7, type: 'thought_completed', iteration: 1, data: { segment: 4, content: '', cut: true } },
    { seq: null, type: 'response', iteration: 2, data: { segment: 5, offset: 0, delta: 'the answer so' } },
    { seq: 8, type: 'response_completed', data: { segment: 5, content: 'the answer so', cut: true, final: true } },
    { seq: 9, type: 'agent_failed', data: { error: ERROR } },
  ]);
  // Later prompts have it as the model wrote it.
  const answer = [...journal.eventsOf(journal.runs.require(1))].find(({ event }) => event.seq === 8);
  expect(answer?.state).toEqual({ written: 'the $a so' });
});
