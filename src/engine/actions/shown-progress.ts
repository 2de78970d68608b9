/** Live output of actions, redacted (C9): a match may be split between pieces, so the end of a piece may wait. */
import type { RedactedStream } from '../../bounded/redacted-stream.ts';
import type { Redaction } from '../../bounded/redaction.ts';
import type { ActionKey } from '../../domain/action.ts';
import type { EventData } from '../../domain/event.ts';

type Progress = EventData['progress'];
type Send = (data: Progress) => void;

export class ShownProgress {
  readonly #outgoingText: Redaction | null;
  /** The streams of running actions, by the name of the stream. */
  readonly #open = new Map<ActionKey, Map<string, { readonly stream: RedactedStream; readonly last: Progress }>>();

  constructor(outgoingText: Redaction | null) {
    this.#outgoingText = outgoingText;
  }

  take(key: ActionKey, data: Progress, send: Send): void {
    const { text, stream: name = '' } = data;
    if (this.#outgoingText === null || text === undefined) return send(data);
    let streams = this.#open.get(key);
    if (streams === undefined) this.#open.set(key, (streams = new Map()));
    const stream = streams.get(name)?.stream ?? this.#outgoingText.stream();
    streams.set(name, { stream, last: data });
    const shown = stream.feed(text);
    if (shown !== '' || data.percent !== undefined) send({ ...data, text: shown });
  }

  /** The attempt has ended. */
  end(key: ActionKey, send: Send): void {
    for (const { stream, last } of this.#open.get(key)?.values() ?? []) {
      const text = stream.end();
      if (text !== '') send({ ...last, text });
    }
    this.#open.delete(key);
  }
}
