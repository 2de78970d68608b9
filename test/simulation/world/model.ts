/** The model: writes the generations of the history, one per call, and outlives the hosts. */
import { EngineError } from '../../../src/domain/errors.ts';
import { limits } from '../../../src/domain/limits.ts';
import type { ModelDelta, ModelProvider, ModelRequest } from '../../../src/domain/ports.ts';
import type { GenerationScript } from '../history.ts';
import { textOf } from '../script.ts';
import type { Life } from './life.ts';
import type { Stage } from './stage.ts';

export const LAST: GenerationScript = {
  items: [{ type: 'response', final: true, refers: [] }],
  finish: 'stop',
  pieceChars: 1_000,
  gapMs: 0,
  reportsUsage: false,
};

/** How a message names itself, so that the model knows which one it answers. */
export const markOf = (message: number): string => `#m${message}#`;

/** The last message that is named in a text; null if none is. */
export function markedIn(text: string): number | null {
  const last = [...text.matchAll(/#m(\d+)#/g)].at(-1)?.[1];
  return last === undefined ? null : Number(last);
}

export class ScriptedModel {
  readonly #stage: Stage;
  /** Calls so far, by message. */
  readonly #calls = new Map<number, number>();

  constructor(stage: Stage) {
    this.#stage = stage;
  }

  provider(life: Life): ModelProvider {
    return { name: 'scripted', stream: (request) => this.#stream(life, request) };
  }

  async *#stream(life: Life, { messages, signal }: ModelRequest): AsyncGenerator<ModelDelta> {
    life.enter();
    // As fetch does: a call that was aborted before it began reaches no provider.
    signal.throwIfAborted();
    const message = markedIn(messages.map(({ content }) => content).join('\n')) ?? 0;
    const call = this.#calls.get(message) ?? 0;
    this.#calls.set(message, call + 1);
    this.#stage.note({ type: 'model_called', message, call });
    const script = this.#stage.history.messages[message]?.generations[call] ?? LAST;
    const text = textOf(message, call, script);
    for (let at = 0; at < text.length; at += script.pieceChars) {
      await this.#pause(life, script.gapMs, signal);
      yield { type: 'text', text: text.slice(at, at + script.pieceChars) };
    }
    const { finish } = script;
    await this.#pause(life, finish === 'silent' ? limits.betweenTokensMs : script.gapMs, signal);
    this.#stage.note({ type: 'generation_delivered', message, call, finish });
    if (finish === 'throws' || finish === 'silent') throw new EngineError('model_unavailable', 'the model gives up');
    if (script.reportsUsage) {
      const usage = { promptTokens: 100, completionTokens: text.length, cachedTokens: 0, estimated: false };
      yield { type: 'usage', usage };
    }
    yield { type: 'finish', reason: finish };
  }

  /** @throws the signal's reason */
  async #pause(life: Life, ms: number, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const cancel = this.#stage.time.after(ms, () => resolve());
    const onAbort = (): void => {
      cancel();
      reject(signal.reason as Error);
    };
    signal.addEventListener('abort', onAbort, { once: true });
    try {
      await promise;
    } finally {
      signal.removeEventListener('abort', onAbort);
    }
    await life.wait(0);
  }
}
