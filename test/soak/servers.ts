/** The model and the tools of the soak test, on loopback. They keep nothing between requests. */
import type { ServerResponse } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { bodyOf, serve } from '../chaos/loopback.ts';
import type { LoopbackServer } from '../chaos/loopback.ts';
import { finalAnswer, markIn, programOf } from './manifests.ts';

/** The model writes so many characters at once, with this pause. */
const PIECE_CHARS = 24;
const GAP_MS = 4;

interface ToldMessage {
  readonly role: string;
  readonly content: unknown;
}

/** Carries out the last mark of its messages; if it has answered since, its actions have ended. */
export async function serveModel(): Promise<LoopbackServer> {
  return await serve(async (request, response) => {
    const { messages } = (await bodyOf(request)) as { readonly messages: readonly ToldMessage[] };
    const told = messages.findLastIndex(
      ({ role, content }) => role === 'user' && markIn(JSON.stringify(content)) !== null,
    );
    const mark = told < 0 ? null : markIn(JSON.stringify(messages[told]?.content));
    const isAnswered = messages.slice(told + 1).some(({ role }) => role === 'assistant');
    await write(mark === null || isAnswered ? finalAnswer() : programOf(mark), response);
  });
}

export async function serveTools(): Promise<LoopbackServer> {
  return await serve(async (request, response) => {
    const { item, ms = 0 } = (await bodyOf(request)) as { readonly item: number; readonly ms?: number };
    if (ms > 0) await delay(ms);
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ item, text: 'x'.repeat(64) }));
  });
}

async function write(text: string, response: ServerResponse): Promise<void> {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  for (let at = 0; at < text.length; at += PIECE_CHARS) {
    if (response.destroyed) return;
    send(response, { choices: [{ index: 0, delta: { content: text.slice(at, at + PIECE_CHARS) } }] });
    await delay(GAP_MS);
  }
  send(response, { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] });
  response.end('data: [DONE]\n\n');
}

function send(response: ServerResponse, chunk: object): void {
  response.write(`data: ${JSON.stringify(chunk)}\n\n`);
}
