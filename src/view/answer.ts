/** What a run has answered, for readers that need nothing else of it. */
import type { EventOf, EventType, SessionEvent } from '../domain/event.ts';

/**
 * A run's answer: its final response, else its last one, else the bare text of its last generation. A response of a
 * generation that did not end the run is not final. A response that replaces another one takes its place
 * (P10, P13), and one that was cut off is not the answer beside a whole one (P15).
 */
export class RunAnswer {
  /** The events that it is derived from. */
  static readonly EVENTS: readonly EventType[] = ['response_completed', 'text_completed', 'iteration_completed'];

  #final: Answer | null = null;
  #last: Answer | null = null;
  #bare: string[] = [];
  #iteration = 0;
  /** The latest generation with a response. */
  #responded = 0;

  add(event: SessionEvent): void {
    switch (event.type) {
      case 'response_completed':
        return this.#respond(event);
      case 'text_completed':
        // The text of earlier generations only accompanied their actions (P11).
        if (event.iteration !== this.#iteration) this.#bare = [];
        this.#iteration = event.iteration;
        this.#bare.push(event.data.content);
        return;
      case 'iteration_completed':
        if (!event.data.final) this.#final = null;
        else if (this.#responded < event.iteration && this.#iteration === event.iteration) this.#last = null;
        return;
      default:
        return;
    }
  }

  #respond({ iteration, data: { content, segment, final, completes, cut } }: EventOf<'response_completed'>): void {
    const answer = { segment, content };
    // Without a whole response, it is what the run said last.
    if (cut === true) return void (this.#last ??= answer);
    this.#responded = Math.max(this.#responded, iteration);
    const replaces = (earlier: Answer | null): boolean => completes === undefined || completes === earlier?.segment;
    if (replaces(this.#last)) this.#last = answer;
    if (final === true && replaces(this.#final)) this.#final = answer;
  }

  get text(): string {
    return (this.#final ?? this.#last)?.content ?? this.#bare.join('\n\n');
  }
}

interface Answer {
  readonly segment: number;
  readonly content: string;
}
