/**
 * Calls of the Model Context Protocol, carried out (E4). Knows the system and nothing of the wire: mcp-server.ts speaks the
 * protocol.
 *
 * Invariants:
 *  1. A caller sees and calls what it may use: a user token its agents, a session token the agent of its session, an API key
 *     everything of its namespace. Exposed tools and workflows are for API keys.
 *  2. Nothing is kept for a connection. A run that waits for an approval is found by what the client brings back, which is
 *     signed, and which is for one caller, one tool and one run.
 */
import { EngineError } from '../../../domain/errors.ts';
import { isJsonObject } from '../../../domain/json.ts';
import type { Json, JsonObject } from '../../../domain/json.ts';
import { limits } from '../../../domain/limits.ts';
import type { Logger } from '../../../domain/log.ts';
import { nearestNames } from '../../../domain/nearest.ts';
import { NO_HISTORY } from '../../../domain/seeded.ts';
import type { SessionRecord } from '../../../domain/session.ts';
import { mcp, toolsOf } from '../../../surfaces/mcp/index.ts';
import type { McpOutcome, McpTarget, McpTool } from '../../../surfaces/mcp/index.ts';
import type { Attached, SurfaceCommand, SurfaceDecision, SurfaceRequest, Thread } from '../../../surfaces/surface.ts';
import type { Caller } from '../../access.ts';
import type { ManifestHost } from '../../manifest-host.ts';
import { OPERATIONS } from '../../operations.ts';
import type { Scope } from '../../operations.ts';
import { requireAgentOf, sha256Hex } from '../../routes/sessions.ts';
import { recordOf, requireWorkflow } from '../../routes/workflows.ts';
import type { WorkflowHost } from '../../routes/workflows.ts';
import type { Tokens } from '../../tokens.ts';
import { programOf } from '../../tool-program.ts';
import { answer, isProblem, problemOf, send } from '../edge-surface.ts';
import type { SurfaceOptions } from '../edge-surface.ts';
import { checkInputs } from '../../../engine/workflow/workflow-inputs.ts';

export interface McpPorts extends SurfaceOptions {
  readonly manifests: ManifestHost;
  readonly workflows: WorkflowHost;
  readonly tokens: Tokens;
}

export interface McpServingOptions extends McpPorts {
  readonly version: string;
  readonly log: Logger;
}

/** Who calls, with its request. */
export interface McpCaller {
  readonly caller: Caller;
  readonly request: Request;
  /** `Idempotency-Key`. */
  readonly key: string | null;
  /** `Mcp-Session-Id`: a name that clients of 2025-11-25 have got for their connection. Nothing is kept under it. */
  readonly connection: string | null;
}

/** How a call is answered. */
export interface CallOptions {
  /** Of the request. */
  readonly id: string | number;
  /** Whether the client wants reports. */
  readonly progress: boolean;
  /** Whether the call may become a task. */
  readonly mayBeTask: boolean;
}

/** What a client brings back with its decisions. */
export interface PendingRun {
  readonly tool: string;
  readonly sessionId: string;
  readonly runId: string;
  readonly approvals: readonly OpenQuestion[];
}

/** An approval that the client was asked for. */
export interface OpenQuestion {
  readonly id: string;
  /** Whether it is a question for values. */
  readonly asksValues: boolean;
}

export function openQuestions({ approvals }: McpOutcome): OpenQuestion[] {
  return approvals.map(({ approval_id: id, question }) => ({ id, asksValues: question?.schema !== undefined }));
}

/** Options of a command whose stream nobody reads. */
const QUIET: JsonObject = { progress: false };

export class McpCalls {
  readonly #ports: McpPorts;
  readonly #of: McpCaller;
  /** Whether the run of this call depends on its stream. */
  #isAttached = false;

  constructor(ports: McpPorts, of: McpCaller) {
    this.#ports = ports;
    this.#of = of;
  }

  /** Whether the caller has one of these scopes: an API key has all. */
  may(...scopes: readonly Scope[]): boolean {
    const { token } = this.#of.caller;
    return token === null || scopes.some((scope) => token.scopes.includes(scope));
  }

  /** @throws EngineError `forbidden` */
  require(...scopes: readonly Scope[]): void {
    if (this.may(...scopes)) return;
    const named = scopes.map((scope) => `"${scope}"`).join(' or ');
    throw new EngineError('forbidden', `This request requires an API key, or a token with the scope ${named}`);
  }

