/**
 * A client of another protocol (E1 to E3): it sends one message, reads the stream at its own pace, leaves and comes back,
 * answers what the run asks of it, and stops when it has the end. Its requests go through the real routes of the session.
 *
 * Invariants:
 *  1. A request without an answer is repeated as it was, as these clients do.
 *  2. It knows only what it has read from streams, and the ids in the headers of answers.
 */
import type { SurfaceRequest } from '../../../src/surfaces/surface.ts';
import { SURFACE_PATH } from '../../../src/http/surfaces/session-surface.ts';
import type { SurfaceCall } from '../../../src/http/surfaces/session-surface.ts';
import { limits } from '../../../src/domain/limits.ts';
import { postsOf } from '../call-posts.ts';
import type { DecisionScript, ViaScript } from '../history.ts';
import type { ClientLog, ClientStream } from '../observation.ts';
import type { Asked, Asking, ClientAnswers, ClientProtocol, Reading } from '../protocols/client-protocol.ts';
import { CLIENT_PROTOCOLS } from '../protocols/protocols.ts';
import type { Host } from './host.ts';
import { markOf } from './marks.ts';
import { SESSION_ID } from './stage.ts';
import type { Stage } from './stage.ts';

const REPEAT_MS = 25;
/** Number of times that it leaves. */
const MOST_LEAVES = 6;
/** Pause before it looks again at a run that waits for others, or at another run. */
const LOOK_MS = 10_000;
/** It gives up after so many requests. */
const MOST_REQUESTS = 40;

/** What the client asks of the others that share its history. */
export interface ProtocolClientOptions {
  readonly stage: Stage;
  /** The current host, started if necessary; null if the session was deleted. */
  readonly host: () => Host | null;
  /** What a person does about an approval; the same for all who ask. */
  readonly decisionOf: (approval: string) => DecisionScript;
  readonly onAnswered: (answer: ProtocolAnswer) => void;
}

/** The answer to a request that carried something. */
export type ProtocolAnswer = { readonly code: string; readonly incarnation: number } & (
  | { readonly asked: 'ask'; readonly run: string | null }
  | { readonly asked: 'answer'; readonly answers: ClientAnswers; readonly protocol: ClientProtocol }
);

interface Request {
  readonly asked: Asked | 'conversation';
  readonly request: SurfaceRequest;
  readonly answers?: ClientAnswers;
}

export class ProtocolClient implements ClientLog {
  readonly name: string;
  readonly via: ViaScript;
  readonly incarnation: number;
  readonly streams: ClientStream[] = [];
  runId: string | null = null;
  conversation: ClientLog['conversation'] = null;
  /** Whether it reads a stream now. */
  isReading = false;
  readonly #index: number;
  readonly #protocol: ClientProtocol;
  readonly #options: ProtocolClientOptions;
  readonly #answeredIds = new Set<string>();
  #has: Reading | null = null;
  #round = 0;

  /** @param index place of its message in the history */
  constructor(name: string, index: number, via: ViaScript, options: ProtocolClientOptions) {
    this.name = name;
    this.via = via;
    this.incarnation = options.stage.incarnation;
    this.#index = index;
    this.#protocol = CLIENT_PROTOCOLS[via.protocol];
    this.#options = options;
  }

  /** Resolves when it has the end, or gives up. */
  async run(): Promise<void> {
    let next: Request | null = this.#asking();
    for (let count = 0; next !== null && count < MOST_REQUESTS; count += 1) next = await this.#send(next);
  }

  #state(): Asking {
    const { runId } = this;
    return { index: this.#index, text: `${markOf(this.#index)} please`, sessionId: SESSION_ID, runId, has: this.#has };
  }

  #asking(): Request {
    return { asked: 'ask', request: this.#protocol.ask(this.#state()) };
  }

