/** Pages of open approvals (J8), of one session or of all. */
import { limits } from '../domain/limits.ts';
import type { ApprovalsPage, OpenApproval } from '../engine/actions/approval-list.ts';
import { approvalsQuery, readQuery } from './query.ts';

/** @throws EngineError `invalid_request` */
export function approvalsPage(url: string): ApprovalsPage {
  const { limit = limits.approvalRows, after } = readQuery(approvalsQuery, url);
  const [at = '', id = ''] = after?.split('-', 2) ?? [];
  return { limit, after: after === undefined ? null : { at: Number(at), id } };
}

/** @param found one more than the page, if there are more */
export function approvalsDocument(
  found: readonly OpenApproval[],
  { limit }: ApprovalsPage,
): { readonly approvals: readonly OpenApproval[]; readonly next: string | null } {
  const page = found.slice(0, limit);
  const last = found.length > limit ? page.at(-1) : undefined;
  return { approvals: page, next: last === undefined ? null : `${last.requested_at}-${last.approval_id}` };
}
