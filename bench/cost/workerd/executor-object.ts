/** A minimal executor: calls URLs with a number of slots, and stores nothing. */
import { DurableObject } from 'cloudflare:workers';
import { createParser } from 'eventsource-parser';
import type { Call, Plan } from '../plan.ts';

export class ExecutorObject extends DurableObject<{ readonly LLM_BASE_URL: string }> {
  override async fetch(request: Request): Promise<Response> {
    const { host, calls, slots, prompt } = await request.json<Plan>();
    const running = new Calls(host, slots);
    for (const call of calls) running.add(call);
    if (prompt !== null) await this.#readModel(prompt, running);
    return Response.json({ completed: await running.done() });
  }

  async #readModel(prompt: string, calls: Calls): Promise<void> {
    const answer = await fetch(`${this.env.LLM_BASE_URL}/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'bench', stream: true, messages: [{ role: 'user', content: prompt }] }),
    });
    if (answer.body === null) return;
    let text = '';
    const parser = createParser({
      onEvent: ({ data }) => {
        if (data === '[DONE]') return;
        const { choices } = JSON.parse(data) as { choices: { delta: { content?: string } }[] };
        text += choices[0]?.delta.content ?? '';
        for (let end = text.indexOf('</action>'); end !== -1; end = text.indexOf('</action>')) {
          calls.add(JSON.parse(text.slice(text.indexOf('{'), end)) as Call);
          text = text.slice(end + '</action>'.length);
        }
      },
    });
    const chunks = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let read = await chunks.read(); !read.done; read = await chunks.read()) parser.feed(read.value);
  }
}

/** Calls in order, as soon as a slot is free. */
class Calls {
  readonly #host: string;
  readonly #waiting: Call[] = [];
  readonly #running = new Set<Promise<void>>();
  #free: number;
  #completed = 0;

  constructor(host: string, slots: number) {
    this.#host = host;
    this.#free = slots;
  }

  add(call: Call): void {
    this.#waiting.push(call);
    this.#next();
  }

  /** @returns the number of calls */
  async done(): Promise<number> {
    while (this.#running.size > 0) await Promise.race(this.#running);
    return this.#completed;
  }

  #next(): void {
    const next = this.#free > 0 ? this.#waiting.shift() : undefined;
    if (next === undefined) return;
    this.#free -= 1;
    const call = this.#call(next).finally(() => {
      this.#running.delete(call);
      this.#free += 1;
      this.#next();
    });
    this.#running.add(call);
  }

  async #call({ call, ms }: Call): Promise<void> {
    const response = await fetch(`http://${this.#host}/${ms}?call=${call}`);
    JSON.parse(await response.text());
    this.#completed += 1;
  }
}
