/** A model that says so many words, one a chunk, as fast as they are read: what is measured is everything else. */
import { createServer } from 'node:http';
import type { ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface ModelServer {
  readonly baseUrl: string;
  close(): void;
}

/** @param paceMs between two chunks; 0 = one a turn of the event loop */
export async function startModelServer(tokens: number, paceMs: number): Promise<ModelServer> {
  const server = createServer((request, response) => {
    request.resume();
    request.on('end', () => void answer(response, tokens, paceMs));
  });
  server.keepAliveTimeout = 60_000;
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return { baseUrl: `http://127.0.0.1:${port}/v1`, close: () => void server.close().closeAllConnections() };
}

async function answer(response: ServerResponse, tokens: number, paceMs: number): Promise<void> {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  const send = (delta: object, finish: string | null): void => {
    const choices = [{ index: 0, delta, finish_reason: finish }];
    const chunk = { id: 'c', object: 'chat.completion.chunk', created: 1, model: 'bench', choices };
    response.write(`data: ${JSON.stringify(chunk)}\n\n`);
  };
  for (let n = 0; n < tokens; n += 1) {
    send({ role: 'assistant', content: `word${n} ` }, null);
    await new Promise<void>((resolve) => (paceMs === 0 ? setImmediate(resolve) : setTimeout(resolve, paceMs)));
    if (response.destroyed) return;
  }
  send({}, 'stop');
  response.end('data: [DONE]\n\n');
}
