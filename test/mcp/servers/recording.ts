/** What a client sent to a server under test. */
import type { IncomingMessage } from 'node:http';

export interface RecordedRequest {
  readonly httpMethod: string;
  readonly path: string;
  readonly headers: IncomingMessage['headers'];
  /** Methods of JSON-RPC messages in the body: one, except for batches. Responses have none. */
  readonly methods: readonly string[];
  /** The parsed body; null without one or if it is not JSON. */
  readonly body: unknown;
  /** Whether the client closed the connection before the answer was complete. */
  readonly wasCut: boolean;
}

export class Recording {
  readonly #requests: (RecordedRequest & { wasCut: boolean })[] = [];
  readonly #waiting: { readonly isMet: () => boolean; readonly resolve: () => void }[] = [];

  get requests(): readonly RecordedRequest[] {
    return this.#requests;
  }

  /** Number of requests with this JSON-RPC method. */
  count(method: string): number {
    return this.of(method).length;
  }

  /** Requests with this JSON-RPC method, such as `tools/call`. */
  of(method: string): readonly RecordedRequest[] {
    return this.#requests.filter(({ methods }) => methods.includes(method));
  }

  /** Resolves when the condition holds; it is checked after each request and each cut. */
  async until(isMet: (recording: this) => boolean): Promise<void> {
    if (isMet(this)) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting.push({ isMet: () => isMet(this), resolve });
    await promise;
  }

  /** @returns the function that says that the client cut the connection */
  add(incoming: IncomingMessage, text: string): () => void {
    const body = parsed(text);
    const messages = Array.isArray(body) ? body : [body];
    const methods = messages.flatMap((message) => {
      const method: unknown = (message as { readonly method?: unknown } | null)?.method;
      return typeof method === 'string' ? [method] : [];
    });
    const { method = 'GET', url = '/', headers } = incoming;
    const entry = { httpMethod: method, path: url, headers, methods, body, wasCut: false };
    this.#requests.push(entry);
    this.#check();
    return () => {
      entry.wasCut = true;
      this.#check();
    };
  }

  #check(): void {
    for (const { isMet, resolve } of this.#waiting) if (isMet()) resolve();
  }
}

/** Reads a whole body as text. */
export async function bodyOf(incoming: IncomingMessage): Promise<string> {
  let text = '';
  incoming.setEncoding('utf8');
  for await (const chunk of incoming) text += chunk as string;
  return text;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return null;
  }
}
