/**
 * One history on the real system: its clients, and what they, the servers and the readers have seen.
 *
 * Its messages have one chat session. Posted protocol text is a session of its own, so one history is observed as several
 * sessions. Cancels, deletions and readers apply to each of them.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { AttemptScript, History, MessageScript } from '../simulation/history.ts';
import type { Fact } from '../simulation/observation.ts';
import { placeOf, scriptOf, textOf } from '../simulation/script.ts';
import { markOf } from '../simulation/world/marks.ts';
import type { FactWithoutTime } from '../simulation/world/stage.ts';
import { clientToolOf, PASSED_TOOL } from './call-client.ts';
import { LOST, request } from './client.ts';
import type { Wanted } from './client.ts';
import { contentOf, hashesOf } from './message-files.ts';
import { PlayedSession } from './played-session.ts';
import type { Surroundings } from './played-session.ts';

const AT_ONCE: AttemptScript = { ms: 0, end: 'ok' };

export class Play {
  readonly name: string;
  readonly seed: number;
  readonly history: History;
  readonly sessions: readonly PlayedSession[];
  readonly #around: Surroundings;
  readonly #toolsPassed: boolean;
  readonly #counts = new Map<string, number>();

  constructor(name: string, seed: number, history: History, around: Surroundings) {
    this.name = name;
    this.seed = seed;
    this.history = history;
    this.#around = around;
    this.#toolsPassed = clientToolOf(history) === 'passed';
    const texts = history.messages.flatMap(({ type }, at) => (type === 'text' ? [at] : []));
    const hasChat = texts.length < history.messages.length;
    const open = (text: number | null): PlayedSession => new PlayedSession(text, history, around);
    this.sessions = [...(hasChat ? [open(null)] : []), ...texts.map(open)];
  }

  /** Carries out all plans of clients. */
  async run(): Promise<void> {
    const { history } = this;
    const startedAt = this.#around.now();
    const later = async (at: number, run: () => Promise<void>): Promise<void> => {
      await delay(Math.max(0, startedAt + at - this.#around.now()));
      await run();
    };
    const chat = this.sessions.find(({ text }) => text === null);
    const created = chat?.create(`${this.#around.url}/agent/${this.name}/session`);
    await Promise.all([
      ...history.messages.map((script, at) =>
        later(script.at, async () => {
          await created;
          await (script.type === 'text' ? this.#execute(at, script) : this.#message(at, script));
        }),
      ),
      ...history.requests.map((script, at) =>
        later(script.at, async () => {
          await Promise.all(this.sessions.map((session) => session.carryOut(`reader ${at}`, script)));
        }),
      ),
    ]);
  }

  /** Notes a fact about a message. */
  note(message: number, fact: FactWithoutTime): void {
    this.#sessionOf(message).note(fact);
  }

  noteAll(fact: FactWithoutTime): void {
    for (const session of this.sessions) session.note(fact);
  }

  /** The attempt of an action with this number, from 1. */
  attemptOf(token: string, attempt: number): AttemptScript {
    const attempts = scriptOf(this.history.messages, token)?.attempts ?? [];
    return attempts[Math.min(attempt, attempts.length) - 1] ?? AT_ONCE;
  }

  /** @param about the action that the effect belongs to */
  effect(about: string, effect: Omit<Extract<Fact, { readonly type: 'effect' }>, 'at' | 'type' | 'isRecorded'>): void {
    const place = placeOf(about);
    // Not observable from outside whether the start was on disk.
    if (place !== null) this.note(place.message, { type: 'effect', ...effect, isRecorded: true });
  }

  /** Number of this model call of a message, from 0. */
  callOf(message: number): number {
    return this.#count(`call ${message}`) - 1;
  }

  /** Number of this call of a child's model, from 1. */
  childCallOf(token: string): number {
    return this.#count(`child ${token}`);
  }

  /** Number of this request to a target, from 1. */
  arrivalOf(token: string): number {
    return this.#count(`arrival ${token}`);
  }

  #count(what: string): number {
    const count = (this.#counts.get(what) ?? 0) + 1;
    this.#counts.set(what, count);
    return count;
  }

  #sessionOf(message: number): PlayedSession {
    const session =
      this.sessions.find(({ text }) => text === message) ?? this.sessions.find(({ text }) => text === null);
    if (session === undefined) throw new Error(`${this.name} has no session for message ${message}`);
    return session;
  }

  async #message(index: number, script: MessageScript): Promise<void> {
    const session = this.#sessionOf(index);
    const content = contentOf(index, script);
    const tools = this.#toolsPassed ? { tools: [PASSED_TOOL] } : {};
    for (let time = 0; time < (script.repeats ? 2 : 1); time += 1) {
      const answer = await request(`${session.url}/message?if_busy=${script.ifBusy}`, {
        method: 'POST',
        headers: { 'idempotency-key': `key-${index}` },
        body: JSON.stringify({ content, ...tools }),
      });
      if (answer === LOST) return;
      session.answered(index, answer, hashesOf(content));
    }
  }

  /** A text is not sent again: it would be another execution. */
  async #execute(index: number, script: MessageScript): Promise<void> {
    const session = this.#sessionOf(index);
    const [generation] = script.generations;
    if (generation === undefined) return;
    const text = `<thought>${markOf(index)}</thought>\n${textOf(index, 0, generation, this.#around.forms)}`;
    const answer = await request(`${this.#around.url}/execute/streaming_protocol?agent=${this.name}`, {
      method: 'POST',
      mayRepeat: false,
      staysConnected: true,
      headers: { 'content-type': 'text/plain' },
      body: upload(text, generation.pieceChars, generation.gapMs),
      duplex: 'half',
    } as Wanted);
    if (answer === LOST) return;
    const id = answer.headers.get('x-session-id');
    if (id !== null) session.open(`${this.#around.url}/agent/session/${id}`);
    session.answered(index, answer);
  }
}

function upload(text: string, chars: number, gapMs: number): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  let at = 0;
  return new ReadableStream({
    async pull(controller) {
      if (gapMs > 0) await delay(gapMs);
      if (at >= text.length) return controller.close();
      controller.enqueue(encoder.encode(text.slice(at, at + chars)));
      at += chars;
    },
  });
}
