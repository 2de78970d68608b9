/** The events of a run as a stream of chat completion chunks, and as one chat completion (E2). */
import type { SessionEvent } from '../../domain/event.ts';
import type { JsonObject } from '../../domain/json.ts';
import type { RunStatus } from '../../domain/session.ts';
import type { Tokens } from '../../view/run-view.ts';
import type { DocumentFold, Fold, FoldedRun, StreamEnd, SurfaceDocument } from '../surface.ts';
import { ChatState } from './chat-state.ts';
import type { ChatOutcome, Piece } from './chat-state.ts';
import { DONE, errorBody, lostBody } from './error.ts';

const frame = (value: object): string => `data: ${JSON.stringify(value)}\n\n`;

/** A failed run is no failure of the request: clients would repeat it, and a second run would begin. */
const FAILED_STATUS = 422;

type Finish = 'stop' | 'length' | 'tool_calls';

/** @returns the reason, or the error of a message that cannot be completed */
function endOf(outcome: ChatOutcome, sessionId: string): Finish | { readonly error: JsonObject } {
  switch (outcome.type) {
    case 'completed':
      return 'stop';
    case 'unfinished':
      return 'length';
    case 'calls':
      return 'tool_calls';
    case 'cancelled':
      return errorBody('The run was cancelled', 'cancelled');
    case 'cut':
      return errorBody('The answer was cut off, and is being written again; the run continues', 'interrupted');
    case 'approval': {
      const { approvalId, action, question } = outcome;
      const route = `/agent/session/${sessionId}/approvals/${approvalId}`;
      const what =
        question === null
          ? `A person has to approve the action "${action}" first: POST ${route} with {"decision": "approve"}. `
          : `A person has to answer a question of the action "${action}" first: ${question.from} asks ${JSON.stringify(question.message)}. POST ${route} with {"decision": "approve", "content": {…}}; GET ${route} has the schema of the values. `;
      const message = `${what}Sent again with the Idempotency-Key that it had, the request then has the answer`;
      return errorBody(message, 'approval_required', 'invalid_request_error');
    }
    case 'failed':
      return errorBody(outcome.message, outcome.code);
  }
}

function usageOf({ prompt, completion, cached }: Tokens): JsonObject {
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    prompt_tokens_details: { cached_tokens: cached },
  };
}

function toolCall({ id, name, parameters }: Extract<Piece, { type: 'call' }>): JsonObject {
  return { id, type: 'function', function: { name, arguments: JSON.stringify(parameters) } };
}

/** `chatcmpl-` and what distinguishes the run; a continued run is another message. */
function headOf({ runId, agent, startedAt, after }: FoldedRun, object: string): JsonObject {
  const part = after > 0 ? `-${after}` : '';
  const id = `chatcmpl-${runId.replace(/^run_/, '')}${part}`;
  return { id, object, created: Math.floor(startedAt / 1_000), model: agent };
}

export class ChatFold implements Fold {
  readonly #state: ChatState;
  readonly #head: JsonObject;
  readonly #sessionId: string;
  readonly #withUsage: boolean;
  #isStarted = false;
  #calls = 0;

  constructor(run: FoldedRun) {
    this.#state = new ChatState(run);
    this.#head = headOf(run, 'chat.completion.chunk');
    this.#sessionId = run.sessionId;
    this.#withUsage = run.options['usage'] === true;
  }

  add(event: SessionEvent): string {
    return this.#state
      .add(event)
      .map((piece) => this.#chunk(this.#deltaOf(piece)))
      .join('');
  }

  end(how: StreamEnd): string {
    const { outcome, usage } = this.#state;
    const end = outcome === null || how !== 'stopped' ? lostBody(how) : endOf(outcome, this.#sessionId);
    if (typeof end !== 'string') return frame(end) + DONE;
    const counted = this.#withUsage ? frame({ ...this.#head, choices: [], usage: usageOf(usage) }) : '';
    return this.#chunk({}, end) + counted + DONE;
  }

  #deltaOf(piece: Piece): JsonObject {
    switch (piece.type) {
      case 'content':
        return { content: piece.text };
      case 'reasoning':
        return { reasoning_content: piece.text };
      case 'call':
        return { tool_calls: [{ index: this.#calls++, ...toolCall(piece) }] };
    }
  }

  #chunk(delta: JsonObject, finish: Finish | null = null): string {
    // Clients expect the role in the first chunk only.
    const role = this.#isStarted ? {} : { role: 'assistant' };
    this.#isStarted = true;
    return frame({ ...this.#head, choices: [{ index: 0, delta: { ...role, ...delta }, finish_reason: finish }] });
  }
}

export class ChatDocument implements DocumentFold {
  readonly #state: ChatState;
  readonly #head: JsonObject;
  readonly #text = { content: '', reasoning: '' };
  readonly #calls: JsonObject[] = [];
  readonly #sessionId: string;

  constructor(run: FoldedRun) {
    this.#state = new ChatState(run);
    this.#head = headOf(run, 'chat.completion');
    this.#sessionId = run.sessionId;
  }

  add(event: SessionEvent): void {
    for (const piece of this.#state.add(event)) {
      if (piece.type === 'call') this.#calls.push(toolCall(piece));
      else this.#text[piece.type] += piece.text;
    }
  }

  end(status: RunStatus): SurfaceDocument {
    const { outcome, usage } = this.#state;
    const end =
      outcome === null
        ? errorBody(`The run is ${status}, and has no answer`, 'run_in_progress')
        : endOf(outcome, this.#sessionId);
    if (typeof end !== 'string') return { status: FAILED_STATUS, body: end };
    const { content, reasoning } = this.#text;
    const message: JsonObject = {
      role: 'assistant',
      content: content === '' && this.#calls.length > 0 ? null : content,
      refusal: null,
      ...(reasoning === '' ? {} : { reasoning_content: reasoning }),
      ...(this.#calls.length === 0 ? {} : { tool_calls: this.#calls }),
    };
    const choice = { index: 0, message, logprobs: null, finish_reason: end };
    return { status: 200, body: { ...this.#head, choices: [choice], usage: usageOf(usage) } };
  }
}
