/**
 * Ids of responses and of their items (E2). Each says which run it belongs to, and a run's id says which session, so no
 * index is needed to find them. An id authorises nothing.
 */
import { sessionIdOfCall } from '../../../domain/call-id.ts';

/** A part of a run: the events after `after`, up to the next time that the run waits or ends. */
export interface ResponsePlace {
  readonly runId: string;
  /** 0: from the first event. */
  readonly after: number;
}

/** What an id of a run consists of after its prefix, in two groups: session; incarnation and number. */
const RUN = String.raw`([0-9a-f]{32})((?:_[0-9a-f]{12})?_\d{1,9})`;
const RESPONSE = new RegExp(String.raw`^resp_${RUN}(?:_c(\d{1,15}))?$`);
const ITEM = new RegExp(String.raw`^(?:msg|rs|mcp|mcpr|fc)_${RUN}_[0-9a-f]{1,32}$`);
const APPROVAL = new RegExp(String.raw`^mcpr_${RUN}_([0-9a-f]{32})$`);

const keyOf = (runId: string): string => runId.replace(/^run_/, '');

/** `resp_<run>`; of a continued run: `resp_<run>_c<seq>`. */
export function responseIdOf({ runId, after }: ResponsePlace): string {
  return `resp_${keyOf(runId)}${after > 0 ? `_c${after}` : ''}`;
}

/** Null if it is no id of a response. */
export function placeOfResponse(id: string): ResponsePlace | null {
  const [match, session, rest, after = '0'] = RESPONSE.exec(id) ?? [];
  return match === undefined ? null : { runId: `run_${session}${rest}`, after: Number(after) };
}

/** @param seq the event with which the item began */
export function itemIdOf(prefix: 'msg' | 'rs' | 'mcp' | 'fc', runId: string, seq: number): string {
  return `${prefix}_${keyOf(runId)}_${seq}`;
}

/** The request for an approval, as an item. */
export function approvalItemId(runId: string, approvalId: string): string {
  return `mcpr_${keyOf(runId)}_${approvalId.replace(/^apr_/, '')}`;
}

/** The run of an item; null if it is no id of an item. */
export function runOfItem(id: string): string | null {
  const [match, session, rest] = ITEM.exec(id) ?? [];
  return match === undefined ? null : `run_${session}${rest}`;
}

/** The approval that an item requests. Any other text is passed on: the session does not know it. */
export function approvalOfItem(id: string): string {
  const [match, , , approval] = APPROVAL.exec(id) ?? [];
  return match === undefined ? id : `apr_${approval}`;
}

export function sessionOfRun(runId: string): string {
  return `ses_${keyOf(runId).slice(0, 32)}`;
}

/** The session of a call, or of an item; null if the id is none of ours. */
export function sessionOfId(id: string): string | null {
  const runId = runOfItem(id);
  return runId === null ? sessionIdOfCall(id) : sessionOfRun(runId);
}