  // --- tools ---

  /** The tools that the caller may call. */
  async tools(): Promise<readonly McpTool[]> {
    this.require('read', 'message');
    const { owner, token } = this.#of.caller;
    const exposed = await this.#ports.manifests.exposed(owner);
    if (token === null) return toolsOf(exposed);
    const agents = token.type === 'user' ? token.agents : [await this.#agentOf(token.sessionId)];
    return toolsOf({
      agents: exposed.agents.filter(({ name }) => agents?.includes(name) !== false),
      tools: [],
      workflows: [],
    });
  }

  /** @throws EngineError `unknown_manifest` with the nearest names */
  async tool(name: string): Promise<McpTool> {
    const tools = await this.tools();
    const found = tools.find(({ listed }) => listed.name === name);
    if (found !== undefined) return found;
    const known = tools.map(({ listed }) => listed.name);
    const near = nearestNames(name, known).map((one) => `"${one}"`);
    const hint = near.length === 0 ? '' : ` (did you mean ${near.join(' or ')}?)`;
    throw new EngineError('unknown_manifest', `No tool is called "${name.slice(0, limits.excerptChars)}"${hint}`);
  }

  async #agentOf(sessionId: string): Promise<string> {
    const response = await this.#get(sessionId, '/');
    return ((await response.json()) as { agent: string }).agent;
  }

  // --- calls ---

  /** Begins a run. @returns the stream of its frames */
  async start({ target, listed }: McpTool, given: JsonObject, options: CallOptions): Promise<Response> {
    this.require('message');
    const { key } = this.#of;
    const attached: Attached | null =
      // The client sends the request again, and wants the run that it has begun.
      key === null ? { forMs: options.mayBeTask ? limits.mcpTaskAfterMs : null } : null;
    this.#isAttached = attached !== null;
    const common = {
      ...(attached === null ? {} : { attached }),
      options: { progress: options.progress },
    };
    if (target.type === 'agent') {
      return await this.#message(target.name, agentArguments(listed.name, given), options.id, common);
    }
    return await this.#work(target, given, options.id, common);
  }

