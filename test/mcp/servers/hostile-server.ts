/**
 * An MCP server that does not keep to the protocol, or that keeps to it and means harm. It is written by hand on
 * node:http, because the reference SDK does not produce such answers. It speaks one protocol: 2026-07-28 (stateless) or
 * 2025-11-25 (sessions), as much of it as clients of tools need.
 */
import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Gate } from './gate.ts';
import { listenOnLoopback } from './loopback.ts';
import { Recording, bodyOf } from './recording.ts';

/** What the server does instead of an answer. */
export type Misbehaviour =
  /** No answer before `gate` opens; then a correct one. */
  | { readonly kind: 'silent' }
  /** An HTTP status with headers, such as `retry-after`. Redirects have the header `location`. */
  | { readonly kind: 'status'; readonly status: number; readonly headers?: Readonly<Record<string, string>> }
  /** A body that is no JSON. */
  | { readonly kind: 'invalid_json' }
  /** A web page. */
  | { readonly kind: 'wrong_content_type' }
  /** A correct answer to another request. */
  | { readonly kind: 'wrong_id' }
  /** A stream without messages and without an end. */
  | { readonly kind: 'endless_stream' }
  /** A stream of progress reports without an end. */
  | { readonly kind: 'endless_progress' }
  /** A stream that ends without an answer. */
  | { readonly kind: 'ended_stream' }
  /** The connection ends without an answer. */
  | { readonly kind: 'disconnect' };

export interface ListPage {
  readonly tools: readonly object[];
  readonly nextCursor?: string;
}

/** A question to the person, in place of a result. */
export interface Question {
  readonly asks: { readonly message: string } & Readonly<Record<string, unknown>>;
}

export interface HostileServerOptions {
  /** Default: modern. */
  readonly speaks?: 'legacy' | 'modern';
  /** A page of the list. `lists` is the number of complete lists before. Default: one tool `work`. */
  readonly list?: (cursor: string | null, lists: number) => ListPage;
  /** The result of each tool, or a question. Default: the text `done`. */
  readonly results?: Readonly<Record<string, object | Question>>;
  /** How long clients may keep the list, in milliseconds. Default: 0. */
  readonly ttlMs?: number;
}

export interface HostileServer extends AsyncDisposable {
  readonly host: string;
  readonly url: string;
  readonly recording: Recording;
  /** Where silent answers wait. */
  readonly gate: Gate;
  /** What the server does from now on at requests with this method; null: it answers. */
  readonly misbehave: (method: string, misbehaviour: Misbehaviour | null) => void;
  /** Forgets all sessions. */
  readonly restart: () => void;
  /** Answers of the person to questions, in order. */
  readonly replies: readonly unknown[];
  readonly close: () => Promise<void>;
}

interface Message {
  readonly id?: string | number;
  readonly method?: string;
  readonly params?: Readonly<Record<string, unknown>>;
  readonly result?: unknown;
}

const MODERN = '2026-07-28';
const LEGACY = '2025-11-25';
const WORK = { name: 'work', description: 'Works.', inputSchema: { type: 'object', properties: {} } } as const;

