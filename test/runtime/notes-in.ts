/** Reads what a session has noted for later hosts (session-notes.ts). */

/** By key; empty without a session. */
export function notesIn({ sql }: Pick<DurableObjectStorage, 'sql'>): Record<string, unknown> {
  const [table] = sql.exec(`SELECT name FROM sqlite_master WHERE name = 'session'`).toArray();
  const [row] = table === undefined ? [] : sql.exec<{ notes: string | null }>(`SELECT notes FROM session`).toArray();
  return JSON.parse(row?.notes ?? '{}') as Record<string, unknown>;
}