  /**
   * The session of a call that names none. With the name of a connection it follows from the call, so that a client can cancel
   * the call in another request.
   */
  async #sessionOf(id: string | number): Promise<string> {
    const { connection } = this.#of;
    const { gateway, workflows } = this.#ports;
    if (connection === null) return await gateway.newSessionId();
    return await workflows.sessionIdOf(JSON.stringify(['call', this.#who(), mcp.name, connection, id]));
  }

  /** Cancels the run of a call of the same connection. One in a session that the call named is not found. */
  async cancelCall(id: string | number): Promise<void> {
    if (this.#of.connection === null || !this.may('message')) return;
    const command: SurfaceCommand = { type: 'cancel', runId: null, isFirst: true, after: 0, options: QUIET };
    const sessionId = await this.#sessionOf(id);
    const call = { surface: mcp.name, agent: null, open: null, repeats: null, command };
    const response = await send(this.#ports, mcp, this.#of, sessionId, call).catch((fault: unknown) => {
      if (fault instanceof EngineError && fault.status < 500) return null;
      throw fault;
    });
    await response?.body?.cancel();
  }

  async #message(
    agent: string,
    { message, session }: AgentArguments,
    id: string | number,
    common: Pick<Extract<SurfaceCommand, { type: 'run' }>, 'attached' | 'options'>,
  ): Promise<Response> {
    const { caller, key } = this.#of;
    const { token, owner } = caller;
    let thread: Thread;
    if (session !== null) thread = { type: 'named', name: session };
    else if (token?.type === 'session') thread = { type: 'session', sessionId: token.sessionId };
    else if (key !== null) thread = { type: 'new', history: [], isEphemeral: false, key };
    else {
      const { gateway, now } = this.#ports;
      if (token !== null) requireAgentOf(token, agent);
      await gateway.requireAgent(agent, owner);
      const sessionId = await this.#sessionOf(id);
      const user = token === null ? null : token.userId;
      const record = { session_id: sessionId, agent, owner, user_id: user, kind: 'chat', metadata: {} } as const;
      await gateway.openSession({ ...record, created_at: now() }, {}, NO_HISTORY);
      thread = { type: 'session', sessionId };
    }
    return await this.#send({
      agent,
      thread,
      userId: null,
      command: {
        type: 'run',
        answers: [],
        decisions: [],
        message: { content: message, tools: [], instructions: null, key, metadata: null },
        since: null,
        follows: null,
        stream: true,
        ...common,
      },
    });
  }

  /** Runs a tool or a workflow in a session of its own. */
  async #work(
    target: Exclude<McpTarget, { type: 'agent' }>,
    given: JsonObject,
    id: string | number,
    common: Pick<Extract<SurfaceCommand, { type: 'work' }>, 'attached' | 'options'>,
  ): Promise<Response> {
    const { workflows, gateway, now } = this.#ports;
    const { caller, key } = this.#of;
    const { owner } = caller;
    const content = JSON.stringify([target, given]);
    const sessionId =
      key === null
        ? await this.#sessionOf(id)
        : await workflows.sessionIdOf(JSON.stringify(['request', owner, null, mcp.name, content, key]));
    const asked = key === null ? {} : { request_sha256: await sha256Hex(content) };
    let record: SessionRecord;
    let work: Extract<SurfaceCommand, { type: 'work' }>['work'];
    if (target.type === 'workflow') {
      checkInputs(await requireWorkflow(workflows, target.name, owner), given);
      record = recordOf(workflows, target.name, owner, sessionId);
      work = { type: 'workflow', inputs: given };
    } else {
      await gateway.requireAgent(target.agent, owner);
      record = {
        session_id: sessionId,
        agent: target.agent,
        user_id: null,
        owner,
        kind: 'execution',
        metadata: {},
        created_at: now(),
      };
      work = { type: 'program', text: programOf(target.name, given) };
    }
    await gateway.openSession({ ...record, ...asked }, {}, NO_HISTORY);
    const command: SurfaceCommand = { type: 'work', work, ...common };
    return await send(this.#ports, mcp, this.#of, sessionId, {
      surface: mcp.name,
      agent: null,
      open: null,
      repeats: null,
      command,
    });
  }

  // --- runs that wait ---

  /** What the client brings back with its decisions; null if there is no secret to sign it with. */
  async seal(tool: string, outcome: McpOutcome): Promise<string | null> {
    const { session_id: ses, run_id: run } = outcome;
    const expiresAt = this.#ports.now() + limits.approvalExpiryMs;
    const apr = openQuestions(outcome).map(({ id, asksValues }): Json => [id, asksValues]);
    return await this.#ports.tokens.seal({ who: this.#who(), tool, ses, run, apr }, expiresAt);
  }

  /** @throws EngineError `invalid_request` if it was changed, has expired, or is for another caller */
  async unseal(text: string): Promise<PendingRun> {
    const value = await this.#ports.tokens.unseal(text);
    const { who, tool, ses, run, apr } = value ?? {};
    if (value === null || who !== this.#who()) {
      throw new EngineError('invalid_request', 'The state of this request is invalid, has expired, or is not yours');
    }
    const approvals = (apr as [string, boolean][]).map(([id, asksValues]) => ({ id, asksValues }));
    return { tool: String(tool), sessionId: String(ses), runId: String(run), approvals };
  }

  /** Identifies the caller: a token, or the keys of a namespace. */
  #who(): string {
    const { owner, token } = this.#of.caller;
    const of = token === null ? null : token.type === 'user' ? ['user', token.userId] : ['session', token.sessionId];
    return JSON.stringify([owner, of]);
  }

  /** Decides approvals of a run, once, and follows the run. Without decisions, it only follows. */
  async decide(pending: PendingRun, decisions: readonly SurfaceDecision[], options: CallOptions): Promise<Response> {
    const { sessionId, runId } = pending;
    const attached: Attached = { forMs: options.mayBeTask ? limits.mcpTaskAfterMs : null };
    const common = { attached, options: { progress: options.progress } };
    if (decisions.length === 0) {
      this.require('message', 'approve');
      return await this.#follow(sessionId, runId, true);
    }
    this.#isAttached = true;
    return await this.#send(this.#decisions(sessionId, decisions, common));
  }

  #decisions(
    sessionId: string,
    decisions: readonly SurfaceDecision[],
    common: Pick<Extract<SurfaceCommand, { type: 'run' }>, 'attached' | 'options' | 'ignoresLate'>,
  ): SurfaceRequest {
    const command: SurfaceCommand = {
      type: 'run',
      answers: [],
      decisions,
      message: null,
      since: null,
      follows: null,
      stream: true,
      ...common,
    };
    return { agent: null, thread: { type: 'session', sessionId }, userId: null, command };
  }

  /**
   * The client has left during a call. The session notices it too, when it writes the next time.
   *
   * @param response the stream of the call
   */
  async leave(response: Response): Promise<void> {
    const { 'x-session-id': sessionId, 'x-run-id': runId } = Object.fromEntries(response.headers);
    if (this.#isAttached && sessionId !== undefined && runId !== undefined) await this.#cancel(sessionId, runId);
  }

  // --- tasks ---

  /** How the run of a task is. @throws EngineError `unknown_execution`, `unknown_session`, `unknown_run` */
  async task(runId: string): Promise<McpOutcome> {
    this.require('read');
    const sessionId = await this.#ports.gateway.requireExecution(runId);
    return (await (await this.#follow(sessionId, runId, false)).json()) as McpOutcome;
  }

  /** Decides approvals of a task; what is closed already is ignored. */
  async update(sessionId: string, decisions: readonly SurfaceDecision[]): Promise<void> {
    if (decisions.length === 0) return;
    const common = { ignoresLate: true, options: QUIET };
    const response = await this.#send(this.#decisions(sessionId, decisions, common));
    await response.body?.cancel();
  }

  async cancel(runId: string): Promise<void> {
    this.require('message');
    await this.#cancel(await this.#ports.gateway.requireExecution(runId), runId);
  }

  async #cancel(sessionId: string, runId: string): Promise<void> {
    const command: SurfaceCommand = { type: 'cancel', runId, after: 0, options: QUIET };
    const response = await this.#send({ agent: null, thread: { type: 'session', sessionId }, userId: null, command });
    await response.body?.cancel();
  }

  async #follow(sessionId: string, runId: string, stream: boolean): Promise<Response> {
    const command: SurfaceCommand = { type: 'follow', runId, after: 0, stream, options: QUIET };
    return await this.#send({ agent: null, thread: { type: 'session', sessionId }, userId: null, command });
  }

  // --- resources ---

  /** An artifact, as a download. @throws EngineError `unknown_session`, `unknown_artifact`, `forbidden` */
  async artifact(sessionId: string, artifactId: string): Promise<Response> {
    this.require(...OPERATIONS['GET /agent/session/:id/artifacts/:artifact'].scopes);
    return await this.#get(sessionId, `/artifacts/${artifactId}`);
  }

  async #get(sessionId: string, path: string): Promise<Response> {
    const { gateway } = this.#ports;
    const { caller, request } = this.#of;
    const { token } = caller;
    if (token?.type === 'session' && token.sessionId !== sessionId) {
      throw new EngineError('unknown_session', 'This session does not exist');
    }
    const id = await gateway.requireId(sessionId);
    const response = await gateway.forward(id, path, new Request(request.url), caller);
    if (isProblem(response)) throw await problemOf(response);
    return response;
  }

  async #send(asked: SurfaceRequest): Promise<Response> {
    const { caller, request } = this.#of;
    return await answer(this.#ports, mcp, { request, caller, isRepeated: false }, asked);
  }
}

