/**
 * What redacts the text that a session shows, made once for each newest run (C9): a manifest is not read again for every
 * text. Owns nothing but this copy.
 */
import type { Redaction } from '../../bounded/redaction.ts';
import { OutgoingText, redactionOfSession } from './outgoing-text.ts';
import type { SessionPorts } from './session-ports.ts';

interface Made {
  /** After a failed write, another run may have the number of the newest one. */
  readonly run: number;
  readonly losses: number;
  readonly redaction: Redaction | null;
  readonly outgoing: OutgoingText;
}

export class SessionRedaction {
  readonly #ports: SessionPorts;
  #made: Made | null = null;

  constructor(ports: SessionPorts) {
    this.#ports = ports;
  }

  /** Null: nothing is redacted. */
  get redaction(): Redaction | null {
    return this.#current().redaction;
  }

  /** The identical object until there is another run. */
  get outgoing(): OutgoingText {
    return this.#current().outgoing;
  }

  #current(): Made {
    const { journal } = this.#ports;
    const { losses } = journal;
    const run = journal.runs.count;
    if (this.#made?.run === run && this.#made.losses === losses) return this.#made;
    const redaction = redactionOfSession(this.#ports);
    this.#made = { run, losses, redaction, outgoing: new OutgoingText(redaction) };
    return this.#made;
  }
}
