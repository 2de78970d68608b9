/** A model that gives prepared replies. */
import { EngineError } from '../src/domain/errors.ts';
import { estimateMessages, estimateTokens } from '../src/domain/tokens.ts';
import type { ModelDelta, ModelRequest } from '../src/domain/ports/model.ts';

/**
 * One reply of the model: its text; or pieces of a stream, such as function calls and usage; or an error, with which the
 * call fails.
 */
export type Reply = string | readonly ModelDelta[] | Error;

/** A reply, or a function that makes it from the request. */
export type Step = Reply | ((request: ModelRequest) => Reply | Promise<Reply>);

/** A scripted model: one reply for each model call, in order. */
export interface ScriptedModel {
  readonly steps: readonly Step[];
}

/** A model whose replies are these, in order. A call beyond the last one fails its run. */
export function scripted(...steps: readonly Step[]): ScriptedModel {
  return { steps };
}

/** Characters of a piece of streamed text: actions start while the rest arrives. */
const PIECE_CHARS = 64;
/** Characters of the request in an error. */
const EXCERPT_CHARS = 200;

/** One use of a script: counts its calls. */
export class ScriptReader {
  readonly #steps: readonly Step[];
  readonly #agent: string;
  #used = 0;

  constructor({ steps }: ScriptedModel, agent: string) {
    this.#steps = steps;
    this.#agent = agent;
  }

  /** @throws EngineError `model_rejected` without a further reply */
  async next(request: ModelRequest): Promise<readonly ModelDelta[]> {
    const step = this.#steps[this.#used];
    this.#used += 1;
    if (step === undefined) throw this.#missing(request);
    const reply = typeof step === 'function' ? await step(request) : step;
    if (reply instanceof Error) throw reply;
    return typeof reply === 'string' ? streamed(request, reply) : reply;
  }

  #missing({ messages }: ModelRequest): EngineError {
    const asked = (messages.findLast(({ role }) => role !== 'system')?.content ?? '').replaceAll(/\s+/g, ' ').trim();
    const shown = asked.length > EXCERPT_CHARS ? `${asked.slice(0, EXCERPT_CHARS)}…` : asked;
    return new EngineError(
      'model_rejected',
      `the scripted model has no reply number ${this.#used}; the agent "${this.#agent}" asked after: "${shown}". ` +
        'Add a reply to scripted(…), or make an earlier one end the run with <response final="true">',
    );
  }
}

/** The model of an agent that the test gives no script. */
export function unscripted(agent: string, known: readonly string[]): EngineError {
  return new EngineError(
    'model_rejected',
    `the test has no model for the agent "${agent}" (models: ${known.join(', ') || 'none'}). ` +
      `Pass model: { ${JSON.stringify(agent)}: scripted(…) } to openSession`,
  );
}

/** In pieces, with an estimated usage. */
function streamed({ messages }: ModelRequest, text: string): ModelDelta[] {
  const pieces: ModelDelta[] = [];
  for (let at = 0; at < text.length; at += PIECE_CHARS) {
    pieces.push({ type: 'text', text: text.slice(at, at + PIECE_CHARS) });
  }
  const usage = {
    promptTokens: estimateMessages(messages),
    completionTokens: estimateTokens(text),
    cachedTokens: 0,
    estimated: true,
  };
  return [...pieces, { type: 'usage', usage }, { type: 'finish', reason: 'stop' }];
}
