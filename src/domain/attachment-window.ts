/** Which attachments of a conversation a model gets (C2): the newest ones within a budget. */

export interface AttachmentBudget {
  readonly most: number;
  readonly bytes: number;
}

/**
 * Reads the groups (the attachments of one message each) from the oldest to the newest. A group that does not fit
 * beside the earlier ones removes the oldest of these until everything fits into half of the budget, so the border moves
 * in steps: between two steps, each prompt extends the previous one, and providers can cache it.
 *
 * @param sizeOf what an attachment uses of `budget.bytes`
 * @returns the attachments that are shown, in order
 */
export function newestWithin<T>(
  groups: readonly (readonly T[])[],
  budget: AttachmentBudget,
  sizeOf: (item: T) => number,
): ReadonlySet<T> {
  let shown: T[] = [];
  let bytes = 0;
  for (const group of groups) {
    const { fitting, fittingBytes } = firstWithin(group, budget, sizeOf);
    if (shown.length + fitting.length > budget.most || bytes + fittingBytes > budget.bytes) {
      let from = 0;
      const isTooMuch = (): boolean =>
        shown.length - from + fitting.length > budget.most / 2 || bytes + fittingBytes > budget.bytes / 2;
      for (const item of shown) {
        if (!isTooMuch()) break;
        bytes -= sizeOf(item);
        from += 1;
      }
      shown = shown.slice(from);
    }
    shown.push(...fitting);
    bytes += fittingBytes;
  }
  return new Set(shown);
}

/** The attachments of one message that fit into the whole budget, first come, first served. */
function firstWithin<T>(
  group: readonly T[],
  budget: AttachmentBudget,
  sizeOf: (item: T) => number,
): { readonly fitting: readonly T[]; readonly fittingBytes: number } {
  const fitting: T[] = [];
  let fittingBytes = 0;
  for (const item of group) {
    const size = sizeOf(item);
    if (fitting.length >= budget.most || fittingBytes + size > budget.bytes) continue;
    fitting.push(item);
    fittingBytes += size;
  }
  return { fitting, fittingBytes };
}
