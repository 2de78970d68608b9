/** Reading the record of a run (J2, J9). */
import { describe, expect, test } from 'vitest';
import type { EventData, EventOf, JournaledEventType } from '../../../src/domain/event.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import type { RunRecord } from '../../../src/domain/session.ts';
import { Replay } from '../../../src/engine/replay/replay.ts';
import type { Journal } from '../../../src/journal/journal.ts';
import { newJournal } from '../../journal/journal-kit.ts';
import { openNodeSql } from '../../support/node-sql.ts';

const START = { is: 'start', at: 1, policy: {} };
const FAILURE = { code: 'x', message: 'y', retryable: false };
const REQUEST = { approval_id: 'apr_1', type: 'tool', sha256: '0', bytes: 1, complete: true } as const;
const CALL: EventData['action_queued'] = {
  type: 'tool',
  mode: 'async',
  depends_on: [],
  output_key: null,
  parameters: {},
};

interface Recording {
  readonly journal: Journal;
  readonly run: RunRecord;
  /** Writes an event of the run; returns its seq. */
  write<T extends JournaledEventType>(type: T, data: EventData[T], state?: JsonObject, actionId?: string): number;
  replay(): Replay;
}

/** A run whose record begins with its start, by default. */
function recording(start: JsonObject | null = START): Recording {
  const journal = newJournal(openNodeSql());
  const run = journal.runs.create({ content: 'x' }, 1, 'running');
  const write: Recording['write'] = (type, data, state, actionId) =>
    journal.append({
      type,
      runId: run.runId,
      iteration: 1,
      at: 1,
      data,
      ...(actionId === undefined ? {} : { actionId }),
      ...(state === undefined ? {} : { state }),
    }).seq;
  if (start !== null) write('iteration_started', { iteration: 1 }, { in: [start] });
  return { journal, run, write, replay: () => new Replay(journal, run) };
}

describe('[J9] the inputs of a run', () => {
  test('are read in the order in which the run took them: those in events, and those between events', () => {
    const { journal, run, write, replay } = recording();
    journal.runs.addInputs(run.run, [
      { is: 'text', at: 2, text: 'one' },
      { is: 'text', at: 3, text: 'two' },
    ]);
    journal.runs.addInputs(run.run, [{ is: 'text', at: 4, text: 'three' }]);
    write('thought_started', {}, { in: [{ is: 'text', at: 5, text: 'four' }] });
    journal.runs.addInputs(run.run, [{ is: 'text', at: 6, text: 'five' }]);
    write('thought_completed', { segment: 2, content: '' });
    journal.runs.addInputs(run.run, [{ is: 'text', at: 7, text: 'six' }]);
    const { inputs } = replay();
    expect(inputs.map(({ type, at }) => [type, at])).toEqual([
      ['run_started', 1],
      ['text', 2],
      ['text', 3],
      ['text', 4],
      ['text', 5],
      ['text', 6],
      ['text', 7],
    ]);
  });

  test('begin with the start of the run; a record without it is from a version without records', () => {
    const { run, write, replay } = recording({ is: 'text', at: 1, text: 'x' });
    write('thought_started', {});
    expect(replay).toThrow(
      expect.objectContaining({
        code: 'not_recoverable',
        message: `Run ${run.runId} has no record to continue from`,
      }),
    );
    const bare = recording(null);
    bare.write('iteration_started', { iteration: 1 });
    expect(bare.replay).toThrow(expect.objectContaining({ code: 'not_recoverable' }));
  });

  test('are empty for a run that has not started', () => {
    const { replay } = recording(null);
    expect(replay()).toMatchObject({ inputs: [], empty: true, active: true, recoveries: 0 });
    expect(replay().contains(1)).toBe(false);
    expect(replay().match('iteration_started', null)).toBeNull();
  });

  test('include the results of conditions, and the reason why an approval could not be requested', () => {
    const { write, replay } = recording();
    write(
      'thought_started',
      {},
      {
        in: [
          { is: 'condition', at: 2, key: '1/0', result: { ok: true, value: false } },
          { is: 'unasked', at: 2, key: '1/1', error: FAILURE },
          { is: 'outcome', at: 3, key: '1/0', attempt: 1, error: FAILURE, random: 0 },
        ],
      },
    );
    const record = replay();
    expect(record.conditionOf('1/0')).toEqual({ ok: true, value: false });
    expect(record.approvalErrorOf('1/1')).toEqual(FAILURE);
    expect([record.conditionOf('1/1'), record.approvalErrorOf('1/0')]).toEqual([null, null]);
  });
});

