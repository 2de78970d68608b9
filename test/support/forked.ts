/** Forks of a session without Durable Objects (C4). */
import type { ObjectStore } from '../../src/domain/ports/storage.ts';
import { ForkTarget } from '../../src/engine/session/session-fork.ts';
import type { SessionRecord } from '../../src/domain/session.ts';
import type { ForkPage } from '../../src/engine/session/session-fork.ts';
import type { Session } from '../../src/engine/session/session.ts';
import { Journal } from '../../src/journal/journal.ts';
import { SESSION_RECORD } from '../journal/journal-kit.ts';
import { openNodeSql } from './node-sql.ts';
import type { NodeSql } from './node-sql.ts';

/** The record of the other session. */
export const FORK_RECORD = { ...SESSION_RECORD, session_id: `ses_${'b'.repeat(32)}`, incarnation: 'b'.repeat(12) };

/** What a session sends. @param run the last run of the branch; null: none */
export async function pagesOf(session: Session, run: number | null): Promise<ForkPage[]> {
  const pages: ForkPage[] = [];
  const last = run === null ? null : (session.runs(1, run + 1)[0] ?? null);
  for await (const page of session.forkPages(last)) pages.push(page);
  return pages;
}

/** The database of a fork. */
export async function forked(
  session: Session,
  run: number | null,
  objects: ObjectStore | null = null,
  more: Partial<SessionRecord> = {},
): Promise<NodeSql> {
  const sql = openNodeSql();
  const target = new ForkTarget(new Journal(sql), { ...FORK_RECORD, ...more }, objects);
  for (const page of await pagesOf(session, run)) await target.take(structuredClone(page));
  await target.finish();
  return sql;
}
