/** A line of progress: rewritten in place on a terminal, repeated every few seconds otherwise. */
import { isatty } from 'node:tty';

const TERMINAL_MS = 100;
const LOG_MS = 5_000;

export class ProgressLine {
  readonly #isTerminal = isatty(1);
  #shownAt: number;

  /** @param startedAt monotonic milliseconds */
  constructor(startedAt: number) {
    this.#shownAt = startedAt;
  }

  /** @param text called if the line is due */
  show(text: () => string): void {
    const now = performance.now();
    if (now < this.#shownAt + (this.#isTerminal ? TERMINAL_MS : LOG_MS)) return;
    this.#shownAt = now;
    process.stdout.write(this.#isTerminal ? `\r\u001b[K${text()}` : `${text()}\n`);
  }

  /** Removes the line from a terminal. */
  clear(): void {
    if (this.#isTerminal) process.stdout.write('\r\u001b[K');
  }
}
