/** Records what a model is asked and what it writes, generation by generation. */
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

export class GenerationRecorder implements ModelProvider {
  readonly name: string;
  readonly notice?: string;
  readonly #provider: ModelProvider;
  readonly #generations: RecordedGeneration[] = [];

  constructor(provider: ModelProvider) {
    this.#provider = provider;
    this.name = provider.name;
    if (provider.notice !== undefined) this.notice = provider.notice;
  }

  get generations(): readonly RecordedGeneration[] {
    return this.#generations;
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
    } finally {
      const completionTokens = estimateTokens(text) + estimateTokens(other);
      this.#generations.push({ promptTokens, text, calls, completionTokens });
    }
  }
}
