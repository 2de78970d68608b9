/**
 * Speaks the Model Context Protocol with the official library: revision 2026-07-28, and 2025-11-25 and earlier ones with their
 * handshake (E4). Nothing is kept between requests. mcp-calls.ts carries calls out.
 *
 * Approvals: a client of 2026-07-28 that can ask people gets the question as the result, and sends the call again with the
 * answer. Others get a text that says how to decide: a question to a client of 2025-11-25 would need a connection that is
 * kept.
 *
 * Tasks: a call whose run takes longer than `limits.mcpTaskAfterMs` becomes a task if the client of 2026-07-28 knows tasks. Its
 * id is that of the run. The library has no tasks of 2025-11-25.
 */
import {
  CLIENT_CAPABILITIES_META_KEY,
  createMcpHandler,
  inputRequired,
  MissingRequiredClientCapabilityError,
  ProtocolError,
  ProtocolErrorCode,
  ResourceNotFoundError,
  SdkError,
  SdkErrorCode,
  Server,
} from '@modelcontextprotocol/server';
import type {
  CallToolResult,
  ClientCapabilities,
  InputRequests,
  McpRequestContext,
  ReadResourceResult,
  ServerCapabilities,
  ServerContext,
} from '@modelcontextprotocol/server';
import { CfWorkerJsonSchemaValidator } from '@modelcontextprotocol/server/validators/cf-worker';
import * as z from 'zod';
import { base64Of } from '../../../domain/base64.ts';
import { EngineError } from '../../../domain/errors.ts';
import type { JsonObject } from '../../../domain/json.ts';
import { limits } from '../../../domain/limits.ts';
import {
  ARTIFACT_TEMPLATE,
  DECISION_SCHEMA,
  decisionOf,
  errorResult,
  parseArtifactUri,
} from '../../../surfaces/mcp/index.ts';
import type { McpOutcome, McpProgress, McpResult } from '../../../surfaces/mcp/index.ts';
import { noteOf } from '../../../surfaces/reading.ts';
import type { SurfaceDecision } from '../../../surfaces/surface.ts';
import { logFault } from '../../problem.ts';
import { argumentsOf, McpCalls, openQuestions } from './mcp-calls.ts';
import type { McpCaller, McpServingOptions, OpenQuestion, PendingRun } from './mcp-calls.ts';
import { readFrames } from './mcp-frames.ts';

/** Answers one message. @param body parsed */
export type McpServing = (body: unknown, of: McpCaller) => Promise<Response>;

const TASKS = 'io.modelcontextprotocol/tasks';

const INSTRUCTIONS =
  'Each agent is a tool that takes a message. Its result has a "session_id": pass it as "session" to go on in the same conversation.';

export function mcpServing(options: McpServingOptions): McpServing {
  const factory = (context: McpRequestContext): Server => serverFor(options, context);
  const common = {
    maxRequestBodySize: limits.bodyBytes,
    onerror: (): void => undefined,
  };
  const plain = createMcpHandler(factory, common);
  // A call may take long: the stream tells the client that it goes on, and us that the client has left.
  const streaming = createMcpHandler(factory, { ...common, responseMode: 'sse', keepAliveMs: limits.heartbeatMs });
  return async (parsedBody, of) => {
    const { method, params } = (parsedBody ?? {}) as Readonly<Record<string, unknown>>;
    // Nothing is ever announced, so there is nothing to listen to.
    if (method === 'subscriptions/listen') return noSuchMethod(parsedBody);
    const handler = method === 'tools/call' ? streaming : plain;
    const authInfo = { token: '', clientId: '', scopes: [], extra: { of } };
    if (method === 'notifications/cancelled') {
      const { requestId } = (params ?? {}) as { requestId?: unknown };
      const isId = typeof requestId === 'string' || typeof requestId === 'number';
      if (isId) await new McpCalls(options, of).cancelCall(requestId);
    }
    const response = await handler.fetch(of.request, { authInfo, parsedBody });
    return method === 'initialize' ? withConnection(response) : response;
  };
}

/** Gives a client of 2025-11-25 a name for its connection. */
function withConnection(response: Response): Response {
  if (!response.ok) return response;
  const named = new Response(response.body, response);
  named.headers.set('mcp-session-id', crypto.randomUUID());
  return named;
}

function noSuchMethod(body: unknown): Response {
  const { id = null } = body as { id?: unknown };
  const error = { code: ProtocolErrorCode.MethodNotFound, message: 'Method not found' };
  return Response.json({ jsonrpc: '2.0', id, error }, { status: 404 });
}

