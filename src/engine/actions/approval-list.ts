/** The approval requests of a session that wait for a decision, as a list (J8). */
import type { ActionType } from '../../domain/action.ts';
import type { JsonObject } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import type { SessionRecord } from '../../domain/session.ts';
import type { Journal } from '../../journal/journal.ts';
import type { ShownQuestion } from './questions.ts';

/** An open request, with the session in which it is decided. */
export interface OpenApproval {
  readonly approval_id: string;
  readonly session_id: string;
  /** The session whose action started this session; null if a client created it. */
  readonly parent_session_id: string | null;
  readonly run_id: string;
  readonly agent: string;
  readonly user_id: string | null;
  readonly action_id: string;
  readonly type: ActionType;
  readonly name: string | null;
  /** Epoch milliseconds. */
  readonly requested_at: number;
  readonly expires_at: number;
  readonly sha256: string;
  readonly bytes: number;
  /** Message of the policy that asks; null: none does, or it has no message. */
  readonly reason: string | null;
  /** Text was redacted (C9); `sha256` and `bytes` are about the redacted call. */
  readonly redacted?: true;
  /**
   * Whether `parameters` and `inputs` are here. A long call is left out as a whole, because a person must not decide
   * about a part of it.
   */
  readonly complete: boolean;
  readonly parameters: JsonObject | null;
  readonly inputs: JsonObject | null;
  /** What the target of the started action asks; null: the action needs an approval to start. */
  readonly question: ShownQuestion | null;
}

/** Oldest first, by time and id. */
export interface ApprovalsPage {
  readonly limit: number;
  readonly after: { readonly at: number; readonly id: string } | null;
  /** Only these ids. */
  readonly only?: readonly string[];
}

/** An open request of a live run: its id, and the seq of its event. */
export interface OpenRequest {
  readonly id: string;
  readonly seq: number;
}

/** @param requests all open requests of the session */
export function openApprovals(
  journal: Journal,
  record: SessionRecord,
  requests: readonly OpenRequest[],
  { limit, after, only }: ApprovalsPage,
): OpenApproval[] {
  const wanted = only === undefined ? requests : requests.filter(({ id }) => only.includes(id));
  const times = journal.history.timesOf(wanted.map(({ seq }) => seq));
  return wanted
    .map(({ id, seq }) => ({ id, seq, at: times.get(seq) ?? 0 }))
    .filter((request) => after === null || inOrder(after, request) < 0)
    .toSorted(inOrder)
    .slice(0, limit)
    .flatMap(({ seq }) => {
      const event = journal.event(seq);
      if (event?.type !== 'approval_requested') return [];
      const { data, timestamp } = event;
      const { parameters = null } = data;
      return [
        {
          approval_id: data.approval_id,
          session_id: record.session_id,
          parent_session_id: record.parent?.session_id ?? null,
          run_id: event.run_id,
          agent: record.agent,
          user_id: record.user_id,
          action_id: event.action_id,
          type: data.type,
          name: event.action_name ?? null,
          requested_at: timestamp,
          expires_at: timestamp + limits.approvalExpiryMs,
          sha256: data.sha256,
          bytes: data.bytes,
          ...(data.redacted === true ? { redacted: true } : {}),
          complete: parameters !== null,
          parameters,
          inputs: parameters === null ? null : (data.inputs ?? {}),
          reason: data.reason ?? null,
          question: data.question ?? null,
        },
      ];
    });
}

interface Place {
  readonly at: number;
  readonly id: string;
}

function inOrder(a: Place, b: Place): number {
  return a.at - b.at || (a.id < b.id ? -1 : Number(a.id > b.id));
}

/** The first entries of several lists in the same order. */
export function mergeApprovals(lists: readonly (readonly OpenApproval[])[], limit: number): OpenApproval[] {
  const placeOf = ({ requested_at: at, approval_id: id }: OpenApproval): Place => ({ at, id });
  return lists
    .flat()
    .toSorted((a, b) => inOrder(placeOf(a), placeOf(b)))
    .slice(0, limit);
}
