/** An approval as shown to people (J8): the whole call to be decided, and the decision. */
import { EngineError } from '../../domain/errors.ts';
import type { ActionType } from '../../domain/action.ts';
import type { SessionEvent } from '../../domain/event.ts';
import type { JsonObject } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import type { Journal } from '../../journal/journal.ts';
import { callOf } from './calls.ts';
import { callDigest } from './call-digest.ts';
import { redactedSchema } from '../run/schema-text.ts';
import type { ShownQuestion } from './questions.ts';
import type { OutgoingText } from '../session/outgoing-text.ts';

/** `cancelled`: the action ended for another reason before a decision. */
type ApprovalStatus = 'open' | 'approved' | 'denied' | 'expired' | 'cancelled';

export interface ApprovalView {
  readonly approval_id: string;
  readonly status: ApprovalStatus;
  readonly run_id: string;
  readonly iteration: number;
  readonly action_id: string;
  readonly name: string | null;
  readonly type: ActionType;
  readonly requested_at: number;
  readonly expires_at: number;
  readonly decided_at: number | null;
  readonly note: string | null;
  /** SHA-256 of the UTF-8 text of `JSON.stringify({ parameters, inputs })`, as they are shown. */
  readonly sha256: string;
  readonly bytes: number;
  /** Message of the policy that asks; null: none does, or it has no message. */
  readonly reason: string | null;
  /** Text was redacted (C9); `sha256` and `bytes` are about the redacted call. */
  readonly redacted?: true;
  readonly parameters: JsonObject | null;
  readonly inputs: JsonObject | null;
  /** What the target of the started action asks; null: the action needs an approval to start. */
  readonly question: ShownQuestion | null;
  /** The values that answered the question; null if there are none. */
  readonly content: JsonObject | null;
}

/** @param open whether a run is waiting for the decision; null if there is no such approval */
export function approvalView(journal: Journal, id: string, now: number, open: boolean): ApprovalView | null {
  if (!/^apr_[0-9a-f]{32}$/.test(id)) return null;
  const found = journal.history.approval(id);
  if (found === null) return null;
  const { event, state, end } = found;
  const { data, timestamp } = event;
  const call = callOf(state);
  const expires = timestamp + limits.approvalExpiryMs;
  return {
    approval_id: id,
    status: end === null && open ? 'open' : endOf(end, (end?.timestamp ?? now) >= expires),
    run_id: event.run_id,
    iteration: event.iteration,
    action_id: event.action_id,
    name: event.action_name ?? null,
    type: data.type,
    requested_at: timestamp,
    expires_at: expires,
    decided_at: end?.timestamp ?? null,
    note: end?.type === 'approval_resolved' ? (end.data.note ?? null) : null,
    sha256: data.sha256,
    bytes: data.bytes,
    reason: data.reason ?? null,
    parameters: call?.parameters ?? null,
    inputs: call?.inputs ?? null,
    question: data.question ?? null,
    content: end?.type === 'approval_resolved' ? (end.data.content ?? null) : null,
  };
}

/** The view as it leaves the session (C9). */
export function outgoingView(view: ApprovalView, outgoing: Pick<OutgoingText, 'json'>): ApprovalView {
  const { parameters, inputs, question, content, note, reason } = view;
  const shown = {
    parameters: outgoing.json(parameters),
    inputs: outgoing.json(inputs),
    question: question === null ? null : outgoingQuestion(question, outgoing),
    content: outgoing.json(content),
    note: outgoing.json(note),
    reason: outgoing.json(reason),
  };
  const hidesCall = shown.parameters !== parameters || shown.inputs !== inputs || shown.question !== question;
  const isChanged = shown.parameters !== parameters || shown.inputs !== inputs;
  // Those of the call itself would reveal what is hidden.
  const digest = isChanged ? callDigest(shown.parameters ?? undefined, shown.inputs ?? undefined) : {};
  return { ...view, ...shown, ...digest, ...(hidesCall ? { redacted: true } : {}) };
}

/** The identical question if nothing in it was redacted. */
function outgoingQuestion(question: ShownQuestion, outgoing: Pick<OutgoingText, 'json'>): ShownQuestion {
  const { schema, ...text } = question;
  const names = Object.keys(text) as (keyof typeof text)[];
  const shown = Object.fromEntries(names.map((name) => [name, outgoing.json(text[name])])) as typeof text;
  const safe = schema === undefined ? undefined : redactedSchema(schema, (value) => outgoing.json(value));
  const isSame = safe === schema && names.every((name) => shown[name] === text[name]);
  return isSame ? question : { ...shown, ...(safe === undefined ? {} : { schema: safe as JsonObject }) };
}

function endOf(end: SessionEvent | null, late: boolean): ApprovalStatus {
  if (end?.type === 'approval_resolved') return end.data.approved ? 'approved' : 'denied';
  return late ? 'expired' : 'cancelled';
}

/** The error for a decision that came too late. */
export function approvalClosed(
  { approval_id: id, run_id: runId }: Pick<ApprovalView, 'approval_id' | 'run_id'>,
  status: ApprovalStatus | 'deciding',
): EngineError {
  const why = {
    // The run has failed with an internal error since.
    open: 'its run has ended',
    deciding: 'another request is deciding about it',
    approved: 'it was already approved',
    denied: 'it was already denied',
    expired: `it expired after ${limits.approvalExpiryMs / 3_600_000} hours, which counts as denied`,
    cancelled: 'its action ended before a decision',
  }[status];
  return new EngineError('approval_closed', `The approval "${id}" is no longer open: ${why}`, {
    approval_id: id,
    run_id: runId,
    approval_status: status,
  });
}
