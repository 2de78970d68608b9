/**
 * Which pieces and calls of one generation are the same call (N4). Servers identify calls by index, by id, by both or by
 * neither, and some send a call again. The table with the reports of each form is in docs/models.md.
 */
import { canonicalOf } from '../../bounded/json-values.ts';
import type { JsonObject } from '../../domain/json.ts';
import type { ModelDelta } from '../../domain/ports/model.ts';
import { WorkMeter } from '../../domain/work.ts';

/** What identifies a call. */
export interface CallIdentity {
  readonly index: number;
  readonly id: string | null;
  readonly name: string | null;
  /** Number of the chunk of its first piece, counted from the one with the finish reason; 0 before it. */
  readonly ending: number;
}

/** Of the arguments of a call; `all` also if it was rejected or ignored. */
export type Received = 'none' | 'some' | 'all';

/** Whether a piece begins a new call, although its index is in use. */
export function beginsNewCall(
  call: CallIdentity,
  received: Received,
  { id, name, argumentsDelta }: Extract<ModelDelta, { type: 'tool_call' }>,
): boolean {
  // A server may also send a new id with every piece of one call; such pieces have no name.
  if (name === null) return false;
  if (id !== null && call.id !== null && id !== call.id) return true;
  // A piece without an id continues the call, and may have the rest of its name.
  if (call.name !== null && name !== call.name) return received !== 'none' || call.id === null || id !== null;
  // Without an id on both sides, the index is all there is, and some servers always send 0.
  return call.id === null && received === 'all' && argumentsDelta.trim() !== '';
}

/** Whether two calls with the same arguments are the same call. @param repeated the earlier one already was, in this chunk */
export function isRepeat(call: CallIdentity, earlier: CallIdentity, repeated: boolean): boolean {
  if (hasSameId(call, earlier) || isSamePlace(call, earlier)) return true;
  // The chunks at the end may repeat each call once. In one chunk, equal calls are several calls.
  return call.ending !== earlier.ending && !repeated;
}

/** Whether a call without arguments was only the announcement of this one. */
export function isAnnouncement(earlier: CallIdentity, call: CallIdentity): boolean {
  if (hasSameId(call, earlier) || isSamePlace(call, earlier)) return true;
  return call.index === earlier.index && call.ending !== earlier.ending;
}

/** Whether an incomplete call may turn out to be the same as an earlier one. */
export function mayBeSame(call: CallIdentity, earlier: CallIdentity): boolean {
  if (call.name !== null && call.name !== earlier.name) return false;
  return isRepeat(call, earlier, false) || isAnnouncement(earlier, call);
}

function hasSameId(call: CallIdentity, earlier: CallIdentity): boolean {
  return call.id !== null && call.id === earlier.id;
}

/** The same index, and no ids that differ. */
function isSamePlace(call: CallIdentity, earlier: CallIdentity): boolean {
  return call.index === earlier.index && (call.id === null || earlier.id === null);
}

/** A text that is equal for equal arguments, whatever their white space and the order of their members. */
export function printOf(parameters: JsonObject): string {
  return canonicalOf(parameters, new WorkMeter(Infinity));
}
