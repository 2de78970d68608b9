/** Pages of a list whose entries are in several objects (C6, H1). */

/** A place in the order of all entries: by `updated_at`, then by id, both descending. */
export interface DirectoryPosition {
  readonly at: number;
  readonly id: string;
}

/** One shard's part of a page. */
export interface ShardRows<T> {
  readonly entries: readonly T[];
  /** Entries after this place were not read, because few entries fit the page; null: all were. */
  readonly scannedTo: DirectoryPosition | null;
}

/** A page of all shards; `next`: the place that the next page begins after, null on the last one. */
export interface MergedPage<T> {
  readonly entries: readonly T[];
  readonly next: DirectoryPosition | null;
}

/**
 * One page of all shards.
 *
 * @param shards each with up to `limit + 1` entries, in order
 * @returns up to `limit` entries
 */
export function mergePage<T>(
  shards: readonly ShardRows<T>[],
  limit: number,
  placeOf: (entry: T) => DirectoryPosition,
): MergedPage<T> {
  // What comes after it may be in the part of a shard that was not read.
  const [end = null] = shards.flatMap(({ scannedTo }) => scannedTo ?? []).toSorted(compare);
  const entries = shards
    .flatMap((shard) => shard.entries)
    .map((entry) => ({ entry, place: placeOf(entry) }))
    .filter(({ place }) => end === null || compare(place, end) <= 0)
    .toSorted((one, other) => compare(one.place, other.place));
  const page = entries.slice(0, limit);
  const last = page.at(-1);
  return {
    entries: page.map(({ entry }) => entry),
    next: entries.length > limit && last !== undefined ? last.place : end,
  };
}

/** Negative if `one` comes first. */
function compare(one: DirectoryPosition, other: DirectoryPosition): number {
  if (one.at !== other.at) return other.at - one.at;
  return one.id === other.id ? 0 : one.id > other.id ? -1 : 1;
}
