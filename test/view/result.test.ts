/** The document of a run, computed from its events (H7). */
import { describe, expect, test } from 'vitest';
import type { EventType, SessionEvent } from '../../src/domain/event.ts';
import type { JsonObject } from '../../src/domain/json.ts';
import type { RunStatus } from '../../src/domain/session.ts';
import { RunAnswer } from '../../src/view/answer.ts';
import { RunFold } from '../../src/view/result.ts';
import type { RunOutline } from '../../src/view/result.ts';

let seq = 0;

function event(type: EventType, data: JsonObject = {}, more: JsonObject = {}): SessionEvent {
  seq += 1;
  const head = { seq, type, session_id: 's', run_id: 'run_1', iteration: 1, timestamp: seq * 10 };
  return { ...head, ...more, data } as unknown as SessionEvent;
}

function fold(
  events: readonly SessionEvent[],
  status: RunStatus = 'running',
): RunOutline & { readonly settled: boolean } {
  const folded = new RunFold(status);
  for (const each of events) folded.add(each);
  return { ...folded.outline, settled: folded.settled };
}

const of = (id: string, more: JsonObject = {}): JsonObject => ({ action_id: id, action_name: 'echo', ...more });
const queued = (id: string, more: JsonObject = {}): SessionEvent =>
  event('action_queued', { type: 'tool', mode: 'async' }, of(id, more));

describe('actions', () => {
  test('[H7] an entry contains the data and the times of its events', () => {
    seq = 0;
    const done = fold([
      queued('a'),
      event('action_started', { attempt: 1 }, of('a')),
      event('action_started', { attempt: 2 }, of('a')),
      event('action_completed', { output: 'x' }, of('a')),
    ]);
    expect(done.actions).toEqual([
      {
        action: {
          id: 'a',
          name: 'echo',
          type: 'tool',
          mode: 'async',
          status: 'completed',
          error: null,
          attempts: 2,
          queued_at: 10,
          started_at: 20,
          ended_at: 40,
        },
        parametersSeq: 1,
        outputSeq: 4,
      },
    ]);
    expect(done.settled).toBe(true);
  });

  const ends: readonly (readonly [type: EventType, data: JsonObject, status: string, error: unknown])[] = [
    [
      'action_failed',
      { error: { code: 'boom', message: 'it broke' } },
      'failed',
      { code: 'boom', message: 'it broke' },
    ],
    [
      'action_skipped',
      { reason: 'dependency', because: 'b' },
      'skipped',
      { code: 'skipped', reason: 'dependency', because: 'b' },
    ],
    ['action_cancelled', { reason: 'user' }, 'cancelled', { code: 'cancelled', message: 'user' }],
  ];
  test.each(ends)('[H7] %s gives the reason for a missing output', (type, data, status, error) => {
    const done = fold([queued('a'), event(type, data, of('a'))]);
    expect(done.actions[0]?.action).toMatchObject({ status, error, attempts: 0, started_at: null });
    expect(done.actions[0]?.outputSeq).toBeNull();
    expect(done.settled).toBe(true);
  });

  test('[H7] a queued or running action has no end, and the run is not settled', () => {
    const rows = fold([queued('a'), queued('b'), event('action_started', { attempt: 1 }, of('b'))]);
    expect(rows.actions.map(({ action }) => [action.status, action.ended_at])).toEqual([
      ['queued', null],
      ['running', null],
    ]);
    expect(rows.settled).toBe(false);
    expect(fold([]).settled).toBe(true);
  });

  test('[P6] a rejected action has its own entry, even if its id belongs to another one', () => {
    const refusal = { code: 'duplicate_id', message: 'no', type: 'llm', mode: 'sync' };
    const rows = fold([
      queued('a'),
      event('action_rejected', refusal, of('a')),
      event('action_rejected', { ...refusal, type: null, mode: null }, { action_id: 'b' }),
      event('action_completed', { output: 1 }, of('a')),
    ]);
    expect(rows.actions.map(({ action: { id, name, type, mode, status } }) => [id, name, type, mode, status])).toEqual([
      ['a', 'echo', 'tool', 'async', 'completed'],
      ['a', 'echo', 'llm', 'sync', 'rejected'],
      ['b', null, null, null, 'rejected'],
    ]);
    expect(rows.actions[1]?.action.error).toEqual({ code: 'duplicate_id', message: 'no' });
    expect(rows.settled).toBe(true);
  });

  test('[P6] the same id in a later generation is another action', () => {
    const rows = fold([
      queued('a'),
      queued('a', { iteration: 2 }),
      event('action_completed', {}, of('a', { iteration: 2 })),
    ]);
    expect(rows.actions.map(({ action }) => action.status)).toEqual(['queued', 'completed']);
    expect(rows.iterations).toBe(2);
    expect(rows.settled).toBe(false);
  });
});

