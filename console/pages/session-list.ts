/** Groups the runs of `GET /executions` by session. */
import type { ExecutionEntry } from '../../src/client/index.ts';

export interface ListedSession {
  readonly id: string;
  readonly agent: string;
  /** Newest first. */
  readonly runs: readonly ExecutionEntry[];
}

/** Sessions in the order of their newest run. @param executions newest first */
export function bySession(executions: readonly ExecutionEntry[]): ListedSession[] {
  const sessions = Map.groupBy(executions, ({ session_id: id }) => id);
  return [...sessions].map(([id, runs]) => ({ id, agent: runs[0]?.agent ?? '', runs }));
}

const ID = /\bses_[0-9a-f]{32}\b/;

/** The id of a session in a pasted text, such as an id or the address of a view; null if there is none. */
export function sessionIdIn(text: string): string | null {
  return ID.exec(text)?.[0] ?? null;
}
