/** Records what a model is asked and what it writes, generation by generation. */
import { EngineError } from '../../../src/domain/errors.ts';
import type { ModelDelta, ModelProvider, ModelRequest } from '../../../src/domain/ports/model.ts';
import { estimateMessages, estimateTokens } from '../../../src/domain/tokens.ts';

export interface RecordedGeneration {
  /** Estimated tokens of the messages and the functions. */
  readonly promptTokens: number;
  /** The protocol text, or the plain text. */
  readonly text: string;
  /** Native calls, as `name(arguments)`. */
  readonly calls: readonly string[];
  /** Estimated tokens of everything that it wrote: text, reasoning, calls. */
  readonly completionTokens: number;
}

/** Why the last generation could not be made. */
export interface ModelFailure {
  /** Of the answer of the endpoint; null if it gave none. */
  readonly status: number | null;
}

export class GenerationRecorder implements ModelProvider {
  readonly name: string;
  readonly notice?: string;
  readonly #provider: ModelProvider;
  readonly #generations: RecordedGeneration[] = [];
  #failure: ModelFailure | null = null;

  constructor(provider: ModelProvider) {
    this.#provider = provider;
    this.name = provider.name;
    if (provider.notice !== undefined) this.notice = provider.notice;
  }

  get generations(): readonly RecordedGeneration[] {
    return this.#generations;
  }

  /** Null if the last generation has ended without an error. */
  get failure(): ModelFailure | null {
    return this.#failure;
  }

  async *stream(request: ModelRequest): AsyncGenerator<ModelDelta> {
    if (request.agent === null) {
      // an action of the type llm: no generation of the agent
      yield* this.#provider.stream(request);
      return;
    }
    const functions = request.tools === undefined ? 0 : estimateTokens(JSON.stringify(request.tools));
    const promptTokens = estimateMessages(request.messages) + functions;
    let text = '';
    let other = '';
    const calls: string[] = [];
    let last: number | null = null;
    this.#failure = null;
    try {
      for await (const delta of this.#provider.stream(request)) {
        if (delta.type === 'text') text += delta.text;
        else if (delta.type === 'reasoning') other += delta.text;
        else if (delta.type === 'tool_call') {
          const { index, id, name, argumentsDelta } = delta;
          // Some servers send the index 0 for all calls, but an id for each.
          if (index !== last || (id !== null && name !== null)) calls.push(name ?? '');
          calls.push(`${calls.pop() ?? ''}${argumentsDelta}`);
          last = index;
          other += (name ?? '') + argumentsDelta;
        }
        yield delta;
      }
    } catch (fault) {
      const status = fault instanceof EngineError ? fault.details['status'] : undefined;
      this.#failure = { status: typeof status === 'number' ? status : null };
      throw fault;
    } finally {
      const completionTokens = estimateTokens(text) + estimateTokens(other);
      this.#generations.push({ promptTokens, text, calls, completionTokens });
    }
  }
}
