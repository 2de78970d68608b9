/** Clients of the session: messages, cancels, decisions and the deletion. A request without an answer is repeated. */
import { EngineError } from '../../../src/domain/errors.ts';
import type { DecisionScript, MessageScript } from '../history.ts';
import { limits } from '../../../src/domain/limits.ts';
import type { CallResult } from '../../../src/engine/session/session-calls.ts';
import { scriptOf, textOf } from '../script.ts';
import type { Host } from './host.ts';
import { DiskFailure, HostGone } from './life.ts';
import { filesOfContent } from '../../../src/domain/content.ts';
import type { Session } from '../../../src/engine/session/session.ts';
import { admitContent } from '../../../src/policies/message-content.ts';
import type { AdmittedContent, GivenPart } from '../../../src/policies/message-content.ts';
import { givenPart } from './files.ts';
import { markOf } from './model.ts';
import type { Stage } from './stage.ts';

const REPEAT_MS = 25;
/** A client that gets no answer this often gives up. */
const MOST_REPEATS = 20;
const APPROVE: DecisionScript = { afterMs: 50, approved: true, times: 1 };

/** The host was lost during the request. */
const LOST = Symbol('lost');

const NO_FILES: AdmittedContent['files'] = new Map();

export class Clients {
  readonly #stage: Stage;
  readonly #host: () => Host | null;
  readonly #seen = new Set<string>();
  /** The parts of messages, which are the same when a message is sent again. */
  readonly #parts = new Map<number, readonly GivenPart[]>();
  /** Requests without an answer. */
  open = 0;

  constructor(stage: Stage, host: () => Host | null) {
    this.#stage = stage;
    this.#host = host;
  }

  async message(index: number, script: MessageScript): Promise<void> {
    await this.#post(index, script);
    if (script.repeats && script.type === 'message') await this.#post(index, script);
  }

