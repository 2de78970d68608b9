/** Servers of 2025-11-25 whose questions and streams go wrong in the middle of a call (E5). */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { afterEach, expect, test } from 'vitest';
import type { ActionOutcome } from '../../src/domain/action.ts';
import { parseObject } from '../../src/domain/json.ts';
import type { JsonObject } from '../../src/domain/json.ts';
import { limits } from '../../src/domain/limits.ts';
import { VirtualClock } from '../../testing/virtual-clock.ts';
import { mcpKit } from './kit.ts';
import { listenOnLoopback } from './servers/loopback.ts';
import { bodyOf } from './servers/recording.ts';

interface Sent {
  readonly method: string;
  readonly message: JsonObject;
  readonly incoming: IncomingMessage;
}

const ends: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const end of ends.splice(0)) await end();
});

/** A server with one tool. `answer` gets every request that is not part of the handshake. @returns its URL */
async function serve(answer: (sent: Sent, outgoing: ServerResponse) => void): Promise<{ readonly url: string }> {
  const server = await listenOnLoopback((incoming, outgoing) => {
    void bodyOf(incoming).then((text) => {
      const message = parseObject(text) ?? {};
      const method = String(message['method'] ?? '');
      if (method === 'initialize') {
        outgoing.setHeader('mcp-session-id', 'one');
        return json(outgoing, message, {
          protocolVersion: '2025-11-25',
          capabilities: { tools: {} },
          serverInfo: { name: 'test', version: '1.0.0' },
        });
      }
      if (method === 'server/discover') return void outgoing.writeHead(400).end();
      if (method === 'notifications/initialized') return void outgoing.writeHead(202).end();
      return answer({ method, message, incoming }, outgoing);
    });
  });
  ends.push(server.close);
  return { url: `${server.origin}/mcp` };
}

function json(outgoing: ServerResponse, { id }: JsonObject, result: JsonObject): void {
  outgoing.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ jsonrpc: '2.0', id, result }));
}

function event(outgoing: ServerResponse, message: JsonObject): void {
  if (!outgoing.headersSent) outgoing.writeHead(200, { 'content-type': 'text/event-stream' });
  outgoing.write(`data: ${JSON.stringify({ jsonrpc: '2.0', ...message })}\n\n`);
}

function failed(outcome: ActionOutcome): Extract<ActionOutcome, { ok: false }> {
  if (outcome.ok) throw new Error(`the call did not fail: ${JSON.stringify(outcome.output)}`);
  return outcome;
}

/** A server that asks these questions at once in each call, and returns the replies in their order. */
async function asking(questions: readonly JsonObject[]): Promise<string> {
  const replies = new Map<string, unknown>();
  let stream: { readonly outgoing: ServerResponse; readonly call: JsonObject } | null = null;
  const { url } = await serve(({ method, message, incoming }, outgoing) => {
    if (method === 'tools/call') {
      stream = { outgoing, call: message };
      for (const [at, params] of questions.entries())
        event(outgoing, { id: `q${at}`, method: 'elicitation/create', params });
      return;
    }
    outgoing.writeHead(incoming.method === 'POST' ? 202 : 405).end();
    if (message['result'] === undefined || stream === null) return;
    replies.set(String(message['id']), message['result']);
    if (replies.size < questions.length) return;
    const ordered = questions.map((_, at) => replies.get(`q${at}`) ?? null);
    event(stream.outgoing, {
      id: stream.call['id'] ?? null,
      result: { content: [{ type: 'text', text: JSON.stringify(ordered) }] },
    });
    stream.outgoing.end();
  });
  return url;
}

const asks = (name: string, message = `Your ${name}, please`): JsonObject => ({
  mode: 'form',
  message,
  requestedSchema: { type: 'object', properties: { [name]: { type: 'string' } } },
});

test('[E5] of questions at the same time, each gets the answer that a person has given to it', async () => {
  const kit = mcpKit(await asking([asks('city'), asks('street')]));
  const first = failed(await kit.call('work', {}, { key: 'run:a' })).question;
  expect(first?.message).toBe('Your city, please');
  const answer = { state: first?.state ?? {}, content: { city: 'Bern' } };
  const second = failed(await kit.call('work', {}, { key: 'run:a', answer })).question;
  expect(second?.message).toBe('Your street, please');
  const further = { state: second?.state ?? {}, content: { street: 'Main' } };
  expect(await kit.call('work', {}, { key: 'run:a', answer: further })).toEqual({
    ok: true,
    output: [
      { action: 'accept', content: { city: 'Bern' } },
      { action: 'accept', content: { street: 'Main' } },
    ],
  });
});

test('[E5] a question that is too large is declined', async () => {
  const kit = mcpKit(await asking([asks('city', 'x'.repeat(limits.mcpStateChars))]));
  expect(await kit.call('work')).toEqual({ ok: true, output: [{ action: 'decline' }] });
});

test('[E5] a list of 8 MB is kept up to what an agent can have', async () => {
  const tools = Array.from({ length: 500 }, (_, index) => ({
    name: `tool_${index}`,
    description: 'x'.repeat(limits.mcpDescriptionChars),
    inputSchema: { type: 'object' },
    annotations: { readOnlyHint: true, notes: 'x'.repeat(10_000) },
  }));
  const { url } = await serve(({ method, message }, outgoing) => {
    if (method === 'tools/list') return json(outgoing, message, { tools });
    return void outgoing.writeHead(405).end();
  });
  const { list, problem } = await mcpKit(url).list();
  expect(problem).toBeNull();
  expect(JSON.stringify(list).length).toBeLessThan(limits.mcpToolsChars + 10_000);
  expect((list?.tools.length ?? 0) + (list?.left ?? 0)).toBe(500);
  expect(list?.tools[0]?.annotations).toEqual({ readOnlyHint: true, idempotentHint: false });
});

test('[E5] a server that ends its streams at once is not asked again without a pause', async () => {
  let streams = 0;
  const leave = new AbortController();
  const { url } = await serve(({ method, incoming }, outgoing) => {
    if (method === 'tools/call')
      return void outgoing.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
    if (incoming.method !== 'GET') return void outgoing.writeHead(405).end();
    streams += 1;
    if (streams === 1) setTimeout(() => leave.abort(), 10 * limits.mcpReconnectLeastMs);
    outgoing.writeHead(200, { 'content-type': 'text/event-stream' }).end('retry: 0\n\n');
  });
  const { error } = failed(await mcpKit(url).call('work', {}, { signal: leave.signal }));
  expect(error.code).toBe('aborted');
  expect(streams).toBeLessThanOrEqual(11);
});

test('[E5] a server that does not answer the end of its session does not keep the connection', async () => {
  const ending = Promise.withResolvers<void>();
  const { url } = await serve(({ method, incoming }, outgoing) => {
    if (method === 'tools/call') return void outgoing.writeHead(500).end();
    if (incoming.method !== 'DELETE') return void outgoing.writeHead(405).end();
    outgoing.on('close', ending.resolve);
    clock.advance(limits.mcpConnectMs);
  });
  const clock = new VirtualClock();
  expect(failed(await mcpKit(url, { clock }).call('work')).error.code).toBe('mcp_failed');
  await ending.promise;
});