/** @param port default: a free one */
export async function startHostileServer(options: HostileServerOptions = {}, port = 0): Promise<HostileServer> {
  const { speaks = 'modern', list = (): ListPage => ({ tools: [WORK] }), results = {}, ttlMs = 0 } = options;
  const recording = new Recording();
  const gate = new Gate();
  const misbehaviours = new Map<string, Misbehaviour>();
  const sessions = new Set<string>();
  /** Questions of the legacy protocol that wait for an answer. */
  const questions = new Map<string, (reply: unknown) => void>();
  const replies: unknown[] = [];
  let lists = 0;

  const resultOf = (message: Message): unknown => {
    const { method, params = {} } = message;
    if (method === 'initialize') {
      return {
        protocolVersion: LEGACY,
        capabilities: { tools: {} },
        serverInfo: { name: 'hostile', version: '1.0.0' },
      };
    }
    if (method === 'server/discover') {
      return { supportedVersions: [MODERN], capabilities: { tools: {} }, ttlMs: 0, cacheScope: 'private' };
    }
    if (method === 'tools/list') {
      const page = list(typeof params['cursor'] === 'string' ? params['cursor'] : null, lists);
      if (page.nextCursor === undefined) lists += 1;
      return { ...page, ttlMs, cacheScope: 'private' };
    }
    return {};
  };

  /** @returns null if the answer has been written */
  const called = async (message: Message, outgoing: ServerResponse): Promise<unknown> => {
    const { params = {} } = message;
    const planned = results[String(params['name'])] ?? { content: [{ type: 'text', text: 'done' }] };
    if (!('asks' in planned)) return planned;
    const responses = params['inputResponses'] as { readonly question?: unknown } | undefined;
    if (responses?.question !== undefined) return said(responses.question);
    const question = { method: 'elicitation/create', params: planned.asks };
    if (speaks === 'modern') return { resultType: 'input_required', inputRequests: { question } };
    const id = randomUUID();
    const answered = new Promise((resolve) => questions.set(id, resolve));
    startStream(outgoing);
    sendEvent(outgoing, { jsonrpc: '2.0', id, ...question });
    sendEvent(outgoing, { jsonrpc: '2.0', id: message.id, result: said(await answered) });
    outgoing.end();
    return null;
  };
  const said = (reply: unknown): object => {
    replies.push(reply);
    return { content: [{ type: 'text', text: JSON.stringify(reply) }] };
  };

  const answer = async (incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> => {
    const text = await bodyOf(incoming);
    const cut = recording.add(incoming, text);
    outgoing.on('close', () => {
      if (!outgoing.writableFinished) cut();
    });
    if (incoming.method !== 'POST') return void outgoing.writeHead(405).end();
    const message = JSON.parse(text) as Message;
    const { id, method } = message;
    const session = incoming.headers['mcp-session-id'];
    if (typeof session === 'string' && !sessions.has(session)) {
      return sendJson(
        outgoing,
        { jsonrpc: '2.0', id: null, error: { code: -32_001, message: 'Session not found' } },
        404,
      );
    }
    if (method === undefined) questions.get(String(id))?.(message.result);
    if (method === undefined || id === undefined) return void outgoing.writeHead(202).end();
    const misbehaviour = misbehaviours.get(method);
    if (misbehaviour !== undefined && !(await misbehave(misbehaviour, message, outgoing, gate))) return undefined;
    if ((speaks === 'legacy') !== (headerOf(incoming, 'mcp-protocol-version') !== MODERN)) {
      const error = {
        code: -32_022,
        message: 'Unsupported protocol version',
        data: { supported: [speaks === 'legacy' ? LEGACY : MODERN] },
      };
      return sendJson(outgoing, { jsonrpc: '2.0', id, error }, 400);
    }
    if (method === 'initialize') {
      const created = randomUUID();
      sessions.add(created);
      outgoing.setHeader('mcp-session-id', created);
    }
    const result = method === 'tools/call' ? await called(message, outgoing) : resultOf(message);
    if (result === null) return undefined;
    const complete = speaks === 'modern' ? { resultType: 'complete', ...(result as object) } : result;
    return sendJson(outgoing, { jsonrpc: '2.0', id, result: complete });
  };

  const server = await listenOnLoopback((incoming, outgoing) => {
    void answer(incoming, outgoing).catch(() => outgoing.destroy());
  }, port);
  const close = async (): Promise<void> => {
    gate.open();
    await server.close();
  };
  return {
    host: server.host,
    url: `${server.origin}/mcp`,
    recording,
    gate,
    misbehave(method, misbehaviour) {
      if (misbehaviour === null) misbehaviours.delete(method);
      else misbehaviours.set(method, misbehaviour);
    },
    restart: () => sessions.clear(),
    replies,
    close,
    [Symbol.asyncDispose]: close,
  };
}

/** @returns whether the correct answer follows */
async function misbehave(
  misbehaviour: Misbehaviour,
  { id, params }: Message,
  outgoing: ServerResponse,
  gate: Gate,
): Promise<boolean> {
  switch (misbehaviour.kind) {
    case 'silent':
      await gate.pass();
      return true;
    case 'status': {
      const { status, headers = {} } = misbehaviour;
      outgoing.writeHead(status, { 'content-type': 'text/plain', ...headers }).end('the server says no');
      return false;
    }
    case 'invalid_json':
      outgoing.writeHead(200, { 'content-type': 'application/json' }).end('{"jsonrpc": "2.0", "id": ');
      return false;
    case 'wrong_content_type':
      outgoing.writeHead(200, { 'content-type': 'text/html' }).end('<h1>It works</h1>');
      return false;
    case 'wrong_id': {
      const result = { resultType: 'complete', content: [{ type: 'text', text: 'of another call' }] };
      sendJson(outgoing, { jsonrpc: '2.0', id: `not-${id}`, result });
      return false;
    }
    case 'endless_stream':
      startStream(outgoing);
      return false;
    case 'ended_stream':
      startStream(outgoing);
      outgoing.end();
      return false;
    case 'endless_progress': {
      startStream(outgoing);
      const meta = params?.['_meta'] as { readonly progressToken?: unknown } | undefined;
      let progress = 0;
      const send = (): void => {
        if (outgoing.destroyed) return;
        progress += 1;
        const report = { progressToken: meta?.progressToken ?? 0, progress };
        sendEvent(outgoing, { jsonrpc: '2.0', method: 'notifications/progress', params: report });
        setImmediate(send);
      };
      send();
      return false;
    }
    case 'disconnect':
      outgoing.destroy();
      return false;
  }
}

function headerOf(incoming: IncomingMessage, name: string): string | null {
  const value = incoming.headers[name];
  return typeof value === 'string' ? value : null;
}

function sendJson(outgoing: ServerResponse, body: unknown, status = 200): void {
  outgoing.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

function startStream(outgoing: ServerResponse): void {
  outgoing.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
  outgoing.flushHeaders();
}

function sendEvent(outgoing: ServerResponse, message: unknown): void {
  outgoing.write(`event: message\ndata: ${JSON.stringify(message)}\n\n`);
}
