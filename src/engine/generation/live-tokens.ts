/** Raw model text for clients that ask for it, redacted (C9). */
import type { RedactedStream } from '../../bounded/redacted-stream.ts';
import type { Redaction } from '../../bounded/redaction.ts';
import type { RunLog } from '../run/run-log.ts';

export class LiveTokens {
  readonly #log: RunLog;
  readonly #outgoingText: Redaction | null;
  #stream: RedactedStream | null = null;

  constructor(log: RunLog, outgoingText: Redaction | null) {
    this.#log = log;
    this.#outgoingText = outgoingText;
  }

  add(text: string): void {
    if (this.#outgoingText === null) return this.#send(text);
    this.#stream ??= this.#outgoingText.stream();
    this.#send(this.#stream.feed(text));
  }

  /** The generation has ended. */
  end(): void {
    this.#send(this.#stream?.end() ?? '');
    this.#stream = null;
  }

  #send(token: string): void {
    if (token !== '') this.#log.live('llm_token', { token });
  }
}