function serverFor(options: McpServingOptions, { era, authInfo }: McpRequestContext): Server {
  const calls = new McpCalls(options, authInfo?.extra?.['of'] as McpCaller);
  const isModern = era === 'modern';
  const capabilities: ServerCapabilities = {
    tools: {},
    resources: {},
    ...(isModern ? { extensions: { [TASKS]: {} } } : {}),
  };
  const server = new Server(
    { name: 'cortex-edge', version: options.version },
    {
      capabilities,
      instructions: INSTRUCTIONS,
      jsonSchemaValidator: new CfWorkerJsonSchemaValidator(),
      cacheHints: {
        'tools/list': { ttlMs: limits.mcpToolListMs, cacheScope: 'private' },
        'resources/templates/list': { ttlMs: limits.mcpToolListMs, cacheScope: 'private' },
      },
      requestState: { verify: async (state) => await calls.unseal(state) },
    },
  );
  const handling = { options, calls, isModern };

  server.setRequestHandler('tools/list', (_request, context) =>
    guarded(options, context, async () => ({ tools: (await calls.tools()).map(({ listed }) => listed) })),
  );
  server.setRequestHandler('tools/call', (request, context) =>
    guarded(options, context, async () => await callTool(handling, request.params, context)),
  );
  server.setRequestHandler('resources/list', () => ({ resources: [] }));
  server.setRequestHandler('resources/templates/list', () => ({
    resourceTemplates: [
      {
        uriTemplate: ARTIFACT_TEMPLATE,
        name: 'artifact',
        title: 'Artifact',
        description: 'A file or a large result of a run. Results of tools link to them.',
      },
    ],
  }));
  server.setRequestHandler('resources/read', ({ params: { uri } }, context) =>
    guarded(options, context, async () => await readResource(calls, uri)),
  );
  if (isModern) addTasks(server, handling);
  return server;
}

interface Handling {
  readonly options: McpServingOptions;
  readonly calls: McpCalls;
  readonly isModern: boolean;
}

/** Errors of the system as errors of the protocol; unexpected ones reveal nothing. */
async function guarded<T>(options: McpServingOptions, { mcpReq }: ServerContext, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (fault) {
    const hasLeft =
      mcpReq.signal.aborted || (fault instanceof SdkError && fault.code === SdkErrorCode.ConnectionClosed);
    if (fault instanceof ProtocolError || hasLeft) throw fault;
    logFault(options.log, fault, { method: 'POST', path: '/mcp' });
    if (!(fault instanceof EngineError)) {
      throw new ProtocolError(ProtocolErrorCode.InternalError, 'An unexpected error; it has been logged', {
        code: 'internal',
      });
    }
    const code = fault.status < 500 ? ProtocolErrorCode.InvalidParams : ProtocolErrorCode.InternalError;
    throw new ProtocolError(code, fault.message, { ...fault.details, code: fault.code });
  }
}

// --- tools/call ---

async function callTool(
  { options, calls, isModern }: Handling,
  { name, arguments: given }: { readonly name: string; readonly arguments?: unknown },
  context: ServerContext,
): Promise<CallToolResult> {
  const { mcpReq: request } = context;
  const pending = request.requestState<PendingRun>();
  const tool = await calls.tool(name);
  if (pending !== undefined && pending.tool !== name) {
    throw new ProtocolError(ProtocolErrorCode.InvalidParams, 'The state of this request is of another tool', {
      code: 'invalid_request',
    });
  }
  const token = request['_meta']?.progressToken;
  const client = isModern ? clientOf(context) : {};
  const answering = {
    id: request.id,
    progress: token !== undefined,
    mayBeTask: client.extensions?.[TASKS] !== undefined && calls.may('read'),
  };
  try {
    const response =
      pending === undefined
        ? await calls.start(tool, argumentsOf(given), answering)
        : await calls.decide(pending, decisionsIn(request.inputResponses, pending.approvals), answering);
    const report = async (progress: McpProgress): Promise<void> => {
      if (token === undefined) return;
      await request.notify({ method: 'notifications/progress', params: { progressToken: token, ...progress } });
    };
    const left = (): void => void calls.leave(response).catch(() => undefined);
    const { outcome, isTask } = await readFrames(response, request.signal, report, left);
    if (isTask) return taskResult({ ...taskOf(outcome), resultType: 'task' });
    const canAsk = outcome.approvals.length > 0 && client.elicitation !== undefined && calls.may('approve');
    const requestState = canAsk ? await calls.seal(name, outcome) : null;
    if (requestState === null) return toResult(outcome.result);
    return inputRequired({ inputRequests: questionsOf(outcome), requestState }) as unknown as CallToolResult;
  } catch (fault) {
    if (request.signal.aborted || !(fault instanceof EngineError) || fault.code === 'internal') throw fault;
    logFault(options.log, fault, { method: 'POST', path: '/mcp' });
    return toResult(errorResult(fault.code, fault.message, fault.details as JsonObject));
  }
}

function clientOf({ mcpReq }: ServerContext): ClientCapabilities {
  const envelope: Readonly<Record<string, unknown>> = mcpReq.envelope ?? {};
  return (envelope[CLIENT_CAPABILITIES_META_KEY] as ClientCapabilities | undefined) ?? {};
}

function toResult(result: McpResult): CallToolResult {
  return result as unknown as CallToolResult;
}