describe('the answer of a run', () => {
  const response = (content: string, final: boolean | null = null, more: JsonObject = {}): SessionEvent =>
    event('response_completed', { content, final }, more);
  const text = (content: string, iteration = 1): SessionEvent => event('text_completed', { content }, { iteration });
  const cases: readonly (readonly [title: string, events: () => readonly SessionEvent[], answer: string])[] = [
    ['nothing', () => [], ''],
    ['the last final response', () => [response('a', true), response('b', true), response('c', false)], 'b'],
    ['otherwise the last response', () => [response('a', false), response('b')], 'b'],
    ['even an empty response', () => [text('bare'), response('')], ''],
    ['otherwise the text of the last generation', () => [text('a'), text('b', 2), text('c', 2)], 'b\n\nc'],
  ];
  test.each(cases)('[P10] %s', (_title, events, answer) => {
    const all = events();
    expect(fold(all).response).toBe(answer);
    const folded = new RunAnswer();
    for (const each of all) folded.add(each);
    expect(folded.text).toBe(answer);
    expect(all.every(({ type }) => RunAnswer.EVENTS.includes(type))).toBe(true);
  });

  test('[H7] responses are in the journal by number, with their finality', () => {
    seq = 0;
    expect(fold([response('a', false), text('x'), response('b', true)]).responses).toEqual([
      { seq: 1, final: false },
      { seq: 3, final: true },
    ]);
  });
});

describe('other members of the document', () => {
  test('[L6] usage is added up, with estimate and cost if any call had them', () => {
    const usage = (more: JsonObject): SessionEvent =>
      event('usage', { prompt_tokens: 10, completion_tokens: 2, cached_tokens: 1, ...more });
    expect(fold([]).usage).toEqual({ prompt_tokens: 0, completion_tokens: 0, cached_tokens: 0, model_calls: 0 });
    expect(fold([usage({}), usage({ estimated: false })]).usage).toEqual({
      prompt_tokens: 20,
      completion_tokens: 4,
      cached_tokens: 2,
      model_calls: 2,
    });
    expect(fold([usage({ cost: 0.1 }), usage({ cost: 0.2, estimated: true }), usage({})]).usage).toMatchObject({
      model_calls: 3,
      estimated: true,
      cost: 0.3,
    });
  });

  test('[H7] warnings and the error of the run are included', () => {
    const document = fold([
      event('warning', { code: 'w', message: 'careful', further: 1 }),
      event('agent_failed', { error: { code: 'no_progress', message: 'stuck' } }),
    ]);
    expect(document.warnings).toEqual([{ code: 'w', message: 'careful' }]);
    expect(document.error).toEqual({ code: 'no_progress', message: 'stuck' });
    expect(fold([])).toMatchObject({ warnings: [], error: null, iterations: 0, actions: [], responses: [] });
  });

  const ask = (id: string, action: string, more: JsonObject = {}): SessionEvent =>
    event('approval_requested', { approval_id: id, sha256: 'x', bytes: 7, type: 'tool' }, { ...of(action), ...more });

  test('[J8] open approvals are listed while the run waits', () => {
    const events = [
      queued('a'),
      ask('apr_1', 'a'),
      event('approval_requested', { approval_id: 'apr_2', sha256: 'y', bytes: 8 }, { action_id: 'b' }),
    ];
    expect(fold(events, 'waiting').approvals).toEqual([
      { approval_id: 'apr_1', action_id: 'a', name: 'echo', sha256: 'x', bytes: 7 },
      { approval_id: 'apr_2', action_id: 'b', name: null, sha256: 'y', bytes: 8 },
    ]);
    expect('approvals' in fold(events, 'running')).toBe(false);
    expect('approvals' in fold([queued('a')], 'waiting')).toBe(false);
  });

  test('[J8] an approval is closed by its decision or the end of its action, not by a rejection with the same id', () => {
    const open = (...more: SessionEvent[]): unknown =>
      fold([queued('a'), queued('b'), ask('apr_1', 'a'), ask('apr_2', 'b'), ...more], 'waiting').approvals?.map(
        ({ approval_id: id }) => id,
      );
    expect(open(event('approval_resolved', { approval_id: 'apr_1' }))).toEqual(['apr_2']);
    expect(open(event('action_failed', { error: { code: 'approval_denied', message: '' } }, of('b')))).toEqual([
      'apr_1',
    ]);
    expect(open(event('action_rejected', { code: 'duplicate_id', message: '' }, of('a')))).toEqual(['apr_1', 'apr_2']);
  });
});
