/**
 * The blocks of the current generation: thoughts, bare text, responses and the reasoning that comes beside them.
 *
 * Owns what the generation has shown so far, which decides whether bare text is the answer (P11). Does not own the
 * content of the blocks: `Segments` does.
 */
import type { ActionKey } from '../../domain/action.ts';
import type { Finality, ProtocolEvent, Reference } from '../../domain/protocol-event.ts';
import type { RunNames } from '../run/run-names.ts';
import type { Segments } from './segments.ts';

type TextEvent = Extract<
  ProtocolEvent,
  { type: `${'thought' | 'text' | 'response'}${'' | '_started' | '_completed'}` }
>;

export class GenerationBlocks {
  readonly #segments: Segments;
  #saw = { action: false, response: false, text: false };
  #isReasoning = false;
  #response: { final: Finality; refers: Set<ActionKey> } = { final: null, refers: new Set() };

  constructor(segments: Segments) {
    this.#segments = segments;
  }

  /** A new generation begins. */
  reset(): void {
    this.#saw = { action: false, response: false, text: false };
  }

  /** Whether the generation's bare text is all that it has shown. */
  get onlyBareText(): boolean {
    return this.#saw.text && !this.#saw.action && !this.#saw.response;
  }

  sawAction(): void {
    this.#saw.action = true;
  }

  /** @param interrupted a crash took the rest of the generation */
  text(event: TextEvent, interrupted = false): void {
    switch (event.type) {
      case 'thought_started':
        return this.#segments.open('thought', null, event.reasoning ? { reasoning: true } : {});
      case 'text_started':
        this.#saw.text = true;
        return this.#segments.open('text');
      case 'response_started':
        this.#saw.response = true;
        this.#response = { final: event.final, refers: new Set() };
        return this.#segments.open('response', event.final);
      case 'thought':
      case 'text':
      case 'response':
        return this.#segments.write(event.delta);
      case 'thought_completed':
      case 'response_completed':
        return this.#segments.close(event.unclosed, interrupted && event.unclosed);
      case 'text_completed':
        return this.#segments.close(false, interrupted);
    }
  }

  /** A reference in the open response is bound here, to what is known at its place (P12). */
  refer(reference: Reference, producerOf: (name: string) => ActionKey | null, names: RunNames): void {
    const producer = producerOf(reference.name);
    if (producer !== null) this.#response.refers.add(producer);
    this.#segments.refer(reference, () => names.valueOf(reference.name, producer));
  }

  /** @param interrupted a crash took the rest of it: then it cannot be the answer (J2) */
  closeResponse(unclosed: boolean, interrupted: boolean): { final: Finality; refers: readonly ActionKey[] } {
    this.#segments.close(unclosed, interrupted);
    return { final: interrupted ? false : this.#response.final, refers: [...this.#response.refers] };
  }

  /** Reasoning that the provider sends beside the text becomes thoughts; nothing in it runs (P9). */
  reasoning(text: string): void {
    if (!this.#isReasoning) {
      this.#isReasoning = true;
      this.#segments.open('thought', null, { reasoning: true });
    }
    this.#segments.write(text);
  }

  endReasoning(): void {
    if (!this.#isReasoning) return;
    this.#isReasoning = false;
    this.#segments.close(false);
  }
}