/** Each approval as a question to the person at the client. */
function questionsOf({ approvals }: McpOutcome): InputRequests {
  return Object.fromEntries(
    approvals.map(({ approval_id: id, call, question }) => {
      const message = question?.message ?? `Approve this call? ${call}`;
      const requestedSchema = question?.schema ?? DECISION_SCHEMA;
      return [id, inputRequired.elicit({ message, requestedSchema: requestedSchema as never })];
    }),
  );
}

/** The decisions about these approvals in a client's responses. One without a response stays open. */
function decisionsIn(
  responses: Readonly<Record<string, unknown>> | undefined,
  approvals: readonly OpenQuestion[],
): SurfaceDecision[] {
  return approvals.flatMap(({ id: approvalId, asksValues }) => {
    const decision = decisionOf(responses?.[approvalId], asksValues);
    return decision === null ? [] : [{ approvalId, ...decision, note: noteOf(decision.note) }];
  });
}

// --- tasks ---

type Task = Readonly<Record<string, unknown>>;

/** The library knows no tasks, and lets members pass that it does not know. */
const taskResult = (task: Task): CallToolResult => task as unknown as CallToolResult;

/** A run as a task, without what only `tasks/get` has. */
function taskOf({ run_id: taskId, created_at, updated_at, status }: McpOutcome): Task {
  return {
    taskId,
    status: status === 'cancelled' ? 'cancelled' : 'working',
    createdAt: new Date(created_at).toISOString(),
    lastUpdatedAt: new Date(updated_at).toISOString(),
    ttlMs: null,
    pollIntervalMs: limits.mcpTaskPollMs,
  };
}

/** The same with the result, or with what the task waits for. @param canAsk whether the client can be asked */
function detailedTask(outcome: McpOutcome, canAsk: boolean): Task {
  const task = taskOf(outcome);
  switch (outcome.status) {
    case 'completed':
    case 'failed':
      return { ...task, status: 'completed', result: outcome.result };
    case 'waiting': {
      if (canAsk) return { ...task, status: 'input_required', inputRequests: questionsOf(outcome) };
      const [block] = outcome.result.content;
      return { ...task, statusMessage: String(block?.['text'] ?? '') };
    }
    default:
      return task;
  }
}

const taskParams = z.looseObject({ taskId: z.string() });
const updateParams = z.looseObject({
  taskId: z.string(),
  inputResponses: z.record(z.string(), z.unknown()).optional(),
});

function addTasks(server: Server, { options, calls }: Handling): void {
  const serve = <T>(context: ServerContext, work: () => Promise<T>): Promise<T> =>
    guarded(options, context, async () => {
      if (clientOf(context).extensions?.[TASKS] !== undefined) return await work();
      throw new MissingRequiredClientCapabilityError({ requiredCapabilities: { extensions: { [TASKS]: {} } } });
    });

  server.setRequestHandler('tasks/get', { params: taskParams }, (params, context) =>
    serve(context, async () => {
      const outcome = await calls.task(params.taskId);
      const canAsk =
        clientOf(context).elicitation !== undefined && calls.may('approve') && outcome.approvals.length > 0;
      return detailedTask(outcome, canAsk);
    }),
  );
  server.setRequestHandler('tasks/update', { params: updateParams }, ({ taskId, inputResponses }, context) =>
    serve(context, async () => {
      calls.require('approve');
      const outcome = await calls.task(taskId);
      // Responses to what is not open are ignored.
      const decisions = decisionsIn(inputResponses ?? mcpResponses(context), openQuestions(outcome));
      await calls.update(outcome.session_id, decisions);
      return {};
    }),
  );
  server.setRequestHandler('tasks/cancel', { params: taskParams }, (params, context) =>
    serve(context, async () => {
      await calls.cancel(params.taskId);
      return {};
    }),
  );
}

/** The library takes the member out of the parameters. */
const mcpResponses = ({ mcpReq }: ServerContext): Readonly<Record<string, unknown>> | undefined =>
  mcpReq.inputResponses;

// --- resources ---

async function readResource(calls: McpCalls, uri: string): Promise<ReadResourceResult> {
  const named = parseArtifactUri(uri);
  if (named === null) throw new ResourceNotFoundError(uri);
  let response: Response;
  try {
    response = await calls.artifact(named.sessionId, named.artifactId);
  } catch (fault) {
    const isUnknown = fault instanceof EngineError && fault.status === 404;
    throw isUnknown ? new ResourceNotFoundError(uri) : fault;
  }
  const mimeType = response.headers.get('content-type') ?? 'application/octet-stream';
  const size = Number(response.headers.get('content-length') ?? 0);
  if (size > limits.mcpResourceBytes) {
    await response.body?.cancel();
    throw new EngineError(
      'content_too_large',
      `The artifact has ${size} bytes (allowed: ${limits.mcpResourceBytes}); download it from /agent/session/${named.sessionId}/artifacts/${named.artifactId}`,
    );
  }
  const bytes = new Uint8Array(await response.arrayBuffer());
  const isText = /^(text\/|application\/json)/.test(mimeType);
  return {
    contents: [
      isText ? { uri, mimeType, text: new TextDecoder().decode(bytes) } : { uri, mimeType, blob: base64Of(bytes) },
    ],
  };
}
