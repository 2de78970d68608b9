/**
 * A correct MCP server over HTTP, made with the reference SDK: the protocols 2026-07-28 (stateless) and 2025-11-25 (with
 * sessions), or only one of them. Tools do what tests need; slow ones wait until the test lets them go on.
 */
import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Readable } from 'node:stream';
import {
  McpServer,
  WebStandardStreamableHTTPServerTransport,
  createMcpHandler,
  inputRequired,
  inputResponse,
  isLegacyRequest,
} from '@modelcontextprotocol/server';
import type { CallToolResult, InputRequiredResult, ServerContext } from '@modelcontextprotocol/server';
import { z } from 'zod';
import { Gate } from './gate.ts';
import { listenOnLoopback } from './loopback.ts';
import { Recording, bodyOf } from './recording.ts';

export interface ToolServerOptions {
  /** Default: both. */
  readonly speaks?: 'both' | 'legacy' | 'modern';
  /** How long clients may keep the list, in milliseconds; only in the modern protocol. Default: 0. */
  readonly ttlMs?: number;
  /** Required in the Authorization header. Default: none. */
  readonly token?: string;
  /** More tools, or tools in place of the standard ones. */
  readonly tools?: (server: McpServer) => void;
  /** Whether it has the standard tools. Default: true. */
  readonly hasStandardTools?: boolean;
}

export interface ToolServer extends AsyncDisposable {
  /** host:port, for the list of allowed hosts. */
  readonly host: string;
  /** The endpoint. */
  readonly url: string;
  readonly recording: Recording;
  /** Where calls of the tool `slow` wait. */
  readonly slow: Gate;
  /** Where calls of the tool `progress` wait after their third step. */
  readonly progress: Gate;
  /** Number of completed calls of `slow` and `confirm`. */
  readonly calls: ReadonlyMap<string, number>;
  /** Adds the tool `late`, and says so to clients that listen. */
  readonly changeList: () => void;
  readonly close: () => Promise<void>;
}

/** A PNG image of one pixel, in base64. */
export const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

interface Session {
  readonly server: McpServer;
  readonly transport: WebStandardStreamableHTTPServerTransport;
}

