/** The list of bare objects: one of several objects, each with a row for each session. */
import { DurableObject } from 'cloudflare:workers';

/** As many as the directory of a namespace has. */
const SHARDS = 16;

/** The name of the object that lists a session. */
export function listOf(sessionId: string): string {
  return `list-${Number.parseInt(sessionId.slice(0, 8), 16) % SHARDS}`;
}

export class BareListObject extends DurableObject {
  constructor(ctx: DurableObjectState, env: object) {
    super(ctx, env);
    ctx.storage.sql.exec(`CREATE TABLE IF NOT EXISTS sessions (id TEXT PRIMARY KEY, data TEXT NOT NULL) WITHOUT ROWID`);
  }

  write(id: string, data: string): void {
    this.ctx.storage.sql.exec(`INSERT OR REPLACE INTO sessions (id, data) VALUES (?, ?)`, id, data);
  }
}