interface AgentArguments {
  readonly message: string;
  readonly session: string | null;
}

/** @throws EngineError `invalid_request` that names the argument */
function agentArguments(tool: string, given: JsonObject): AgentArguments {
  const { message, session = null, ...others } = given;
  const [unknown] = Object.keys(others);
  if (unknown !== undefined) {
    const near = nearestNames(unknown, ['message', 'session']).map((one) => `"${one}"`);
    const hint = near.length === 0 ? 'known: "message", "session"' : `did you mean ${near.join(' or ')}?`;
    throw new EngineError(
      'invalid_request',
      `"${tool}" has no argument "${unknown.slice(0, limits.excerptChars)}" (${hint})`,
    );
  }
  if (typeof message !== 'string' || message.trim() === '') {
    throw new EngineError('invalid_request', `"${tool}" needs the argument "message": a text that is not empty`);
  }
  if (session !== null && (typeof session !== 'string' || session === '' || session.length > limits.threadNameChars)) {
    throw new EngineError(
      'invalid_request',
      `"session" must be a text of at most ${limits.threadNameChars} characters: the "session_id" of an earlier answer, or a name`,
    );
  }
  return { message, session };
}

/** The arguments of a call, which may be absent. */
export function argumentsOf(given: unknown): JsonObject {
  return isJsonObject(given as never) ? (given as JsonObject) : {};
}
