/**
 * An OpenAI-compatible model with scripted output, token by token at an exact pace: every token has a
 * time relative to the arrival of the request, so that delays do not accumulate. The run's name in the
 * conversation and the number of answered requests select the output.
 */
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import type { ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type { Generation, Segment } from './generation.ts';
import type { Pace } from './workloads.ts';

export interface ChatTurn {
  readonly role: string;
  readonly content?: unknown;
  readonly tool_call_id?: string;
}

/** A conversation, identified by the name in its messages. */
export interface ModelRun {
  readonly pace: Pace;
  /** The next output for the conversation so far. */
  readonly next: (messages: readonly ChatTurn[]) => Generation;
  /** Called when the last character of an action is about to be written. */
  readonly closed?: (actionId: string, at: number) => void;
}

export interface ModelServer extends AsyncDisposable {
  readonly baseUrl: string;
  /** Requests answered so far. */
  readonly calls: number;
  register(name: string, run: ModelRun): void;
}

/** The name of the run in a user's message. */
export function promptOf(name: string): string {
  return `Please carry out run:${name}.`;
}

export async function startModelServer(): Promise<ModelServer> {
  const runs = new Map<string, ModelRun>();
  let calls = 0;
  const server = createServer((incoming, outgoing) => {
    outgoing.socket?.setNoDelay(true);
    const parts: Buffer[] = [];
    incoming.on('data', (part: Buffer) => parts.push(part));
    incoming.on('end', () => {
      const startedAt = performance.now();
      calls += 1;
      const body = JSON.parse(Buffer.concat(parts).toString()) as { messages: ChatTurn[]; stream?: boolean };
      const run = runs.get(/run:(\w+)/.exec(JSON.stringify(body.messages))?.[1] ?? '');
      if (run === undefined) {
        outgoing.writeHead(404, { 'content-type': 'application/json' });
        outgoing.end(JSON.stringify({ error: { message: 'no such run' } }));
        return;
      }
      const generation = run.next(body.messages);
      const answer =
        body.stream === true
          ? stream(generation, run, startedAt, outgoing)
          : whole(generation, run, startedAt, outgoing);
      answer.catch(() => outgoing.destroy());
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    get calls() {
      return calls;
    },
    register: (name, run) => void runs.set(name, run),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

interface Delta {
  readonly delta: Record<string, unknown>;
  /** The action that this token completes. */
  readonly closes: string | null;
}

/** The chunk for each token; null for tokens without content for the client. */
function* tokens(segments: readonly Segment[]): Generator<Delta | null> {
  let index = 0;
  for (const segment of segments) {
    const last = segment.pieces.length - 1;
    if (segment.type === 'text') {
      for (const [at, piece] of segment.pieces.entries()) {
        yield { delta: { content: piece }, closes: at === last ? segment.closes : null };
      }
      continue;
    }
    for (let n = 1; n < segment.headTokens; n += 1) yield null;
    const head = { index, id: `call_${segment.id}`, type: 'function', function: { name: segment.name, arguments: '' } };
    yield { delta: { tool_calls: [head] }, closes: null };
    for (const [at, piece] of segment.pieces.entries()) {
      const delta = { tool_calls: [{ index, function: { arguments: piece } }] };
      yield { delta, closes: at === last ? segment.id : null };
    }
    for (let n = 0; n < segment.tailTokens; n += 1) yield null;
    index += 1;
  }
}

async function stream(
  generation: Generation,
  { pace, closed }: ModelRun,
  startedAt: number,
  outgoing: ServerResponse,
): Promise<void> {
  outgoing.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
  outgoing.flushHeaders();
  // Clients distinguish messages by it.
  const id = randomUUID();
  let count = 0;
  let waiting = '';
  let closing: string[] = [];
  const send = (): void => {
    if (waiting === '') return;
    const at = performance.now();
    for (const action of closing) closed?.(action, at);
    outgoing.write(waiting);
    waiting = '';
    closing = [];
  };
  for (const token of tokens(generation.segments)) {
    const dueAt = startedAt + pace.firstTokenMs + (count * 1_000) / pace.tokensPerSecond;
    count += 1;
    if (dueAt > performance.now()) {
      send();
      await waitUntil(dueAt);
    }
    if (count === 1) waiting += line(id, { delta: { role: 'assistant', content: '' }, finish_reason: null });
    if (token === null) continue;
    waiting += line(id, { delta: token.delta, finish_reason: null });
    if (token.closes !== null) closing.push(token.closes);
    // Due tokens are sent at once; only a pace above the timer's resolution combines several tokens in one write.
    if (dueAt + 1_000 / pace.tokensPerSecond > performance.now()) send();
  }
  send();
  outgoing.write(line(id, { delta: {}, finish_reason: finishOf(generation) }));
  outgoing.end(`data: ${JSON.stringify({ id, ...HEAD, choices: [], usage: usage(count) })}\n\ndata: [DONE]\n\n`);
}

/** The answer for a client without streaming: the same text, sent when it is complete. */
async function whole(
  generation: Generation,
  { pace, closed }: ModelRun,
  startedAt: number,
  outgoing: ServerResponse,
): Promise<void> {
  let count = 0;
  for (const token of tokens(generation.segments)) {
    const dueAt = startedAt + pace.firstTokenMs + (count * 1_000) / pace.tokensPerSecond;
    count += 1;
    await waitUntil(dueAt);
    if (token !== null && token.closes !== null) closed?.(token.closes, performance.now());
  }
  const calls = generation.segments.filter((segment) => segment.type === 'call');
  const content = generation.segments.flatMap((segment) => (segment.type === 'text' ? segment.pieces : [])).join('');
  const message = {
    role: 'assistant',
    content: content === '' ? null : content,
    ...(calls.length === 0
      ? {}
      : {
          tool_calls: calls.map(({ id, name, pieces }) => ({
            id: `call_${id}`,
            type: 'function',
            function: { name, arguments: pieces.join('') },
          })),
        }),
  };
  outgoing.writeHead(200, { 'content-type': 'application/json' });
  outgoing.end(
    JSON.stringify({
      id: randomUUID(),
      ...HEAD,
      object: 'chat.completion',
      choices: [{ index: 0, message, finish_reason: finishOf(generation) }],
      usage: usage(count),
    }),
  );
}

const HEAD = { object: 'chat.completion.chunk', created: 0, model: 'scripted' } as const;

function line(id: string, choice: Record<string, unknown>): string {
  return `data: ${JSON.stringify({ id, ...HEAD, choices: [{ index: 0, ...choice }] })}\n\n`;
}

function usage(completion: number): Record<string, number> {
  return { prompt_tokens: 100, completion_tokens: completion, total_tokens: 100 + completion };
}

function finishOf({ segments }: Generation): string {
  return segments.some(({ type }) => type === 'call') ? 'tool_calls' : 'stop';
}

/** Timers can fire up to a millisecond late or early; the rest is waited for in turns of the event loop. */
async function waitUntil(at: number): Promise<void> {
  for (let left = at - performance.now(); left > 0; left = at - performance.now()) {
    if (left > 1.5) await delay(left - 1);
    else await new Promise((resolve) => setImmediate(resolve));
  }
}
