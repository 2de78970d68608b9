/** A heap of times, the earliest first; entries with the same time in order of insertion. */

export interface Timed {
  readonly at: number;
  readonly order: number;
}

export function inOrder(a: Timed, b: Timed): number {
  return a.at - b.at || a.order - b.order;
}

export function pushInOrder<T extends Timed>(heap: T[], entry: T): void {
  let at = heap.length;
  while (at > 0) {
    const parentAt = (at - 1) >> 1;
    const parent = heap[parentAt];
    if (parent === undefined || inOrder(parent, entry) <= 0) break;
    heap[at] = parent;
    at = parentAt;
  }
  heap[at] = entry;
}

/** Removes the first entry. */
export function popFirst(heap: Timed[]): void {
  const last = heap.pop();
  if (last === undefined || heap.length === 0) return;
  let at = 0;
  for (;;) {
    let childAt = 2 * at + 1;
    let child = heap[childAt];
    if (child === undefined) break;
    const right = heap[childAt + 1];
    if (right !== undefined && inOrder(right, child) < 0) {
      child = right;
      childAt += 1;
    }
    if (inOrder(last, child) <= 0) break;
    heap[at] = child;
    at = childAt;
  }
  heap[at] = last;
}
