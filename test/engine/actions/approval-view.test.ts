/** The view of an approval in every state (J8). */
import { describe, expect, test } from 'vitest';
import { Redaction } from '../../../src/bounded/redaction.ts';
import type { EventData, JournaledEventType } from '../../../src/domain/event.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import { limits } from '../../../src/domain/limits.ts';
import { approvalClosed, approvalView, outgoingView } from '../../../src/engine/actions/approval-view.ts';
import type { ApprovalView } from '../../../src/engine/actions/approval-view.ts';
import { outgoingEntry } from '../../../src/engine/run/outgoing-events.ts';
import { OutgoingText } from '../../../src/engine/session/outgoing-text.ts';
import { newJournal } from '../../journal/journal-kit.ts';
import { openNodeSql } from '../../support/node-sql.ts';

const ID = `apr_${'0123456789abcdef'.repeat(2)}`;
const ASKED_AT = 1_000;
const EXPIRES_AT = ASKED_AT + limits.approvalExpiryMs;
const CALL = { parameters: { to: 'Ann' }, inputs: { n: 1 } };

type End = readonly [type: JournaledEventType, data: EventData[JournaledEventType], at: number];

/** The view of a request that ended in this way, at the time `now`. */
function viewOf(given: {
  readonly end?: End;
  readonly open?: boolean;
  readonly now?: number;
  readonly state?: JsonObject;
  readonly name?: string | null;
}): ApprovalView | null {
  const { end, open = true, now = ASKED_AT + 1, state = { call: CALL }, name = 'pay' } = given;
  const journal = newJournal(openNodeSql());
  const { runId } = journal.runs.create({ content: 'x' }, 1, 'running');
  const about = { runId, iteration: 2, actionId: 'a', ...(name === null ? {} : { actionName: name }) };
  const data = { approval_id: ID, type: 'python', sha256: 'abc', bytes: 12, complete: true } as const;
  journal.append({ ...about, type: 'approval_requested', at: ASKED_AT, data, state });
  if (end !== undefined) journal.append({ ...about, type: end[0], at: end[2], data: end[1] });
  return approvalView(journal, ID, now, open);
}

const resolved = (approved: boolean, note?: string): End => [
  'approval_resolved',
  { approval_id: ID, approved, ...(note === undefined ? {} : { note }) },
  ASKED_AT + 5,
];
const cancelled = (at: number): End => ['action_cancelled', { reason: 'x' }, at];

test('[C9] an approval that leaves has a question whose form can be answered', () => {
  const view = viewOf({});
  if (view === null) throw new Error('no approval');
  const property = { type: 'string', title: 'the value', enum: ['value'] };
  const schema = { type: 'object', properties: { value: property, title: property }, required: ['value'] };
  const redaction = new Redaction([String.raw`\b(?:value|title|type|parameters|question)\b`], () => undefined);
  const question = { from: 'x', message: 'a value?', schema };
  const shown = outgoingView({ ...view, question }, new OutgoingText(redaction));
  const safe = { ...property, title: 'the [redacted]' };
  expect(shown.question).toEqual({
    from: 'x',
    message: 'a [redacted]?',
    schema: { type: 'object', properties: { value: safe, title: safe }, required: ['value'] },
  });
  expect(shown).toMatchObject({ redacted: true, parameters: view.parameters, status: 'open' });
  expect(outgoingView(view, new OutgoingText(redaction))).toEqual(view);
  const event = { approval_id: ID, type: 'python', sha256: 'abc', bytes: 12, complete: true, question } as const;
  const written = outgoingEntry(redaction, 'approval_requested', { data: event });
  expect(written.data).toEqual({ ...event, question: shown.question, redacted: true });
});

describe('[J8] an approval', () => {
  test('is shown with the complete call', () => {
    expect(viewOf({})).toEqual({
      approval_id: ID,
      status: 'open',
      run_id: `run_${'a'.repeat(32)}_1`,
      iteration: 2,
      action_id: 'a',
      name: 'pay',
      type: 'python',
      requested_at: ASKED_AT,
      expires_at: EXPIRES_AT,
      decided_at: null,
      note: null,
      sha256: 'abc',
      bytes: 12,
      reason: null,
      parameters: CALL.parameters,
      inputs: CALL.inputs,
      question: null,
      content: null,
    });
  });

  test.each<[string, Parameters<typeof viewOf>[0], Partial<ApprovalView>]>([
    ['approved', { end: resolved(true, 'fine') }, { status: 'approved', decided_at: ASKED_AT + 5, note: 'fine' }],
    ['denied', { end: resolved(false) }, { status: 'denied', decided_at: ASKED_AT + 5, note: null }],
    ['approved, while the run continues', { end: resolved(true), open: true }, { status: 'approved' }],
    [
      'ended by its action',
      { end: cancelled(EXPIRES_AT - 1), now: EXPIRES_AT + 9 },
      { status: 'cancelled', decided_at: EXPIRES_AT - 1, note: null },
    ],
    ['ended by its expiry', { end: cancelled(EXPIRES_AT) }, { status: 'expired', decided_at: EXPIRES_AT }],
    ['without a waiting run', { open: false }, { status: 'cancelled', decided_at: null }],
    ['without a waiting run, just before its expiry', { open: false, now: EXPIRES_AT - 1 }, { status: 'cancelled' }],
    ['without a waiting run, at its expiry', { open: false, now: EXPIRES_AT }, { status: 'expired' }],
    ['whose run waits past its expiry', { now: EXPIRES_AT }, { status: 'open' }],
    ['for an action without a name', { name: null }, { name: null }],
    ['from a version that stored no call', { state: {} }, { parameters: null, inputs: null }],
    ['with stored parameters only', { state: { call: { parameters: {} } } }, { parameters: null, inputs: null }],
    ['with stored inputs only', { state: { call: { inputs: {} } } }, { parameters: null, inputs: null }],
  ])('%s', (_name, given, expected) => {
    expect(viewOf(given)).toMatchObject(expected);
  });

  test.each([
    ['another id', `apr_${'f'.repeat(32)}`],
    ['upper case', ID.toUpperCase()],
    ['a prefix', `x${ID}`],
    ['a suffix', `${ID}0`],
    ['too short', ID.slice(0, -1)],
  ])('is found only by its exact id: %s', (name, id) => {
    const journal = newJournal(openNodeSql());
    const { runId } = journal.runs.create({ content: 'x' }, 1, 'running');
    // A stored id in another format is not an approval either.
    for (const stored of name === 'another id' ? [ID] : [ID, id]) {
      const data = { approval_id: stored, type: 'tool', sha256: '', bytes: 0, complete: true } as const;
      journal.append({ type: 'approval_requested', runId, iteration: 1, at: 1, actionId: 'a', data });
    }
    expect(approvalView(journal, ID, 1, true)).not.toBeNull();
    expect(approvalView(journal, id, 1, true)).toBeNull();
  });

  test.each([
    ['open', 'its run has ended'],
    ['deciding', 'another request is deciding about it'],
    ['approved', 'it was already approved'],
    ['denied', 'it was already denied'],
    ['expired', 'it expired after 168 hours, which counts as denied'],
    ['cancelled', 'its action ended before a decision'],
  ] as const)('that is %s accepts no decision, with the reason', (status, why) => {
    expect(approvalClosed({ approval_id: 'apr_1', run_id: 'run_1' }, status)).toMatchObject({
      code: 'approval_closed',
      message: `The approval "apr_1" is no longer open: ${why}`,
      details: { approval_id: 'apr_1', run_id: 'run_1', approval_status: status },
    });
  });
});
