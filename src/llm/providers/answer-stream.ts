/**
 * Decodes a model's answer: the JSON values of its server-sent events, those of one read together. Also detects the end
 * marker, limits the length of lines, and reads an answer that is one JSON object instead of a stream.
 *
 * Invariants
 * 1. The values that a read completes are passed on at once, in one list (P4): whatever follows costs once per read, not
 *    once per event.
 * 2. At most `limits.modelLineBytes` are buffered, for an unfinished line or an object.
 * 3. What was read before an error is passed on before the error is thrown.
 */
import { APIError } from 'openai';
import { createParser } from 'eventsource-parser';
import { EngineError } from '../../domain/errors.ts';
import { isJsonObject } from '../../domain/json.ts';
import type { Json } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';

export interface AnswerOptions {
  /** The endpoint's name in messages. */
  readonly endpoint: string;
  /** `marked` is set when the stream has sent its end marker. */
  readonly end: { marked: boolean };
  /** The answer's content type is HTML. */
  readonly page: boolean;
  /** Cancels the answer, also while it is being waited for. */
  readonly signal: AbortSignal;
  /** Of the answer, for an error inside it: they may say when to ask again. */
  readonly headers?: Headers;
}

/**
 * @returns lists of chunks, none of them empty; ends behind the end marker
 * @throws EngineError `model_rejected` for a web page, `model_unavailable` for a line that is too long
 * @throws APIError for an error inside the stream; SyntaxError for invalid JSON
 */
export async function* answerChunks(
  body: ReadableStream<Uint8Array>,
  options: AnswerOptions,
): AsyncGenerator<readonly unknown[]> {
  const { endpoint, end, page, signal } = options;
  const reader = body.getReader();
  // Cancelling also releases a waiting `read`.
  const leave = (): void => void reader.cancel().catch(() => undefined);
  if (signal.aborted) leave();
  signal.addEventListener('abort', leave, { once: true });
  try {
    if (page) throw new EngineError('model_rejected', `The model endpoint ${endpoint} ${PAGE}`);
    const answer = new Answer(options);
    for (let isOpen = true; isOpen && !end.marked;) {
      const { done, value } = await reader.read();
      isOpen = !done;
      if (done) answer.end();
      else answer.add(value);
      const chunks = answer.take();
      if (chunks.length > 0) yield chunks;
      if (answer.fault !== null) throw answer.fault;
    }
  } finally {
    signal.removeEventListener('abort', leave);
    leave();
  }
}

const DONE = '[DONE]';
const LINE_FEED = 0x0a;
const SPACE = 0x20;
const OPEN_BRACE = 0x7b;

class Answer {
  readonly #options: AnswerOptions;
  readonly #decoder = new TextDecoder();
  readonly #parser = createParser({ onEvent: ({ event, data }) => this.#received(event, data) });
  #is: 'unknown' | 'stream' | 'object' = 'unknown';
  #lineBytes = 0;
  #object = '';
  #isEnding = false;
  #chunks: unknown[] = [];
  /** Why nothing more is read. */
  fault: Error | null = null;

  constructor(options: AnswerOptions) {
    this.#options = options;
  }

  add(bytes: Uint8Array): void {
    if (this.#is === 'unknown') this.#is = beginningOf(bytes);
    const lineEnd = this.#is === 'object' ? -1 : bytes.lastIndexOf(LINE_FEED);
    this.#lineBytes = lineEnd === -1 ? this.#lineBytes + bytes.length : bytes.length - lineEnd - 1;
    const text = this.#decoder.decode(bytes, { stream: true });
    if (this.#is === 'object') this.#object += text;
    else this.#parser.feed(text);
    if (this.#lineBytes <= limits.modelLineBytes) return;
    const message = `The model endpoint ${this.#options.endpoint} sent a line of more than ${limits.modelLineBytes} bytes`;
    this.fault ??= new EngineError('model_unavailable', message);
  }

  /** The body has ended. Of a last line without an end, only the end marker counts. */
  end(): void {
    if (this.#is === 'object') {
      this.#received(undefined, this.#object);
      this.#options.end.marked = true;
      return;
    }
    this.#isEnding = true;
    this.#parser.feed('\n\n');
  }

  /** What was completed since the last call. */
  take(): readonly unknown[] {
    const chunks = this.#chunks;
    this.#chunks = [];
    return chunks;
  }

  /** @param event named events are errors, or belong to other APIs */
  #received(event: string | undefined, data: string): void {
    if (this.#options.end.marked || this.fault !== null) return;
    if (data === DONE) {
      this.#options.end.marked = true;
      return;
    }
    if (this.#isEnding) return;
    let chunk: Json;
    try {
      chunk = JSON.parse(data) as Json;
    } catch (fault) {
      this.fault = fault instanceof Error ? fault : new SyntaxError('invalid JSON');
      return;
    }
    const error = isJsonObject(chunk) ? chunk['error'] : undefined;
    if (event !== 'error' && (error === undefined || error === null || error === false || error === '')) {
      this.#chunks.push(chunk);
      return;
    }
    this.fault = new APIError(undefined, (error ?? chunk) as object, undefined, this.#options.headers);
  }
}

const PAGE = 'answered with a web page; check its URL (many end in /v1)';

/** Whether an answer is one JSON object or a stream of events; unknown while there is only white space. */
function beginningOf(bytes: Uint8Array): 'unknown' | 'stream' | 'object' {
  const first = bytes.find((byte) => byte > SPACE);
  return first === undefined ? 'unknown' : first === OPEN_BRACE ? 'object' : 'stream';
}
