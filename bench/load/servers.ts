/**
 * The process of the scripted model and of the tool. They share a clock, so the time from a closing tag to the call is
 * the difference of two readings. Answers the message `take` with the times since the last one.
 */
import { createServer } from 'node:http';
import type { RequestListener, Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { scriptFor } from './script.ts';

export type ServersMessage =
  | { readonly type: 'ready'; readonly modelUrl: string; readonly toolHost: string }
  | { readonly type: 'dispatch'; readonly ms: readonly number[]; readonly missing: number };

const send = (message: ServersMessage): void => void process.send?.(message);

/** Closing tags whose calls have not arrived, by the name of the call. */
const closedAt = new Map<string, number>();
let dispatch: number[] = [];

const tool = await listen((request, response) => {
  const at = performance.now();
  const name = (request.url ?? '').slice(1);
  const closed = closedAt.get(name);
  if (closed !== undefined) {
    dispatch.push(at - closed);
    closedAt.delete(name);
  }
  response.setHeader('content-type', 'text/plain');
  response.end('ok');
});
const toolUrl = `http://${tool.host}`;

const model = await listen((request, response) => {
  const parts: Buffer[] = [];
  request.on('data', (part: Buffer) => parts.push(part));
  request.on('end', () => {
    const { steps, ends } = scriptFor(Buffer.concat(parts).toString(), toolUrl);
    response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
    const chunk = (delta: object, finish: string | null): void => {
      const choices = [{ index: 0, delta, finish_reason: finish }];
      response.write(`data: ${JSON.stringify({ id: 'bench', object: 'chat.completion.chunk', choices })}\n\n`);
    };
    let at = 0;
    let timer: NodeJS.Timeout | undefined;
    response.on('close', () => clearTimeout(timer));
    const write = (): void => {
      for (let step = steps[at]; step !== undefined; step = steps[at]) {
        if (step.closes !== undefined) closedAt.set(step.closes, performance.now());
        chunk({ content: step.text }, null);
        at += 1;
        const waitMs = steps[at]?.waitMs ?? 0;
        if (waitMs > 0) {
          timer = setTimeout(write, waitMs);
          return;
        }
      }
      if (!ends) return;
      chunk({}, 'stop');
      response.end('data: [DONE]\n\n');
    };
    write();
  });
});

process.on('message', (message) => {
  if (message !== 'take') return;
  send({ type: 'dispatch', ms: dispatch, missing: closedAt.size });
  dispatch = [];
  closedAt.clear();
});
process.on('disconnect', () => process.exit(0));
send({ type: 'ready', modelUrl: `http://${model.host}/v1`, toolHost: tool.host });

async function listen(handler: RequestListener): Promise<{ server: Server; host: string }> {
  const server = createServer(handler);
  // Idle connections of workerd stay open: a closed one would cost it a reset.
  server.keepAliveTimeout = 600_000;
  await new Promise<void>((resolve) => server.listen({ host: '127.0.0.1', port: 0, backlog: 4_096 }, resolve));
  return { server, host: `127.0.0.1:${(server.address() as AddressInfo).port}` };
}
