/** Binary heaps in arrays. Each entry knows its index, so that it can be removed or moved without a search. */

export interface HeapEntry {
  /** Its index; -1: it is in no heap. */
  heapAt: number;
}

/** Whether `a` goes before `b`; never true in both directions. */
export type Before<T> = (a: T, b: T) => boolean;

/** The earliest first; entries with the same time in order of insertion. */
export function isEarlier(a: { readonly at: number; readonly order: number }, b: typeof a): boolean {
  return a.at === b.at ? a.order < b.order : a.at < b.at;
}

export function push<T extends HeapEntry>(heap: T[], entry: T, before: Before<T>): void {
  heap.push(entry);
  siftUp(heap, entry, heap.length - 1, before);
}

/** Removes an entry that is in this heap. */
export function remove<T extends HeapEntry>(heap: T[], entry: T, before: Before<T>): void {
  const at = entry.heapAt;
  const last = heap.pop();
  entry.heapAt = -1;
  if (last === undefined || last === entry) return;
  siftDown(heap, last, at, before);
  if (last.heapAt === at) siftUp(heap, last, at, before);
}

/** Moves an entry up that goes before more entries than it did. */
export function siftUp<T extends HeapEntry>(heap: T[], entry: T, start: number, before: Before<T>): void {
  let at = start;
  while (at > 0) {
    const parentAt = (at - 1) >> 1;
    const parent = heap[parentAt];
    if (parent === undefined || before(parent, entry)) break;
    heap[at] = parent;
    parent.heapAt = at;
    at = parentAt;
  }
  heap[at] = entry;
  entry.heapAt = at;
}

function siftDown<T extends HeapEntry>(heap: T[], entry: T, start: number, before: Before<T>): void {
  let at = start;
  for (;;) {
    let childAt = 2 * at + 1;
    let child = heap[childAt];
    if (child === undefined) break;
    const right = heap[childAt + 1];
    if (right !== undefined && before(right, child)) {
      child = right;
      childAt += 1;
    }
    if (before(entry, child)) break;
    heap[at] = child;
    child.heapAt = at;
    at = childAt;
  }
  heap[at] = entry;
  entry.heapAt = at;
}
