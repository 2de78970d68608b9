/**
 * The blocks of the current generation: thoughts, bare text, responses, and separate reasoning.
 *
 * Owns what the generation has shown so far, which decides whether bare text is the answer (P11). Does not own the
 * content of the blocks, which is in `Segments`.
 */
import type { ActionKey } from '../../domain/action.ts';
import type { Finality, ProtocolEvent, Reference } from '../../domain/protocol-event.ts';
import { isVisible } from '../../protocol/references/visible-text.ts';
import type { RunNames } from '../run/run-names.ts';
import type { Segments } from './segments.ts';

type TextEvent = Extract<
  ProtocolEvent,
  { type: `${'thought' | 'text' | 'response'}${'' | '_started' | '_completed'}` }
>;

/** The blocks that a generation opens, writes and closes. */
export type Blocks = Pick<Segments, 'beginGeneration' | 'open' | 'write' | 'refer' | 'close'>;

export class GenerationBlocks {
  readonly #segments: Blocks;
  #saw = { action: false, response: false, text: false };
  #isReasoning = false;
  #endedInReasoning = false;
  #response = newResponse(null);
  #offersAnswer = false;

  constructor(segments: Blocks) {
    this.#segments = segments;
  }

  /** A new generation begins. */
  reset(): void {
    this.#saw = { action: false, response: false, text: false };
    this.#endedInReasoning = false;
    this.#offersAnswer = false;
    this.#segments.beginGeneration();
  }

  /** The generation has ended: its separate reasoning, if any is open, ends too. */
  end(): void {
    this.#endedInReasoning = this.#isReasoning;
    this.endReasoning();
  }

  /** Whether the generation ended within separate reasoning. */
  get endedInReasoning(): boolean {
    return this.#endedInReasoning;
  }

  /** Whether the generation consists of bare text only. */
  get onlyBareText(): boolean {
    return this.#saw.text && !this.#saw.action && !this.#saw.response;
  }

  sawAction(): void {
    this.#saw.action = true;
  }

  /** @param broke the generation ended early */
  text(event: TextEvent, broke = false): void {
    switch (event.type) {
      case 'thought_started':
        return this.#segments.open('thought', null, event.reasoning ? { reasoning: true } : {});
      case 'text_started':
        this.#saw.text = true;
        return this.#segments.open('text');
      case 'response_started':
        this.#saw.response = true;
        this.#response = newResponse(event.final);
        return this.#segments.open('response', event.final);
      case 'response':
        if (isVisible(event.delta)) this.#response.isBlank = false;
        return this.#segments.write(event.delta);
      case 'thought':
      case 'text':
        return this.#segments.write(event.delta);
      case 'thought_completed':
      case 'response_completed':
        return this.#segments.close(event.unclosed, broke && event.unclosed);
      case 'text_completed':
        return this.#segments.close(false, broke);
    }
  }

  /** Binds a reference in the open response to the producer known at this position (P12). */
  refer(reference: Reference, producerOf: (name: string) => ActionKey | null, names: RunNames): void {
    const producer = producerOf(reference.name);
    if (producer !== null) this.#response.refers.add(producer);
    this.#response.hasReferences = true;
    this.#response.isBlank = false;
    this.#segments.refer(reference, () => names.valueOf(reference.name, producer));
  }

  /**
   * @param broke the generation ended early: a response that is not closed answers nothing (P15)
   * @returns null for a response that answers nothing
   */
  closeResponse(unclosed: boolean, broke: boolean): Closed | null {
    const isCut = broke && unclosed;
    this.#segments.close(unclosed, isCut);
    const { final, refers, hasReferences, isBlank } = this.#response;
    if (isBlank || isCut) return null;
    this.#offersAnswer ||= final !== false;
    return { final, refers: [...refers], hasReferences };
  }

  /** Whether the generation has a response that may end the run. */
  get offersAnswer(): boolean {
    return this.#offersAnswer;
  }

  /** Reasoning that the provider sends separately becomes thoughts; actions in it do not run (P9). */
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

interface Closed {
  readonly final: Finality;
  readonly refers: readonly ActionKey[];
  readonly hasReferences: boolean;
}

interface OpenResponse {
  readonly final: Finality;
  readonly refers: Set<ActionKey>;
  hasReferences: boolean;
  isBlank: boolean;
}

function newResponse(final: Finality): OpenResponse {
  return { final, refers: new Set(), hasReferences: false, isBlank: true };
}
