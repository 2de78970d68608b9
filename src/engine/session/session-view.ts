/** The part of a session that a reader may have (T1). Readers without one may have everything. */
import type { EventView } from '../../domain/event.ts';
import type { JsonObject } from '../../domain/json.ts';
import type { SeededView } from '../../domain/seeded.ts';
import type { OpenApproval } from '../actions/approval-list.ts';
import type { ApprovalView } from '../actions/approval-view.ts';

export interface SessionView {
  readonly event: EventView;
  /** A message of the seeded history. */
  readonly seeded: SeededView;
  /** The stored input of a run. */
  readonly input: (input: JsonObject) => JsonObject;
  /** A request that waits for a decision. */
  readonly openApproval: (approval: OpenApproval) => OpenApproval;
  /** A request, with its decision. */
  readonly approval: (approval: ApprovalView) => ApprovalView;
}
