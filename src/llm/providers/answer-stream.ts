/**
 * Passes the bytes of a model's answer to the client library: detects the end marker, limits the length of lines, and
 * converts an answer that is not a stream.
 *
 * Invariants
 * 1. Bytes of a stream pass unchanged, each chunk immediately. (A transform stream would cost several times as much.)
 * 2. At most `limits.modelLineBytes` are buffered, for an answer that is one JSON object instead of a stream.
 */
import { EngineError } from '../../domain/errors.ts';
import { limits } from '../../domain/limits.ts';

export interface AnswerOptions {
  /** The endpoint's name in messages. */
  readonly endpoint: string;
  /** `marked` is set when the stream has sent its end marker. */
  readonly end: { marked: boolean };
  /** The answer's content type is HTML. */
  readonly page: boolean;
}

/** Converts an answer of one JSON object to a stream of one event. A web page causes `model_rejected`. */
export function answerStream(body: ReadableStream<Uint8Array>, options: AnswerOptions): ReadableStream<Uint8Array> {
  const answer = new Answer(body.getReader(), options);
  return new ReadableStream<Uint8Array>(
    {
      pull: async (controller) => {
        const bytes = await answer.next();
        if (bytes === null) controller.close();
        else controller.enqueue(bytes);
      },
      cancel: async (reason) => await answer.leave(reason),
    },
    { highWaterMark: 0 },
  );
}

/** The end marker of a stream; JSON in a chunk has no line breaks. */
const END_MARK = /[\r\n]data: ?\[DONE\]/;
/** The end marker and the line ends around it. */
const END_MARK_BYTES = 32;
const LINE_FEED = 0x0a;
const SPACE = 0x20;
const OPEN_BRACE = 0x7b;

class Answer {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly #options: AnswerOptions;
  readonly #decoder = new TextDecoder();
  #is: 'unknown' | 'stream' | 'object' = 'unknown';
  #tail = '\n';
  #lineBytes = 0;
  #object = '';

  constructor(reader: ReadableStreamDefaultReader<Uint8Array>, options: AnswerOptions) {
    this.#reader = reader;
    this.#options = options;
  }

  async next(): Promise<Uint8Array | null> {
    if (this.#options.page) throw this.#refuse('model_rejected', PAGE);
    for (;;) {
      const { done, value } = await this.#reader.read();
      if (done) return this.#last();
      if (this.#is === 'unknown') this.#is = beginningOf(value);
      this.#measure(value);
      if (this.#is !== 'object') {
        this.#listen(value);
        return value;
      }
      this.#object += this.#decoder.decode(value, { stream: true });
    }
  }

  /** Cancels the rest: the client reads up to the end marker. */
  async leave(reason: unknown): Promise<void> {
    this.#options.end.marked = true;
    await this.#reader.cancel(reason);
  }

  #last(): Uint8Array | null {
    const object = this.#object;
    if (object === '') return null;
    this.#object = '';
    this.#options.end.marked = true;
    return new TextEncoder().encode(`data: ${object.replace(/[\r\n]+/g, ' ')}\n\n`);
  }

  #measure(bytes: Uint8Array): void {
    const lineEnd = this.#is === 'object' ? -1 : bytes.lastIndexOf(LINE_FEED);
    this.#lineBytes = lineEnd === -1 ? this.#lineBytes + bytes.length : bytes.length - lineEnd - 1;
    if (this.#lineBytes > limits.modelLineBytes) {
      throw this.#refuse('model_unavailable', `sent a line of more than ${limits.modelLineBytes} bytes`);
    }
  }

  #listen(bytes: Uint8Array): void {
    this.#tail = (this.#tail + this.#decoder.decode(bytes.subarray(-END_MARK_BYTES))).slice(-END_MARK_BYTES);
    this.#options.end.marked ||= END_MARK.test(this.#tail);
  }

  #refuse(code: 'model_rejected' | 'model_unavailable', why: string): EngineError {
    void this.#reader.cancel().catch(() => undefined);
    return new EngineError(code, `The model endpoint ${this.#options.endpoint} ${why}`);
  }
}

const PAGE = 'answered with a web page; check its URL (many end in /v1)';

/** Whether an answer is one JSON object or a stream of events; unknown while there is only white space. */
function beginningOf(bytes: Uint8Array): 'unknown' | 'stream' | 'object' {
  const first = bytes.find((byte) => byte > SPACE);
  return first === undefined ? 'unknown' : first === OPEN_BRACE ? 'object' : 'stream';
}