describe('[J2] the actions of a record', () => {
  test('have their first start, their approval, their estimate and their output', () => {
    const { write, replay } = recording();
    write('action_queued', CALL, { key: '1/0', estimate: 700 }, 'a');
    const asked = write('approval_requested', REQUEST, { key: '1/0' }, 'a');
    const started = write('action_started', { attempt: 1 }, { key: '1/0' }, 'a');
    write('action_retrying', { attempt: 1, delay_ms: 1, error: FAILURE }, { key: '1/0' }, 'a');
    write('action_started', { attempt: 2 }, { key: '1/0' }, 'a');
    write('action_completed', { output: { n: 1 }, ms: 1, attempt: 2 }, { key: '1/0' }, 'a');
    const record = replay();
    expect(record.estimateOf('1/0')).toBe(700);
    expect(record.nextApprovalRequest('1/0')).toMatchObject({ seq: asked, data: REQUEST });
    expect(record.nextApprovalRequest('1/0')).toBeNull();
    expect(record.startedAt('1/0')).toBe(started);
    expect(record.outputOf('1/0')).toEqual({ n: 1 });
  });

  test('[J8] have all their requests in order: the approval, then the questions of the target', () => {
    const { write, replay } = recording();
    const seqs = ['apr_1', 'apr_2', 'apr_3'].map((id) =>
      write('approval_requested', { ...REQUEST, approval_id: id }, { key: '1/0' }, 'a'),
    );
    write('approval_requested', REQUEST, { key: '1/1' }, 'b');
    const record = replay();
    expect(seqs.map(() => record.nextApprovalRequest('1/0')?.seq)).toEqual(seqs);
    expect(record.nextApprovalRequest('1/0')).toBeNull();
    expect(record.nextApprovalRequest('1/1')).not.toBeNull();
  });

  test('lack a value if no event contains it', () => {
    const { write, replay } = recording();
    write('action_queued', CALL, { key: '1/0' }, 'a');
    write('action_started', { attempt: 1 }, undefined, 'b');
    write('action_failed', { error: FAILURE }, { key: '1/0' }, 'a');
    const record = replay();
    expect(record.estimateOf('1/0')).toBe(0);
    expect([record.nextApprovalRequest('1/0'), record.startedAt('1/0'), record.outputOf('1/0')]).toEqual([
      null,
      null,
      null,
    ]);
    expect(record.estimateOf('1/1')).toBeNull();
  });
});

describe('[J2] events that a replayed run produces again', () => {
  test('match the record in order; outputs are not compared', () => {
    const { write, replay } = recording();
    write('warning', { code: 'x', message: 'y' });
    write('variable_changed', { key: 'k', value: 1 });
    write('context_feed_updated', { id: 'f', value: 1 });
    const queued = write('action_queued', CALL, { key: '1/0', estimate: 1 }, 'a');
    const completed = write('action_completed', { output: 'long', ms: 5, attempt: 2 }, { key: '1/0' }, 'a');
    const record = replay();
    expect(record.match('iteration_started', null)).toMatchObject({ seq: 1, data: { iteration: 1 } });
    expect(record.match('action_queued', 'a')).toMatchObject({ seq: queued, data: CALL });
    expect(record.match('action_completed', 'a')).toEqual(
      expect.objectContaining({ seq: completed, data: { output: null, ms: 0, attempt: 0 } }),
    );
    expect(record.match('action_failed', 'a')).toBeNull();
    expect([record.contains(completed), record.contains(completed + 1)]).toEqual([true, false]);
    expect(record.empty).toBe(false);
  });

  test.each<[string, JournaledEventType, string | null, string]>([
    ['another event', 'action_skipped', 'a', 'action_skipped of "a"'],
    ['another action', 'action_queued', 'b', 'action_queued of "b"'],
    ['no action', 'iteration_started', null, 'iteration_started'],
  ])('[J9] a version that would write %s does not continue the run', (_name, type, actionId, other) => {
    const words = `action_queued of "a" at 2, but this version would write ${other}`;
    const { run, write, replay } = recording();
    write('action_queued', CALL, { key: '1/0', estimate: 1 }, 'a');
    const record = replay();
    record.match('iteration_started', null);
    expect(() => record.match(type, actionId)).toThrow(
      expect.objectContaining({ code: 'not_recoverable', message: `The record of run ${run.runId} has ${words}` }),
    );
    // The recorded event is still the next one.
    expect(record.match('action_queued', 'a')).toMatchObject({ seq: 2 });
  });

  test('[J9] an action instead of an event of the run is a divergence too', () => {
    const { run, replay } = recording();
    expect(() => replay().match('iteration_started', 'a')).toThrow(
      `The record of run ${run.runId} has iteration_started at 1, but this version would write iteration_started of "a"`,
    );
  });

  test('[J9] a version that would write less does not continue the run', () => {
    const { run, replay } = recording();
    const record = replay();
    expect(() => record.finish()).toThrow(
      `The record of run ${run.runId} has iteration_started at 1, but this version would write nothing`,
    );
    const whole = replay();
    whole.match('iteration_started', null);
    expect(whole.active).toBe(true);
    whole.finish();
    expect(whole.active).toBe(false);
  });

  test('the recoveries of the run are counted by their warnings', () => {
    const { write, replay } = recording();
    const recovered: EventOf<'warning'>['data'] = { code: 'run_recovered', message: 'y' };
    expect(replay().recoveries).toBe(0);
    write('warning', recovered);
    write('warning', { code: 'unknown_reference', message: 'run_recovered' });
    write('action_rejected', { code: 'run_recovered', message: 'y', type: null, mode: null }, undefined, 'a');
    write('warning', recovered);
    expect(replay().recoveries).toBe(2);
  });
});
