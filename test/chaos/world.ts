/**
 * The world outside the system under test, which no kill affects: a tool server that counts its calls per token, and a
 * model server with a constant output rate. Both are on loopback.
 */
import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

const TOKEN_MS = 15;

export interface World extends AsyncDisposable {
  readonly toolUrl: string;
  readonly toolHost: string;
  readonly modelUrl: string;
  /** Number of calls for each token, by effect of the tool. */
  readonly unsafe: ReadonlyMap<string, number>;
  readonly idempotent: ReadonlyMap<string, number>;
}

/** @param script the model's output for a user's message, as long as it has seen no result */
export async function openWorld(script: (message: string) => string): Promise<World> {
  const unsafe = new Map<string, number>();
  const idempotent = new Map<string, number>();

  const tools = await listen(async (request, response) => {
    const counts = request.url === '/unsafe' ? unsafe : idempotent;
    const {
      token,
      delay_ms: delayMs = 0,
      fail_times: failTimes = 0,
    } = (await bodyOf(request)) as {
      token: string;
      delay_ms?: number;
      fail_times?: number;
    };
    const times = (counts.get(token) ?? 0) + 1;
    // Counted on arrival: the effect has happened.
    counts.set(token, times);
    await delay(Number(delayMs));
    const failed = times <= Number(failTimes);
    response.writeHead(failed ? 503 : 200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(failed ? { error: 'not yet' } : { token, value: `value of ${String(token)}` }));
  });

  const model = await listen(async (request, response) => {
    const { messages } = (await bodyOf(request)) as { messages: { role: string; content: string }[] };
    const told = messages.findLast(({ role }) => role === 'user')?.content ?? '';
    const said = told.includes('<action_result') || told.includes('<system>');
    const text = said ? '<response final="true">all told</response>' : script(told);
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    const send = (delta: object, finish: string | null): void => {
      response.write(`data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`);
    };
    for (let at = 0; at < text.length && !response.destroyed; at += 12) {
      send({ content: text.slice(at, at + 12) }, null);
      await delay(TOKEN_MS);
    }
    send({}, 'stop');
    response.end('data: [DONE]\n\n');
  });

  const portOf = (server: Server): number => (server.address() as AddressInfo).port;
  return {
    toolUrl: `http://127.0.0.1:${portOf(tools)}`,
    toolHost: `127.0.0.1:${portOf(tools)}`,
    modelUrl: `http://127.0.0.1:${portOf(model)}/v1`,
    unsafe,
    idempotent,
    async [Symbol.asyncDispose]() {
      for (const server of [tools, model]) {
        server.closeAllConnections();
        await new Promise((resolve) => server.close(resolve));
      }
    },
  };
}

async function listen(handle: (request: IncomingMessage, response: ServerResponse) => Promise<void>): Promise<Server> {
  const server = createServer((request, response) => {
    // A killed client is not an error of the server.
    handle(request, response).catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return server;
}

async function bodyOf(request: IncomingMessage): Promise<Record<string, unknown>> {
  let text = '';
  for await (const chunk of request) text += String(chunk);
  return JSON.parse(text) as Record<string, unknown>;
}
