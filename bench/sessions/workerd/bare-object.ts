/** The least that a session can be: an object with one row, which passes the model's stream on as it comes and keeps nothing of it. */
import { DurableObject } from 'cloudflare:workers';

export class BareObject extends DurableObject<{ readonly LLM_BASE_URL: string }> {
  create(record: string): void {
    this.ctx.storage.sql.exec(`CREATE TABLE IF NOT EXISTS session (id INTEGER PRIMARY KEY, data TEXT NOT NULL)`);
    this.ctx.storage.sql.exec(`INSERT OR REPLACE INTO session (id, data) VALUES (1, ?)`, record);
  }

  /** A chat turn: the request to the model, and its body as the answer's body. */
  override async fetch(request: Request): Promise<Response> {
    const { content } = await request.json<{ content: string }>();
    const answer = await fetch(`${this.env.LLM_BASE_URL}/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'bench', stream: true, messages: [{ role: 'user', content }] }),
    });
    return new Response(answer.body, { headers: { 'content-type': 'text/event-stream' } });
  }
}
