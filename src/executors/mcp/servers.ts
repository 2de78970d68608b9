/**
 * Calls of tools of MCP servers, for one session (E5).
 *
 * Owns the connections: a call has one of its own, because a question of a server of 2025-11-25 says nothing about its call.
 * Connections to such servers are kept for a while, as each begins with a handshake. Does not own lists of tools.
 *
 * Invariants:
 *  1. A call is sent once, unless it is certain that no tool has seen it.
 *  2. A call ends soon after its signal aborts, and the server is told.
 *  3. A call that waits for the answer of a person holds its connection, for a limited time.
 */
import { isInputRequiredResult } from '@modelcontextprotocol/client';
import type { CallToolResult, ElicitRequest, ElicitResult, Progress } from '@modelcontextprotocol/client';
import type { ActionOutcome, Question } from '../../domain/action.ts';
import { failure } from '../../domain/failure.ts';
import type { JsonObject } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import type { ToolUpdate } from '../../domain/ports/code-tools.ts';
import type { McpCall, McpServers } from '../../domain/ports/mcp.ts';
import { TRACEPARENT } from '../../domain/trace.ts';
import { failureOf } from '../failure.ts';
import type { Connections } from './connections.ts';
import type { McpConnection } from './connection.ts';
import { failureOfServer } from './failures.ts';
import { acceptance, answered, isAskable, nextQuestion, openQuestions, questionOf, secretIn } from './questions.ts';
import type { OpenQuestions } from './questions.ts';
import { outcomeOf, outcomeOfResource } from './result.ts';

type Options = Parameters<McpServers['call']>[1];
type ElicitParams = ElicitRequest['params'];

/** A call to a server of 2025-11-25 that waits for the answer of a person. */
interface Held {
  readonly outcome: Promise<ActionOutcome>;
  /** Null: the person does not answer. */
  readonly answer: (content: JsonObject | null) => void;
  readonly abort: AbortController;
  readonly stopTimer: () => void;
  /** Whom the call reports to: the attempt that waits for it now. */
  readonly attempt: Attempt;
}

/** The attempt that a call belongs to at the moment. */
interface Attempt {
  progress: Options['progress'];
  /** Called by a question of the server; the attempt ends with it. */
  asked: (question: Question, answer: Held['answer']) => void;
}

/** In the state of a question: the call waits in this object. */
const HELD = 'held';

export class McpSession implements McpServers {
  readonly #connections: Connections;
  readonly #held = new Map<string, Held>();

  constructor(connections: Connections) {
    this.#connections = connections;
  }