export async function startToolServer(options: ToolServerOptions = {}): Promise<ToolServer> {
  const { speaks = 'both', ttlMs = 0, token, tools, hasStandardTools = true } = options;
  const recording = new Recording();
  const gates = { slow: new Gate(), progress: new Gate() };
  const calls = new Map<string, number>();
  const sessions = new Map<string, Session>();
  let isChanged = false;

  const create = (): McpServer => {
    const server = new McpServer(
      { name: 'tool-server', version: '1.0.0' },
      {
        capabilities: { tools: { listChanged: true } },
        cacheHints: { 'tools/list': { ttlMs, cacheScope: 'private' } },
      },
    );
    if (hasStandardTools) addStandardTools(server, gates, calls);
    tools?.(server);
    if (isChanged) addLateTool(server);
    return server;
  };

  const modern = createMcpHandler(create, { legacy: 'reject', keepAliveMs: 0 });
  const legacy = async (request: Request): Promise<Response> => {
    const id = request.headers.get('mcp-session-id');
    if (id !== null) {
      const session = sessions.get(id);
      if (session === undefined) return rejected(404, 'Session not found');
      return await session.transport.handleRequest(request);
    }
    const server = create();
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      keepAliveMs: 0,
      onsessioninitialized: (sessionId) => void sessions.set(sessionId, { server, transport }),
      onsessionclosed: (sessionId) => void sessions.delete(sessionId),
    });
    await server.connect(transport);
    return await transport.handleRequest(request);
  };
  const answer = async (request: Request): Promise<Response> => {
    if (token !== undefined && request.headers.get('authorization') !== `Bearer ${token}`) {
      return rejected(401, 'Unauthorized');
    }
    if (speaks === 'legacy') return await legacy(request);
    if (speaks === 'both' && (await isLegacyRequest(request))) return await legacy(request);
    return await modern.fetch(request);
  };

  const server = await listenOnLoopback((incoming, outgoing) => {
    void respond(incoming, outgoing, recording, answer).catch(() => outgoing.destroy());
  });
  const close = async (): Promise<void> => {
    gates.slow.open();
    gates.progress.open();
    await modern.close();
    await server.close();
  };
  return {
    host: server.host,
    url: `${server.origin}/mcp`,
    recording,
    slow: gates.slow,
    progress: gates.progress,
    calls,
    changeList() {
      isChanged = true;
      for (const session of sessions.values()) addLateTool(session.server);
      modern.notify.toolsChanged();
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}

function rejected(status: number, message: string): Response {
  return Response.json({ jsonrpc: '2.0', id: null, error: { code: -32_000, message } }, { status });
}

/** Between node:http and the web's Request and Response. */
async function respond(
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  recording: Recording,
  answer: (request: Request) => Promise<Response>,
): Promise<void> {
  const body = await bodyOf(incoming);
  const cut = recording.add(incoming, body);
  const gone = new AbortController();
  outgoing.on('close', () => {
    if (outgoing.writableFinished) return;
    cut();
    gone.abort();
  });
  const headers = new Headers();
  for (const [name, value] of Object.entries(incoming.headers)) {
    if (value !== undefined) headers.set(name, Array.isArray(value) ? value.join(', ') : value);
  }
  const { method = 'GET' } = incoming;
  const response = await answer(
    new Request(`http://${incoming.headers.host}${incoming.url}`, {
      method,
      headers,
      signal: gone.signal,
      ...(method === 'GET' || method === 'HEAD' ? {} : { body }),
    }),
  );
  outgoing.writeHead(response.status, Object.fromEntries(response.headers));
  outgoing.flushHeaders();
  if (response.body === null) outgoing.end();
  else
    Readable.fromWeb(response.body)
      .on('error', () => outgoing.destroy())
      .pipe(outgoing);
}

function addLateTool(server: McpServer): void {
  server.registerTool('late', { description: 'Was not there at first.' }, () => text('late'));
}

function addStandardTools(
  server: McpServer,
  gates: Readonly<Record<'slow' | 'progress', Gate>>,
  calls: Map<string, number>,
): void {
  const counted = (name: string): void => void calls.set(name, (calls.get(name) ?? 0) + 1);
  const word = z.object({ text: z.string() });

  server.registerTool('echo', { description: 'Returns its text.', inputSchema: word }, ({ text: said }) => {
    return text(said);
  });
  server.registerTool(
    'add',
    {
      description: 'Adds two numbers.',
      inputSchema: z.object({ a: z.number(), b: z.number() }),
      outputSchema: z.object({ sum: z.number() }),
      annotations: { readOnlyHint: true, idempotentHint: true },
    },
    ({ a, b }) => {
      return { ...text(String(a + b)), structuredContent: { sum: a + b } };
    },
  );
  server.registerTool(
    'slow',
    { description: 'Answers when the test says so.', inputSchema: word },
    async (input, ctx) => {
      await gates.slow.pass(ctx.mcpReq.signal);
      counted('slow');
      return text(input.text);
    },
  );
  server.registerTool('progress', { description: 'Reports three steps of four.' }, async (ctx) => {
    const { _meta: meta } = ctx.mcpReq;
    const progressToken = meta?.progressToken;
    for (const progress of [1, 2, 3]) {
      if (progressToken === undefined) continue;
      const params = { progressToken, progress, total: 4, message: `step ${progress}` };
      await ctx.mcpReq.notify({ method: 'notifications/progress', params });
    }
    await gates.progress.pass(ctx.mcpReq.signal);
    return text('all steps');
  });
  server.registerTool('image', { description: 'Returns a picture.' }, () => {
    return { content: [{ type: 'image', data: PIXEL, mimeType: 'image/png' }] };
  });
  server.registerTool('resources', { description: 'Returns a link and a document.' }, () => {
    return {
      content: [
        { type: 'resource_link', uri: 'https://example.com/report.pdf', name: 'report', mimeType: 'application/pdf' },
        { type: 'resource', resource: { uri: 'memo://note', mimeType: 'text/markdown', text: '# Note' } },
        { type: 'resource', resource: { uri: 'memo://pixel', mimeType: 'image/png', blob: PIXEL } },
      ],
    };
  });
  server.registerTool('fail', { description: 'Fails.' }, () => {
    return { ...text('the disk is full'), isError: true };
  });
  server.registerTool('confirm', { description: 'Asks whether it may.' }, (ctx) => {
    const question = inputRequired.elicit({
      message: 'Deploy to production?',
      requestedSchema: z.object({ confirm: z.boolean() }),
    });
    return asked(ctx, question, () => counted('confirm'));
  });
  server.registerTool('open_page', { description: 'Asks the person to open a page.' }, (ctx) => {
    const question = inputRequired.elicitUrl({ message: 'Please sign in.', url: 'https://example.com/sign-in' });
    return asked(ctx, question);
  });
}

type Question = ReturnType<typeof inputRequired.elicit>;

/** The answer of the person, as text; the first call asks for it. */
function asked(ctx: ServerContext, question: Question, count = (): void => {}): CallToolResult | InputRequiredResult {
  const reply = inputResponse(ctx.mcpReq.inputResponses, 'question');
  if (reply.kind !== 'elicit') return inputRequired({ inputRequests: { question } });
  count();
  return text(JSON.stringify({ action: reply.action, content: reply.content ?? null }));
}

function text(said: string): { content: { type: 'text'; text: string }[] } {
  return { content: [{ type: 'text', text: said }] };
}
