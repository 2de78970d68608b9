/** The directory of sessions (C6): what it lists about each one, in which of its shards, and the order of its pages. */
import { limits } from './limits.ts';
import { objectName } from './owner.ts';

/** `waiting`: nothing is running, and a run waits for people or clients. */
export const SESSION_STATUSES = ['running', 'waiting', 'idle'] as const;
export type SessionStatus = (typeof SESSION_STATUSES)[number];

export interface DirectoryEntry {
  readonly session_id: string;
  /** The agent, or the workflow. */
  readonly agent: string;
  readonly user_id: string | null;
  /** The first line of the first message; null if it has no text, or until there is one. */
  readonly title: string | null;
  readonly status: SessionStatus;
  readonly created_at: number;
  /** When the latest run began or ended; at least `created_at`. */
  readonly updated_at: number;
  /** US dollars of all runs; null if no price is known. */
  readonly cost: number | null;
}

/** One write of a session. Later ones have higher numbers. */
export interface DirectoryRecord {
  /** Distinguishes the session from others with the same id; empty for a session without one (T5). */
  readonly incarnation: string;
  readonly number: number;
  readonly entry: DirectoryEntry;
}

/** A place in the order of all entries: by `updated_at`, then by id, both descending. */
export interface DirectoryPosition {
  readonly at: number;
  readonly id: string;
}

/** Entries after `before` with these properties; null: any. */
export interface DirectoryPage {
  readonly limit: number;
  readonly before: DirectoryPosition | null;
  readonly userId: string | null;
  /** One of these. */
  readonly agents: readonly string[] | null;
  readonly status: SessionStatus | null;
}

/** What one shard has of a page. */
export interface DirectoryRows {
  readonly entries: readonly DirectoryEntry[];
  /** Entries after this place were not read, because few entries fit the page; null: all were. */
  readonly scannedTo: DirectoryPosition | null;
}

/** What the index of all sessions does for one of them. Both may be repeated. */
export interface DirectoryIndex {
  readonly record: (record: DirectoryRecord) => Promise<void>;
  readonly forget: (sessionId: string, incarnation: string) => Promise<void>;
}

export const positionOf = ({ updated_at: at, session_id: id }: DirectoryEntry): DirectoryPosition => ({ at, id });

/** Negative if `one` comes first. */
function compare(one: DirectoryPosition, other: DirectoryPosition): number {
  if (one.at !== other.at) return other.at - one.at;
  return one.id === other.id ? 0 : one.id > other.id ? -1 : 1;
}

/** The name of the object that lists a session. The number comes first, so no two owners share a name. */
export function shardOf(owner: string | null, sessionId: string): string {
  return shardName(owner, hashOf(`${objectName(owner)}/${sessionId}`) % limits.directoryShards);
}

/** All objects that list sessions of an owner. */
export function shardsOf(owner: string | null): string[] {
  return Array.from({ length: limits.directoryShards }, (_, shard) => shardName(owner, shard));
}

function shardName(owner: string | null, shard: number): string {
  return `${shard}/${objectName(owner)}`;
}

/** FNV-1a. Changing it would list sessions twice. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at += 1) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193) >>> 0;
  return (hash ^ (hash >>> 16)) >>> 0;
}

/**
 * One page of all shards.
 *
 * @param shards each with up to `limit + 1` entries, in order
 * @returns up to `limit` entries; `next`: the place that the next page begins after, null on the last one
 */
export function mergeShards(
  shards: readonly DirectoryRows[],
  limit: number,
): { readonly entries: readonly DirectoryEntry[]; readonly next: DirectoryPosition | null } {
  // What comes after it may be in the part of a shard that was not read.
  const [end = null] = shards.flatMap(({ scannedTo }) => scannedTo ?? []).toSorted(compare);
  const entries = shards
    .flatMap((shard) => shard.entries)
    .filter((entry) => end === null || compare(positionOf(entry), end) <= 0)
    .toSorted((one, other) => compare(positionOf(one), positionOf(other)));
  const page = entries.slice(0, limit);
  const last = page.at(-1);
  return { entries: page, next: entries.length > limit && last !== undefined ? positionOf(last) : end };
}
