/** The directory of sessions (C6): what it lists about each one, in which of its shards, and the order of its pages. */
import type { ExecutionEntry } from './execution.ts';
import { limits } from './limits.ts';
import { mergePage } from './list-page.ts';
import type { DirectoryPosition, MergedPage, ShardRows } from './list-page.ts';
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
  readonly session_id: string;
  /** Distinguishes the session from others with the same id; empty for a session without one (T5). */
  readonly incarnation: string;
  readonly number: number;
  /** Null: the directory does not list the session. */
  readonly entry: DirectoryEntry | null;
  /** Runs that the index lacks, or whose state has changed. */
  readonly runs: readonly ExecutionEntry[];
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

/** One shard's part of a page. */
export type DirectoryRows = ShardRows<DirectoryEntry>;

/** What the lists of all sessions and runs do for one session. Both may be repeated. */
export interface DirectoryIndex {
  readonly write: (record: DirectoryRecord) => Promise<void>;
  readonly forget: (sessionId: string, incarnation: string) => Promise<void>;
}

const positionOf = ({ updated_at: at, session_id: id }: DirectoryEntry): DirectoryPosition => ({ at, id });

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

/** A page of the sessions of all shards. */
export function mergeShards(shards: readonly DirectoryRows[], limit: number): MergedPage<DirectoryEntry> {
  return mergePage(shards, limit, positionOf);
}
