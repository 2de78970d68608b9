/** Requests for approval that keep their places, so that none moves under the pointer of the person who decides. */
import { useRef } from 'preact/hooks';
import type { OpenApproval } from '../../src/client/index.ts';
import * as limits from '../parts/limits.ts';

export interface SteadyApproval {
  readonly approval: OpenApproval;
  /** Whether it was decided, was cancelled or has expired. */
  readonly isOver: boolean;
}

/**
 * What was open stays until nothing is open any more; new requests are added at the end.
 *
 * @param shown what this function returned before
 */
export function steady(shown: readonly SteadyApproval[], open: readonly OpenApproval[]): readonly SteadyApproval[] {
  if (open.length === 0) return [];
  const isIn = (list: readonly OpenApproval[], { approval_id: id }: OpenApproval): boolean =>
    list.some((each) => each.approval_id === id);
  const before = shown.map(({ approval }) => approval);
  return [
    ...before.map((approval) => ({ approval, isOver: !isIn(open, approval) })),
    ...open.filter((approval) => !isIn(before, approval)).map((approval) => ({ approval, isOver: false })),
  ].slice(-limits.approvalsShown);
}

export function useSteady(open: readonly OpenApproval[]): readonly SteadyApproval[] {
  const shown = useRef<readonly SteadyApproval[]>([]);
  shown.current = steady(shown.current, open);
  return shown.current;
}