  async call(call: McpCall, options: Options): Promise<ActionOutcome> {
    const { answer, endpoint, key } = call;
    if (answer === undefined) return await this.#ask(call, options, null);
    if (answer.state[HELD] !== true) return await this.#ask(call, options, answered(answer.state, answer.content));
    const held = this.#held.get(key);
    if (held === undefined) {
      return failure(
        'outcome_unknown',
        `The MCP server "${endpoint.server}" no longer waits for the answer, and it is unknown whether the tool took effect`,
      );
    }
    this.#held.delete(key);
    held.stopTimer();
    const outcome = await this.#follow(call, held.outcome, options, held.attempt, held.abort, () => {
      held.answer(answer.content);
    });
    if (outcome.ok || outcome.question !== undefined) return outcome;
    // Nobody waits for the answer any more: another attempt could not give it.
    return { ...outcome, error: { ...outcome.error, retryable: false } };
  }

  withdraw(key: string): void {
    const held = this.#held.get(key);
    if (held === undefined) return;
    this.#held.delete(key);
    held.stopTimer();
    held.answer(null);
    held.abort.abort(new DOMException('the question was not answered', 'AbortError'));
  }

  /** Asks people what is still open, then calls the tool. */
  async #ask(call: McpCall, options: Options, open: OpenQuestions | null): Promise<ActionOutcome> {
    if (open === null) return await this.#send(call, options, null);
    const { server } = call.endpoint;
    const next = nextQuestion(server, open);
    for (const field of next.declined) options.progress({ text: declined(server, field) });
    return next.question === null ? await this.#send(call, options, next.open) : unanswered(next.question);
  }

  async #send(call: McpCall, options: Options, answers: OpenQuestions | null): Promise<ActionOutcome> {
    const attempt: Attempt = { progress: options.progress, asked: () => {} };
    const abort = new AbortController();
    const outcome = this.#connections.use(call.endpoint, abort.signal, (connection) =>
      this.#request(call, connection, { answers, abort, attempt }),
    );
    return await this.#follow(call, outcome, options, attempt, abort, () => {});
  }

  /** Waits for the outcome or a question, on behalf of one attempt. */
  async #follow(
    call: McpCall,
    outcome: Promise<ActionOutcome>,
    { signal, progress }: Options,
    attempt: Attempt,
    abort: AbortController,
    begin: () => void,
  ): Promise<ActionOutcome> {
    const { promise, resolve } = Promise.withResolvers<ActionOutcome>();
    attempt.progress = progress;
    attempt.asked = (question, answer) => {
      // Of an attempt that had ended before its question arrived.
      this.withdraw(call.key);
      const stopTimer = this.#connections.clock.schedule(limits.mcpQuestionMs, () => this.withdraw(call.key));
      this.#held.set(call.key, { outcome, answer, abort, stopTimer, attempt });
      resolve(unanswered(question));
    };
    const stop = (): void => abort.abort(signal.reason);
    if (signal.aborted) stop();
    signal.addEventListener('abort', stop, { once: true });
    begin();
    try {
      return await Promise.race([promise, outcome]);
    } finally {
      signal.removeEventListener('abort', stop);
    }
  }

  async #request(
    call: McpCall,
    connection: McpConnection,
    {
      answers,
      abort,
      attempt,
    }: { readonly answers: OpenQuestions | null; readonly abort: AbortController; readonly attempt: Attempt },
  ): Promise<ActionOutcome> {
    const { endpoint, tool, parameters, inputSchema, outputSchema } = call;
    const { client, http } = connection;
    const { server } = endpoint;
    let updates = 0;
    let questions = 0;
    /** A person answers one question after the other: an answer must not reach another question. */
    let earlier: Promise<unknown> = Promise.resolve();
    connection.onQuestion = async (params) => {
      questions += 1;
      if (questions > limits.mcpQuestions || !isAskable(params)) return { action: 'decline' };
      const secret = secretIn(params);
      if (secret !== null) {
        attempt.progress({ text: declined(server, secret) });
        return { action: 'decline' };
      }
      const reply = earlier.then(() =>
        abort.signal.aborted ? { action: 'decline' as const } : heldQuestion(server, params, attempt),
      );
      earlier = reply;
      return await reply;
    };
    const options = {
      signal: abort.signal,
      // The attempt has the time-out; a question of a person suspends it.
      timeout: call.timeoutMs + limits.mcpQuestionMs,
      onprogress: (progress: Progress) => {
        updates += 1;
        if (updates <= limits.mcpUpdates) attempt.progress(updateOf(progress));
      },
    };
    const lost = this.#lostAnswer(connection);
    http.begin(limits.mcpResponseBytes);
    // A call that is repeated with answers has another id than the call before.
    if (answers !== null) connection.numberFrom(answers.round);
    try {
      if (tool === null) {
        const request = { uri: String(parameters['uri']), ...tracedBy(call) };
        return outcomeOfResource(await lost.or(client.readResource(request, { ...options, cacheMode: 'bypass' })));
      }
      // Without the schema of the result: the library's error for a wrong one is that for refused parameters.
      const definition = { name: tool, inputSchema };
      const request = { name: tool, arguments: parameters, ...answersOf(answers), ...tracedBy(call) };
      const result: unknown = await lost.or(
        client.callTool(request as Parameters<typeof client.callTool>[0], {
          ...options,
          allowInputRequired: true,
          toolDefinition: definition as never,
        }),
      );
      if (!isInputRequiredResult(result)) return outcomeOf(server, result as CallToolResult, outputSchema);
      const open = openQuestions(result, (answers?.round ?? 0) + 1);
      if (typeof open === 'string') return failure('mcp_failed', `The MCP server "${server}" ${open}`);
      return await this.#ask(call, { signal: abort.signal, progress: attempt.progress }, open);
    } catch (fault) {
      if (abort.signal.aborted) return failureOf(abort.signal.reason, abort.signal, 'aborted');
      return failureOfServer(server, fault, http);
    } finally {
      connection.onQuestion = null;
      lost.stop();
    }
  }

  /** Ends the wait for an answer whose stream has ended. The answer may have come with its end, so it gets a moment. */
  #lostAnswer(connection: McpConnection): {
    readonly or: <T>(answer: Promise<T>) => Promise<T>;
    readonly stop: () => void;
  } {
    const { promise, reject } = Promise.withResolvers<never>();
    let stopTimer = (): void => {};
    let isOver = false;
    connection.onStreamEnd = () => {
      if (isOver) return;
      stopTimer = this.#connections.clock.schedule(limits.mcpLostAnswerMs, () => {
        reject(new Error('the connection ended before the answer'));
      });
    };
    return {
      or: async (answer) => await Promise.race([answer, promise]),
      stop: () => {
        isOver = true;
        stopTimer();
        connection.onStreamEnd = null;
      },
    };
  }
}

/** By the convention of the protocol, the trace context is a part of the request: many calls share a connection. */
function tracedBy({ trace }: Pick<McpCall, 'trace'>): JsonObject {
  return trace === undefined ? {} : { _meta: { [TRACEPARENT]: trace } };
}

/** The parameters with which a server of 2026-07-28 gets its answers. */
function answersOf(open: OpenQuestions | null): JsonObject {
  if (open === null) return {};
  const { requestState, answers } = open;
  return {
    inputResponses: answers as unknown as JsonObject,
    ...(requestState === null ? {} : { requestState }),
  };
}

/** A line of its own among the output of the action. */
function updateOf({ progress, total, message }: Progress): ToolUpdate {
  const share = total !== undefined && total > 0 ? (100 * progress) / total : Number.NaN;
  const isPart = Number.isFinite(share);
  const said = message ?? (isPart ? `${progress} of ${total}` : String(progress));
  const text = `${said.slice(0, limits.mcpUpdateChars)}\n`;
  return isPart ? { text, percent: Math.min(100, Math.max(0, share)) } : { text };
}

/** Ends the attempt with the question, and resolves with the answer of a person. */
async function heldQuestion(server: string, params: ElicitParams, attempt: Attempt): Promise<ElicitResult> {
  const { promise, resolve } = Promise.withResolvers<ElicitResult>();
  attempt.asked(questionOf(server, params, { [HELD]: true }), (content) => {
    resolve(content === null ? { action: 'decline' } : acceptance(params, content));
  });
  return await promise;
}

function unanswered(question: Question): ActionOutcome {
  const message = `${question.from} asks a person before it goes on, and nobody can be asked here`;
  return { ...failure('question_unanswerable', message), question };
}

function declined(server: string, field: string): string {
  const shown = JSON.stringify(field.slice(0, limits.excerptChars));
  return `The MCP server "${server}" asked for a secret (${shown}): declined\n`;
}
