/**
 * A client of another protocol (E1 to E3): what it asks, and what it makes of the frames that it gets. These readers are
 * strict, and do what the real packages do; protocols.test.ts compares them.
 */
import type { Json, JsonObject } from '../../../src/domain/json.ts';
import type { CallResult } from '../../../src/engine/session/session-calls.ts';
import type { Surface, SurfaceRequest } from '../../../src/surfaces/surface.ts';

/**
 * How a stream ended for the client.
 *
 *  - `success`: the answer is whole. `cut`: it is not.
 *  - `waiting`: the run waits for the client or for people.
 *  - `lost`: the run continues, or the client can't know.
 */
export type Outcome = 'success' | 'cut' | 'waiting' | 'failed' | 'cancelled' | 'lost';

/** What the client has after a stream. Plain data. */
export interface Reading {
  readonly message: Json;
  /** Null: the stream has no last frame. */
  readonly outcome: Outcome | null;
  /** What the client has to answer. `token`: of the action. */
  readonly calls: readonly { readonly id: string; readonly token: string }[];
  readonly approvals: readonly string[];
  /** Parts that were begun and not ended, as a sentence each. */
  readonly open: readonly string[];
  /** Frames that the client refuses, or that mislead it, as a sentence each. */
  readonly mistakes: readonly string[];
}

/** What the client answers. */
export interface ClientAnswers {
  readonly results: readonly { readonly callId: string; readonly result: CallResult }[];
  readonly decisions: readonly { readonly approvalId: string; readonly approved: boolean }[];
  /** How often it has answered before. */
  readonly round: number;
}

/** Who asks: the place of the message in the history, its text, and the run, as soon as the client knows it. */
export interface Asking {
  readonly index: number;
  readonly text: string;
  readonly sessionId: string;
  readonly runId: string | null;
  /** What the client has. */
  readonly has: Reading | null;
}

/** The requests of a client: `ask` sends its message, `follow` reads the run again, `answer` brings results and decisions. */
export type Asked = 'ask' | 'follow' | 'answer';

export interface ClientProtocol {
  readonly surface: Surface;
  /** Whether it can send decisions about approvals. */
  readonly decides: boolean;
  /** Whether an answer that comes too late is an error; otherwise it has no effect. */
  readonly tellsLate: boolean;
  /** Sends the message; repeated, it joins the same run. */
  readonly ask: (asking: Asking) => SurfaceRequest;
  /** Reads the run again; null: by repeating the last request. */
  readonly follow: ((asking: Asking) => SurfaceRequest) | null;
  /** Whether a client answers only if it can answer all that was asked. */
  readonly answersTogether: boolean;
  /** Whether a client that has not answered can see what becomes of the run. */
  readonly looksAgain: boolean;
  /** The requests whose streams continue what the client has. The stream of any other begins a message. */
  readonly continues: readonly Asked[];
  readonly answer: (asking: Asking, answers: ClientAnswers) => SurfaceRequest;
  /** A result as the protocol can say it. Default: as it is. */
  readonly resultOf?: (result: CallResult) => CallResult;
  /** What the client has after its own answers, before it sends them. Default: no change. */
  readonly answered?: (has: Reading, answers: ClientAnswers) => Reading;
  /** @param text of the body of a stream. @param before what it continues */
  readonly read: (text: string, before: Reading | null) => Reading;
  /** Seq of the event after which this message begins: of the last wait before it, or 0; null if nothing says it. */
  readonly beginsAfter: (reading: Reading) => number | null;
  /** The options of a stream that gives the whole message. */
  readonly options: JsonObject;
  /** What the message must be after any connections: without what depends on them, and without other runs. */
  readonly essence: (message: Json, runId: string) => Json;
  /** The list of messages, for pages that are loaded again. */
  readonly conversation?: {
    readonly ask: (asking: Asking) => SurfaceRequest;
    /** The message of the run; null if it is not in the list. */
    readonly find: (text: string, runId: string) => Json;
  };
}

/** The values of `data:` lines; null for one that is not JSON. */
export function dataOf(text: string): unknown[] {
  return text.split('\n\n').flatMap((frame) => {
    const lines = frame.split('\n').flatMap((line) => (line.startsWith('data: ') ? [line.slice(6)] : []));
    if (lines.length === 0 || lines[0] === '[DONE]') return [];
    try {
      return [JSON.parse(lines.join('\n')) as unknown];
    } catch {
      return [null];
    }
  });
}

/** For protocols without a word for failed calls: the output says it. */
export const errorAsOutput = (result: CallResult): CallResult =>
  'output' in result ? result : { output: { error: result.error.message } };

/** The token of an action, from the parameters of its call. */
export function tokenIn(parameters: unknown): string {
  const given = typeof parameters === 'string' ? (JSON.parse(parameters) as unknown) : parameters;
  return String((given as { token?: unknown } | null)?.token ?? '');
}
