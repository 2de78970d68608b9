/** The prompt: lines of a person, or of piped input. */
import { createInterface } from 'node:readline/promises';
import pc from 'picocolors';
import { visible } from '../terminal/visible.ts';
import type { Ask } from './question.ts';

export class Terminal {
  readonly #input = createInterface({ input: process.stdin, output: process.stdout });
  readonly #closed = Promise.withResolvers<null>();
  /** Collects lines from the start, also those that are typed while a run is shown. */
  readonly #lines: AsyncIterator<string>;
  /** Piped input ends long before its last line has an answer. */
  #isOpen = true;
  #isAsking = false;
  /** Ctrl-C has ended the chat. */
  #isLeft = false;
  #isWorking = false;
  /** Stops the work that goes on; null if it was called. */
  #stop: (() => void) | null = null;

  constructor() {
    this.#input.once('close', () => {
      this.#isOpen = false;
      this.#closed.resolve(null);
    });
    // Of a terminal, whose keys are read, and of any other sender.
    this.#input.on('SIGINT', this.#interrupted);
    process.on('SIGINT', this.#interrupted);
    this.#input.setPrompt(pc.cyan('> '));
    this.#lines = this.#input[Symbol.asyncIterator]();
  }

  /** The next line of piped input; of a person, only a line that is typed after the question. */
  readonly ask: Ask = async (text) => {
    this.#isAsking = true;
    try {
      if (process.stdin.isTTY !== true) return await this.#askPipe(text);
      if (!this.#isOpen) return null;
      // `question` does not settle if the input ends meanwhile.
      const answer = await Promise.race([this.#input.question(text).catch(() => null), this.#closed.promise]);
      echo(answer);
      return answer;
    } finally {
      this.#isAsking = false;
    }
  };

  /** Does work that the first Ctrl-C stops; the second one ends the chat. At a question, the first one ends the input. */
  async during(work: () => Promise<void>, stop: () => Promise<void>): Promise<void> {
    let stopped: Promise<void> | undefined;
    this.#stop = () => (stopped = stop());
    this.#isWorking = true;
    try {
      await work();
      await stopped;
    } finally {
      this.#isWorking = false;
    }
  }

  readonly #interrupted = (): void => {
    if (this.#isAsking || (!this.#isWorking && this.#isOpen)) {
      this.#isLeft = true;
      process.stdout.write('\n');
      this.#input.close();
    } else if (this.#isWorking && this.#stop !== null) {
      this.#stop();
      this.#stop = null;
    } else process.exit(130);
  };

  async #askPipe(text: string): Promise<string | null> {
    process.stdout.write(text);
    const { value, done } = await this.#lines.next();
    const answer = done === true ? null : value;
    echo(answer);
    return answer;
  }

  /** Prompts for each line, until an empty one or the end of the input. */
  async *lines(): AsyncGenerator<string> {
    for (;;) {
      if (this.#isOpen) this.#input.prompt();
      const { value: line, done } = await this.#lines.next();
      if (done === true || this.#isLeft) return;
      echo(line);
      if (line.trim() === '') return;
      yield line;
    }
  }

  close(): void {
    this.#input.close();
  }
}

/** Ends the line of a prompt, if no terminal has done so. @param line null at the end of the input */
function echo(line: string | null): void {
  if (line === null || process.stdin.isTTY !== true) console.log(visible(line ?? ''));
}