  async #post(index: number, script: MessageScript): Promise<void> {
    const { type, ifBusy, files, generations } = script;
    const answer = await this.#request(async ({ session }) => {
      if (type === 'message') {
        return await session.message({
          ...(await this.#admit(session, index, script)),
          ifBusy,
          tokens: false,
          idempotencyKey: `key-${index}`,
        });
      }
      const [first] = generations;
      const text = `<thought>${markOf(index)}</thought>\n${first === undefined ? '' : textOf(index, 0, first)}`;
      return await session.execute(pieces(text, first?.pieceChars ?? 1_000), text);
    }, type === 'message');
    if (answer === LOST) return;
    const isError = answer instanceof EngineError;
    this.#stage.note({
      type: 'message_answered',
      message: index,
      run: isError ? null : answer.run,
      code: isError ? answer.code : 'accepted',
      ...(isError ? {} : { queued: this.#queuedUpTo(answer.run) }),
    });
    if (files.length > 0) this.#stage.noteFiles();
  }

  /** As the route does. Its text follows its first file. */
  async #admit(session: Session, index: number, { files }: MessageScript): Promise<AdmittedContent> {
    const text = `${markOf(index)} please`;
    if (files.length === 0) return { content: text, files: NO_FILES };
    const artifact = this.#stage.artifacts.at(-1) ?? null;
    const parts = this.#parts.get(index) ?? files.map((file, place) => givenPart(index, place, file, artifact));
    this.#parts.set(index, parts);
    const given: readonly GivenPart[] = parts.toSpliced(1, 0, { type: 'text', text });
    const admitted = await admitContent(given, (id) => session.read().artifact(id));
    this.#stage.note({ type: 'message_sent', message: index, files: filesOfContent(admitted.content) });
    return admitted;
  }

  #queuedUpTo(run: number): number {
    const { disk } = this.#stage;
    // The session may have been deleted meanwhile.
    if (disk.exec(`SELECT 1 FROM sqlite_master WHERE name = 'runs'`, [], false).length === 0) return 0;
    return disk.exec(`SELECT run FROM runs WHERE status = 'queued' AND run <= ?`, [run], false).length;
  }

  async cancel(): Promise<void> {
    let runs: readonly number[] = [];
    const answer = await this.#request(async ({ session }) => {
      await session.recover();
      runs = session.runs().flatMap(({ run, status }) => (isOpen(status) ? [run] : []));
      await session.cancel('a client cancelled');
    }, true);
    if (answer === undefined) this.#stage.note({ type: 'cancel_answered', runs });
  }

  /** Closes the session; the world deletes its storage. */
  async close(): Promise<boolean> {
    const answer = await this.#request(async ({ session }) => await session.close('the session was deleted'), true);
    return answer === undefined;
  }

  /** A person sees the request and decides, now or later. */
  seeApproval(approval: string): void {
    if (this.#seen.has(approval)) return;
    const decision = this.#stage.history.decisions[this.#seen.size] ?? APPROVE;
    this.#seen.add(approval);
    this.#stage.note({ type: 'approval_seen', approval });
    for (let time = 0; time < decision.times; time += 1) {
      this.#stage.time.after(decision.afterMs, () => void this.#decide(approval, decision.approved));
    }
  }

  /** A client sees a call, and posts its result as the script of the action says. */
  seeCall(call: string, token: string): void {
    if (this.#seen.has(call)) return;
    this.#seen.add(call);
    const { ms, end } = scriptOf(this.#stage.history.messages, token)?.attempts[0] ?? { ms: 0, end: 'ok' };
    const output: CallResult = { output: { token, value: `value of ${token}` } };
    const error: CallResult = { error: { message: `the client ${end}` } };
    const post = (afterMs: number, result: CallResult): void =>
      void this.#stage.time.after(afterMs, () => void this.#settle(call, result));
    switch (end) {
      case 'silent':
        return;
      case 'ok':
        return post(ms, output);
      case 'unreached':
        return post(ms + limits.clientToolMs + 10, output);
      case 'lost':
        for (const laterMs of [0, 0, 20, 60_000]) post(ms + laterMs, output);
        return;
      case 'deaf':
        post(ms, output);
        post(ms, { output: 'another one' });
        return post(ms + 50, error);
      default:
        return post(ms, error);
    }
  }

  async #settle(call: string, result: CallResult): Promise<void> {
    const answer = await this.#request(async ({ session }) => await session.settleCall(call, result), true);
    if (answer === LOST) return;
    const code = answer instanceof EngineError ? answer.code : 'accepted';
    const { disk } = this.#stage;
    const sql = `SELECT 1 FROM events WHERE type = 'client_tool_settled' AND data ->> '$.call_id' = ? AND seq <= ?`;
    const isRecorded =
      disk.exec(`SELECT 1 FROM sqlite_master WHERE name = 'events'`, [], false).length > 0 &&
      disk.exec(sql, [call, disk.durableSeq], false).length > 0;
    this.#stage.note({ type: 'call_answered', call, result: JSON.stringify(result), code, isRecorded });
  }

  async #decide(approval: string, approved: boolean): Promise<void> {
    const answer = await this.#request(async ({ session }) => {
      await session.recover();
      await session.resolveApproval(approval, approved, null);
    }, true);
    if (answer === LOST) return;
    const code = answer instanceof EngineError ? answer.code : 'accepted';
    const isRecorded = this.#isDecisionRecorded(approval);
    this.#stage.note({ type: 'decision_answered', approval, approved, code, isRecorded });
  }

  #isDecisionRecorded(approval: string): boolean {
    const { disk } = this.#stage;
    const sql = `SELECT 1 FROM events WHERE type = 'approval_resolved' AND data ->> '$.approval_id' = ? AND seq <= ?`;
    return disk.exec(sql, [approval, disk.durableSeq], false).length > 0;
  }

  /**
   * Sends a request, again if it got no answer and may be repeated.
   *
   * @returns the answer, or the engine's error; LOST if no answer arrived, or the session was deleted
   */
  async #request<T>(send: (host: Host) => Promise<T>, mayRepeat: boolean): Promise<T | EngineError | typeof LOST> {
    this.open += 1;
    try {
      for (let attempt = 0; attempt < MOST_REPEATS; attempt += 1) {
        const host = this.#host();
        if (host === null) return LOST;
        const answer = await Promise.race([ask(host, send), host.life.gone.promise.then((): typeof LOST => LOST)]);
        if (answer !== LOST || !mayRepeat) return answer;
        await new Promise<void>((resolve) => void this.#stage.time.after(REPEAT_MS, () => resolve()));
      }
      return LOST;
    } finally {
      this.open -= 1;
    }
  }
}

async function ask<T>(host: Host, send: (host: Host) => Promise<T>): Promise<T | EngineError | typeof LOST> {
  try {
    await host.ensure();
    return await send(host);
  } catch (fault) {
    if (fault instanceof EngineError) return fault;
    // The client gets status 500, or no answer.
    if (fault instanceof HostGone || fault instanceof DiskFailure) return LOST;
    throw fault;
  }
}

async function* pieces(text: string, chars: number): AsyncGenerator<string> {
  for (let at = 0; at < text.length; at += chars) {
    yield text.slice(at, at + chars);
    await Promise.resolve();
  }
}

const isOpen = (status: string): boolean => status === 'queued' || status === 'running' || status === 'waiting';
