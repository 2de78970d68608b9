/** A minimal session: an object with one row, which forwards the model's output and stores nothing of it. */
import { DurableObject } from 'cloudflare:workers';
import { createParser } from 'eventsource-parser';
import { listOf } from './bare-list-object.ts';
import type { BareListObject } from './bare-list-object.ts';

const HEARTBEAT_MS = 15_000;

interface BareEnv {
  readonly LLM_BASE_URL: string;
  readonly BARE_LIST: DurableObjectNamespace<BareListObject>;
}

export class BareObject extends DurableObject<BareEnv> {
  /** Turns since the object was constructed. */
  #turns = 0;

  create(record: string): void {
    this.ctx.storage.sql.exec(`CREATE TABLE IF NOT EXISTS session (id INTEGER PRIMARY KEY, data TEXT NOT NULL)`);
    this.ctx.storage.sql.exec(`INSERT OR REPLACE INTO session (id, data) VALUES (1, ?)`, record);
  }

  /** The same, and after the answer, a row in a second object. */
  createListed(id: string, record: string): void {
    this.create(record);
    this.ctx.waitUntil(this.env.BARE_LIST.getByName(listOf(id)).write(id, record));
  }

  /**
   * A chat turn: the model's text as separate events, each sent as it arrives. `?piped`: the model's bytes
   * unchanged, without any code of the object. A GET is a reader: a stream that has only heartbeats. The header
   * `x-turn` numbers the turns since the object was constructed.
   */
  override async fetch(request: Request): Promise<Response> {
    if (request.method === 'GET')
      return new Response(heartbeats(), { headers: { 'content-type': 'text/event-stream' } });
    this.#turns += 1;
    const { content } = await request.json<{ content: string }>();
    const answer = await fetch(`${this.env.LLM_BASE_URL}/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'bench', stream: true, messages: [{ role: 'user', content }] }),
    });
    const headers = { 'content-type': 'text/event-stream', 'x-turn': String(this.#turns) };
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

function heartbeats(): ReadableStream<Uint8Array> {
  const beat = new TextEncoder().encode(': heartbeat\n\n');
  let timer: ReturnType<typeof setInterval> | undefined;
  return new ReadableStream<Uint8Array>({
    start: (controller) => {
      controller.enqueue(beat);
      timer = setInterval(() => controller.enqueue(beat), HEARTBEAT_MS);
    },
    cancel: () => clearInterval(timer),
  });
}
