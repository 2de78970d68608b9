/** A minimal session: an object with one row, which forwards the model's output and stores nothing of it. */
import { DurableObject } from 'cloudflare:workers';
import { createParser } from 'eventsource-parser';

export class BareObject extends DurableObject<{ readonly LLM_BASE_URL: string }> {
  create(record: string): void {
    this.ctx.storage.sql.exec(`CREATE TABLE IF NOT EXISTS session (id INTEGER PRIMARY KEY, data TEXT NOT NULL)`);
    this.ctx.storage.sql.exec(`INSERT OR REPLACE INTO session (id, data) VALUES (1, ?)`, record);
  }

  /**
   * A chat turn: the model's text as separate events, each sent as it arrives. `?piped`: the model's bytes
   * unchanged, without any code of the object.
   */
  override async fetch(request: Request): Promise<Response> {
    const { content } = await request.json<{ content: string }>();
    const answer = await fetch(`${this.env.LLM_BASE_URL}/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'bench', stream: true, messages: [{ role: 'user', content }] }),
    });
    const headers = { 'content-type': 'text/event-stream' };
    if (answer.body === null || new URL(request.url).searchParams.has('piped')) {
      return new Response(answer.body, { headers });
    }
    const chunks = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    const encoder = new TextEncoder();
    const relayed = new ReadableStream<Uint8Array>({
      async start(controller) {
        const parser = createParser({
          onEvent: ({ data }) => {
            if (data === '[DONE]') return;
            const { choices } = JSON.parse(data) as { choices: { delta: { content?: string } }[] };
            const delta = choices[0]?.delta.content;
            if (delta !== undefined) controller.enqueue(encoder.encode(`data: ${JSON.stringify({ delta })}\n\n`));
          },
        });
        for (let read = await chunks.read(); !read.done; read = await chunks.read()) parser.feed(read.value);
        controller.close();
      },
    });
    return new Response(relayed, { headers });
  }
}