  /** Reads the run again, after a stream that had no end. */
  #following(last: Request): Request {
    const { follow } = this.#protocol;
    if (this.runId !== null && follow !== null) return { asked: 'follow', request: follow(this.#state()) };
    // The messages that the client has are a part of some requests.
    return last.asked === 'answer' && last.answers !== undefined ? this.#answering(last.answers) : this.#asking();
  }

  #answering(answers: ClientAnswers): Request {
    return { asked: 'answer', request: this.#protocol.answer(this.#state(), answers), answers };
  }

  /** @returns the next request; null if there is none */
  async #send(sent: Request): Promise<Request | null> {
    const host = this.#options.host();
    if (host === null) return null;
    await Promise.race([host.ensure().catch(() => undefined), host.life.gone.promise]);
    if (host.life.isOver || !host.session.exists) return await this.#later(REPEAT_MS, sent);
    if (host.incarnation !== this.incarnation) return null;
    const answered = host.app.fetch(requestOf(this.#protocol, sent.request));
    const response = await Promise.race([answered, host.life.gone.promise]);
    // A failed disk: the client gets status 500, and repeats its request.
    if (!(response instanceof Response) || host.life.isOver || response.status >= 500) {
      return await this.#later(REPEAT_MS, sent);
    }
    return await this.#read(host, sent, response);
  }

  async #read(host: Host, sent: Request, response: Response): Promise<Request | null> {
    const type = response.headers.get('content-type') ?? '';
    if (type.startsWith('application/problem+json')) {
      const { code } = (await response.json()) as { readonly code: string };
      return await this.#refused(sent, code, this.incarnation);
    }
    if (sent.asked === 'conversation') {
      const text = await Promise.race([textOf(host, response), host.life.gone.promise.then(() => null)]);
      if (text === null) return await this.#later(REPEAT_MS, sent);
      this.conversation = { text };
      return null;
    }
    // It has nothing to follow: the run has ended.
    if (response.status === 204) return this.#conversing();
    const run = response.headers.get('x-run-id');
    if (sent.asked === 'follow' && run !== this.runId) {
      await response.body?.cancel();
      return (await this.#later(LOOK_MS, sent)) ?? this.#conversing();
    }
    this.runId = run;
    // The session may have been made again since it was asked.
    const { incarnation } = this;
    if (sent.asked === 'ask') this.#options.onAnswered({ asked: 'ask', run, code: 'accepted', incarnation });
    if (sent.asked === 'answer' && sent.answers !== undefined) {
      const { answers } = sent;
      this.#options.onAnswered({ asked: 'answer', answers, code: 'accepted', protocol: this.#protocol, incarnation });
    }
    const { text, end } = await this.#stream(host, response);
    const { read, surface, continues } = this.#protocol;
    const continued = continues.includes(sent.asked) ? this.#has : null;
    let reading = read(text, continued);
    // The Worker ends a stream whose object was lost.
    if (end === 'lost' && reading.outcome === null) reading = read(text + surface.lost, continued);
    this.#has = reading;
    const { results = [], decisions = [] } = sent.answers ?? {};
    const answered = [...results.map(({ callId }) => callId), ...decisions.map(({ approvalId }) => approvalId)];
    this.streams.push({ asked: sent.asked, answered, text, end, reading });
    return await this.#after(sent, reading);
  }

  /** One connection, until the client leaves or the stream ends. */
  async #stream(host: Host, { body }: Response): Promise<Pick<ClientStream, 'text' | 'end'>> {
    const { reads, pauseMs } = this.via;
    const reader = (body as ReadableStream<Uint8Array> | null)?.getReader();
    const decoder = new TextDecoder();
    let text = '';
    this.isReading = true;
    try {
      for (let count = 0; ; count += 1) {
        if (reader === undefined) break;
        if (count === reads && this.streams.length < MOST_LEAVES) {
          void reader.cancel().catch(() => undefined);
          return { text, end: 'left' };
        }
        const read = reader.read().catch(() => null);
        const result = await Promise.race([read, host.life.gone.promise.then(() => null)]);
        if (result === null || host.life.isOver) return { text, end: 'lost' };
        if (result.done) break;
        const piece = decoder.decode(result.value, { stream: true });
        text += piece.repeat(this.#options.stage.broken.pieces?.(count) ?? 1);
        if (pauseMs > 0) await this.#pause(pauseMs);
      }
      return { text, end: 'ended' };
    } finally {
      this.isReading = false;
    }
  }

  async #after(sent: Request, reading: Reading): Promise<Request | null> {
    switch (reading.outcome) {
      case null:
      case 'lost':
        return await this.#later(REPEAT_MS, this.#following(sent));
      case 'waiting':
        return await this.#answer(sent, reading);
      case 'success':
        // Background actions may ask.
        return this.#hasAnswered(reading) ? this.#conversing() : await this.#answer(sent, reading);
      case 'cut':
      case 'failed':
      case 'cancelled':
        return this.#conversing();
    }
  }

  /** Whether nothing is left that it could answer. */
  #hasAnswered({ calls, approvals }: Reading): boolean {
    return [...calls.map(({ id }) => id), ...approvals].every((id) => this.#answeredIds.has(id));
  }

  /** Answers all that the run asks of it. What it does not answer expires; then it looks again. */
  async #answer(sent: Request, { calls, approvals }: Reading): Promise<Request | null> {
    const { messages } = this.#options.stage.history;
    const posts = calls.flatMap(({ id: callId, token }) => {
      const times = { expiryMs: limits.clientToolMs, againMs: [0] };
      const post = postsOf(messages, token, times).find(({ isMistaken }) => !isMistaken);
      return post === undefined ? [] : [{ callId, ...post }];
    });
    const decided = approvals.flatMap((approvalId) => {
      const { afterMs, approved, times } = this.#options.decisionOf(approvalId);
      return times === 0 || !this.#protocol.decides ? [] : [{ approvalId, approved, afterMs }];
    });
    const isComplete = posts.length + decided.length === calls.length + approvals.length;
    if (posts.length + decided.length === 0 || (this.#protocol.answersTogether && !isComplete)) {
      return this.#protocol.looksAgain ? await this.#later(LOOK_MS, this.#following(sent)) : null;
    }
    // An answer takes some time.
    await this.#pause(Math.max(1, ...[...posts, ...decided].map(({ afterMs }) => afterMs)));
    this.#round += 1;
    for (const id of [...calls.map((call) => call.id), ...approvals]) this.#answeredIds.add(id);
    const answers: ClientAnswers = {
      results: posts.map(({ callId, result }) => ({ callId, result: this.#protocol.resultOf?.(result) ?? result })),
      decisions: decided.map(({ approvalId, approved }) => ({ approvalId, approved })),
      round: this.#round,
    };
    if (this.#has !== null) this.#has = this.#protocol.answered?.(this.#has, answers) ?? this.#has;
    return this.#answering(answers);
  }

  async #refused(sent: Request, code: string, incarnation: number): Promise<Request | null> {
    // The session is being deleted; the message may have had its run.
    if (code === 'unknown_session') return null;
    if (sent.asked === 'ask') {
      if (this.runId === null) this.#options.onAnswered({ asked: 'ask', run: null, code, incarnation });
      return null;
    }
    if (sent.asked !== 'answer' || sent.answers === undefined) return null;
    const { answers } = sent;
    this.#options.onAnswered({ asked: 'answer', answers, code, protocol: this.#protocol, incarnation });
    // Another client has answered, or it is too late: the run goes on without it.
    return this.#protocol.looksAgain ? await this.#later(LOOK_MS, this.#following(sent)) : null;
  }

  /** A page that is loaded again; null for clients that have none. */
  #conversing(): Request | null {
    const { conversation } = this.#protocol;
    return conversation === undefined ? null : { asked: 'conversation', request: conversation.ask(this.#state()) };
  }

  async #later(ms: number, request: Request): Promise<Request> {
    await this.#pause(ms);
    return request;
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => void this.#options.stage.time.after(ms, () => resolve()));
  }
}

/** The platform sends an answer when everything that was written before it is durable. Null if the host ends before. */
async function textOf({ life }: Host, response: Response): Promise<string | null> {
  try {
    const text = await response.text();
    await life.gate();
    return text;
  } catch {
    return null;
  }
}

function requestOf({ surface }: ClientProtocol, { agent, command }: SurfaceRequest): globalThis.Request {
  const call: SurfaceCall = { surface: surface.name, agent, open: null, repeats: null, command };
  return new globalThis.Request(`http://session${SURFACE_PATH}`, { method: 'POST', body: JSON.stringify(call) });
}
