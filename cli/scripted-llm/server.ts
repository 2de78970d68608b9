/**
 * An OpenAI-compatible model server that sends scripted replies, with scripted pace and faults. Replies come from a list
 * (one per request, in order; the last one repeats) or from a function of the request.
 */
import { createServer } from 'node:http';
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** One step of a streamed answer. */
export type StreamStep =
  /** A content delta. */
  | string
  | { readonly reasoning: string }
  | { readonly toolCall: { index: number; id?: string; name?: string; arguments?: string } }
  | { readonly finish: string }
  | { readonly usage: Record<string, unknown> }
  /** A verbatim chunk. */
  | { readonly chunk: unknown }
  /** A `data:` line with any content. */
  | { readonly data: string }
  | { readonly comment: string }
  /** 0: one turn of the event loop. */
  | { readonly pauseMs: number }
  /** Sends nothing more and keeps the connection open. */
  | 'STALL'
  /** Destroys the connection. */
  | 'CUT'
  /** Ends the body without `[DONE]`. */
  | 'CLOSE';

export type ScriptedReply =
  | { readonly stream: readonly StreamStep[] }
  | {
      readonly status: number;
      readonly headers?: Readonly<Record<string, string>>;
      readonly body?: unknown;
    };

export interface SeenRequest {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Record<string, unknown>;
  /** Resolves when the client closes the connection before the end of the answer. */
  readonly left: Promise<void>;
}

export interface ScriptedLlm extends AsyncDisposable {
  /** Value for `LLM_BASE_URL`. */
  readonly baseUrl: string;
  readonly requests: readonly SeenRequest[];
  /** Waits for the request with this number, from 0. */
  request(number: number): Promise<SeenRequest>;
}

/** A text answer in deltas of `deltaChars`, with finish reason and usage. */
export function answer(text: string, deltaChars = 4): ScriptedReply {
  const deltas: string[] = [];
  for (let at = 0; at < text.length; at += deltaChars) deltas.push(text.slice(at, at + deltaChars));
  return {
    stream: [...deltas, { finish: 'stop' }, { usage: { prompt_tokens: 10, completion_tokens: deltas.length } }],
  };
}

/** Listens on a free port of the loopback address. */
export async function startScriptedLlm(
  replies: readonly ScriptedReply[] | ((request: SeenRequest) => ScriptedReply),
  port = 0,
): Promise<ScriptedLlm> {
  const requests: SeenRequest[] = [];
  const waiting: { number: number; resolve: (request: SeenRequest) => void }[] = [];
  const server = createServer((incoming, outgoing) => {
    void serve(incoming, outgoing).catch(() => outgoing.destroy());
  });

  const serve = async (incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> => {
    const { promise: left, resolve: leave } = Promise.withResolvers<void>();
    outgoing.on('close', () => {
      if (!outgoing.writableFinished) leave();
    });
    let text = '';
    for await (const piece of incoming.setEncoding('utf8')) text += String(piece);
    const request: SeenRequest = {
      path: incoming.url ?? '',
      headers: incoming.headers,
      body: text === '' ? {} : (JSON.parse(text) as Record<string, unknown>),
      left,
    };
    const reply =
      typeof replies === 'function'
        ? replies(request)
        : (replies[Math.min(requests.length, replies.length - 1)] ?? answer(''));
    requests.push(request);
    for (const { number, resolve } of waiting) if (number < requests.length) resolve(requests[number] ?? request);
    if ('stream' in reply) {
      await stream(reply.stream, outgoing);
      return;
    }
    const { status, headers = {}, body = { error: { message: `scripted ${status}` } } } = reply;
    outgoing.writeHead(status, { 'content-type': 'application/json', ...headers });
    outgoing.end(typeof body === 'string' ? body : JSON.stringify(body));
  };

  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', resolve);
  });
  return {
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    requests,
    request: async (number) =>
      requests[number] ??
      (await new Promise<SeenRequest>((resolve) => {
        waiting.push({ number, resolve });
      })),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => {
        server.close(resolve);
      });
    },
  };
}

async function stream(steps: readonly StreamStep[], outgoing: ServerResponse): Promise<void> {
  outgoing.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
  outgoing.flushHeaders();
  const send = (data: unknown): void => {
    outgoing.write(`data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`);
  };
  const chunk = (delta: Record<string, unknown>, finish: string | null = null): void =>
    send({
      id: 'scripted',
      object: 'chat.completion.chunk',
      created: 0,
      model: 'scripted',
      choices: [{ index: 0, delta, finish_reason: finish }],
    });
  for (const step of steps) {
    if (step === 'STALL') return;
    if (step === 'CUT') {
      // flush before the connection is destroyed
      await new Promise((resolve) => {
        outgoing.write('', resolve);
      });
      outgoing.destroy();
      return;
    }
    if (step === 'CLOSE') {
      outgoing.end();
      return;
    }
    if (typeof step === 'string') chunk({ content: step });
    else if ('reasoning' in step) chunk({ reasoning_content: step.reasoning });
    else if ('toolCall' in step) {
      const { index, id, name, arguments: args } = step.toolCall;
      chunk({
        tool_calls: [
          { index, ...(id === undefined ? {} : { id, type: 'function' }), function: { name, arguments: args } },
        ],
      });
    } else if ('finish' in step) chunk({}, step.finish);
    else if ('usage' in step) send({ id: 'scripted', object: 'chat.completion.chunk', choices: [], usage: step.usage });
    else if ('chunk' in step) send(step.chunk);
    else if ('data' in step) send(step.data);
    else if ('comment' in step) outgoing.write(`: ${step.comment}\n\n`);
    else {
      await new Promise<void>((resolve) => {
        if (step.pauseMs === 0) setImmediate(resolve);
        else setTimeout(resolve, step.pauseMs);
      });
      if (outgoing.destroyed) return;
    }
  }
  send('[DONE]');
  outgoing.end();
}
