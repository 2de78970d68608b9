/** Clients of the session: messages, cancels, decisions and the deletion. A request without an answer is repeated. */
import { EngineError } from '../../../src/domain/errors.ts';
import type { BranchScript, DecisionScript, MessageScript, Request, ViaScript } from '../history.ts';
import { limits } from '../../../src/domain/limits.ts';
import type { RunRecord } from '../../../src/domain/session.ts';
import type { MessageRequest } from '../../../src/engine/session/session-admission.ts';
import type { SessionRecord } from '../../../src/domain/session.ts';
import type { CallResult } from '../../../src/engine/session/session-calls.ts';
import { ForkTarget } from '../../../src/engine/session/session-fork.ts';
import { Journal } from '../../../src/journal/journal.ts';
import { openNodeSql } from '../../support/node-sql.ts';
import { mistaken, postsOf } from '../call-posts.ts';
import { runIdOf, runNumberOf } from '../../../src/journal/run-id.ts';
import type { ClientProtocol } from '../protocols/client-protocol.ts';
import { CLIENT_PROTOCOLS } from '../protocols/protocols.ts';
import { placeOf, textOf } from '../script.ts';
import type { Host } from './host.ts';
import type { Fact } from '../observation.ts';
import { DiskFailure } from './disk-failure.ts';
import { HostGone } from './life.ts';
import { filesOfContent } from '../../../src/domain/content.ts';
import { admitContent } from '../../../src/policies/message-content.ts';
import type { AdmittedContent, GivenPart } from '../../../src/policies/message-content.ts';
import { givenPart } from './files.ts';
import { markOf } from './marks.ts';
import { ProtocolClient } from './protocol-client.ts';
import type { ProtocolAnswer } from './protocol-client.ts';
import { keyOf, Rows } from './rows.ts';
import type { Stage } from './stage.ts';

const REPEAT_MS = 25;
const FORK_PAGE_MS = 1;
const FORK: SessionRecord = {
  session_id: `ses_${'f'.repeat(32)}`,
  agent: 'assistant',
  user_id: null,
  owner: null,
  kind: 'chat',
  metadata: {},
  created_at: 0,
};
/** A client that gets no answer this often gives up. */
const MOST_REPEATS = 20;
/** A client whose answers are lost posts its result again. */
const AGAIN_MS = [0, 0, 20, 60_000];
const APPROVE: DecisionScript = { afterMs: 50, approved: true, times: 1 };

/** The host was lost during the request. */
const LOST = Symbol('lost');

const NO_FILES: AdmittedContent['files'] = new Map();

/** An answer, and the number of the session that gave it. */
interface Answered<T> {
  readonly answer: T | EngineError | typeof LOST;
  readonly incarnation: number;
}

/** What a message with a place of its own names. `run`: null: nothing. */
interface Named {
  readonly run: number | null;
  readonly action: string | null;
}

type LateAnswer = Extract<Fact, { readonly type: 'late_answer' }>;

export class Clients {
  readonly #stage: Stage;
  readonly #rows: Rows;
  readonly #host: () => Host | null;
  readonly #seen = new Set<string>();
  readonly #decisions = new Map<string, DecisionScript>();
  /** Approvals whose decision by a client of another protocol was answered. */
  readonly #decided = new Set<string>();
  readonly ofProtocols: ProtocolClient[] = [];
  /** The parts of messages, which are the same when a message is sent again. */
  readonly #parts = new Map<string, readonly GivenPart[]>();
  /** Messages and texts that are not on their way, with the number of the last session that may have got them. */
  readonly #posted = new Map<number, number>();
  /** What messages with a place of their own name: the same when they are sent again. */
  readonly #named = new Map<string, Named>();
  /** Requests without an answer. */
  open = 0;

  constructor(stage: Stage, host: () => Host | null) {
    this.#stage = stage;
    this.#rows = new Rows(stage.disk);
    this.#host = host;
  }

  async message(index: number, script: MessageScript): Promise<void> {
    if (script.via !== null) return await this.#ofProtocol(index, script, script.via);
    this.#posted.delete(index);
    await this.#post(index, script);
    if (script.repeats && script.type === 'message') await this.#post(index, script);
    this.#posted.set(index, this.#stage.incarnation);
  }

  /** The same in a session that was made again. A text is not sent again while it may still arrive, or if this session has it. */
  async again(index: number, script: MessageScript): Promise<void> {
    const mayLack = (this.#posted.get(index) ?? Infinity) < this.#stage.incarnation;
    if (script.type === 'message' || mayLack) await this.message(index, script);
  }

  /** Whether a client of another protocol reads a stream now. */
  get isReading(): boolean {
    return this.ofProtocols.some(({ isReading }) => isReading);
  }

  /** Clients of another protocol; two of them do the same, if the script repeats the message. */
  async #ofProtocol(index: number, script: MessageScript, via: ViaScript): Promise<void> {
    const options = {
      stage: this.#stage,
      host: this.#host,
      decisionOf: (approval: string) => this.#decisionOf(approval),
      onAnswered: (answer: ProtocolAnswer) => this.#noteAnswer(index, answer),
    };
    const names = script.repeats ? ['a', 'b'] : ['a'];
    const clients = names.map((name) => new ProtocolClient(`client ${index}${name}`, index, via, options));
    this.ofProtocols.push(...clients);
    this.open += 1;
    await Promise.all(clients.map((client) => client.run()));
    this.open -= 1;
  }

  #noteAnswer(index: number, answer: ProtocolAnswer): void {
    const { code, incarnation } = answer;
    if (answer.asked === 'ask') {
      const run = answer.run === null ? null : runNumberOf(answer.run);
      const isCurrent = run !== null && incarnation === this.#stage.incarnation;
      const queued = isCurrent ? { queued: this.#rows.queuedUpTo(run) } : {};
      if (run !== null) this.#stage.seenOf(incarnation).accepted.add(run);
      return this.#stage.note({ type: 'message_answered', message: index, run, code, ...queued }, incarnation);
    }
    const { results, decisions } = answer.answers;
    // An error does not say which answer it is about.
    if (code !== 'accepted' && results.length + decisions.length > 1) return;
    // Some protocols ignore what comes too late.
    const { tellsLate } = answer.protocol;
    const isCurrent = incarnation === this.#stage.incarnation;
    for (const { callId: call, result } of results) {
      const status: [string, string[]] = ['status', ['completed', 'failed']];
      if (!tellsLate && !(isCurrent && this.#rows.has('client_tool_settled', ['call_id', call], status))) continue;
      const isRecorded = this.#isRecorded('client_tool_settled', 'call_id', call, incarnation);
      this.#stage.note({ type: 'call_answered', call, result: JSON.stringify(result), code, isRecorded }, incarnation);
    }
    for (const { approvalId: approval, approved } of decisions) {
      // The same decision is accepted again.
      if (this.#decided.has(approval)) continue;
      const same: [string, string[]] = ['approved', [approved ? '1' : '0']];
      if (!tellsLate && !(isCurrent && this.#rows.has('approval_resolved', ['approval_id', approval], same))) continue;
      this.#decided.add(approval);
      const isRecorded = this.#isRecorded('approval_resolved', 'approval_id', approval, incarnation);
      this.#stage.note({ type: 'decision_answered', approval, approved, code, isRecorded }, incarnation);
    }
  }

  async #post(index: number, script: MessageScript): Promise<void> {
    const { type, ifBusy, files, generations } = script;
    const { answer, incarnation } = await this.#request(async (host) => {
      const { session } = host;
      if (type === 'message') return await this.#send(host, index, script);
      const [first] = generations;
      const text = `<thought>${markOf(index)}</thought>\n${first === undefined ? '' : textOf(index, 0, first)}`;
      return await session.execute(pieces(text, first?.pieceChars ?? 1_000), text);
    }, type === 'message');
    // There was nothing that it could name.
    if (answer === LOST || answer === null) return;
    const isError = answer instanceof EngineError;
    if (!isError) this.#stage.seenOf(incarnation).accepted.add(answer.run);
    // What a run has received waits in no queue.
    const queued =
      isError || ifBusy === 'steer' || incarnation !== this.#stage.incarnation
        ? {}
        : { queued: this.#rows.queuedUpTo(answer.run) };
    const run = isError ? null : answer.run;
    const code = isError ? answer.code : 'accepted';
    this.#stage.note({ type: 'message_answered', message: index, run, code, ...queued }, incarnation);
    if (files.length > 0) this.#stage.noteFiles();
    if (!isError) await this.#askForEarlier(incarnation);
  }

  /** As the routes do. @returns null if there is nothing that the message could name */
  async #send(host: Host, index: number, script: MessageScript): Promise<RunRecord | null> {
    const { session } = host;
    const request = { ifBusy: script.ifBusy, tokens: false, idempotencyKey: keyOf(index) };
    const { branch } = script;
    if (branch === null) return await session.message({ ...(await this.#admit(host, index, script)), ...request });
    const named = this.#name(host.incarnation, index, branch);
    if (named === null) return null;
    const { branches } = session;
    const of = named.run === null ? null : this.#runOf(host, named.run);
    if (of !== null && named.action !== null) return await (await branches.rerun(of, named.action, request)).run;
    const message: Omit<MessageRequest, keyof typeof request> =
      of !== null && branch.how === 'retry'
        ? branches.messageOf(of)
        : {
            ...(of !== null && branch.how === 'edit' ? branches.messageOf(of) : { place: branches.after(of) }),
            ...(await this.#admit(host, index, script)),
          };
    return await session.message({ ...message, ...request });
  }

  #runOf({ session, incarnation }: Host, run: number): RunRecord {
    return session.run(runIdOf(this.#stage.identity(incarnation), run));
  }

  /** What the message names: always the same in a session. Null if there is nothing yet. */
  #name(incarnation: number, index: number, { how, back, nth }: BranchScript): Named | null {
    const key = `${incarnation}/${index}`;
    const known = this.#named.get(key);
    if (known !== undefined) return known;
    const run = how === 'root' ? null : this.#accepted(incarnation, back);
    if (run === null && how !== 'root') return null;
    const named = how === 'rerun' ? this.#actionOf(incarnation, run ?? 0, nth) : { run, action: null };
    if (named === null) return null;
    this.#named.set(key, named);
    this.#stage.note({ type: 'branch_sent', message: index, of: named.run, action: named.action }, incarnation);
    return named;
  }

  /** @param back place from the newest */
  #accepted(incarnation: number, back: number): number | null {
    const runs = [...this.#stage.seenOf(incarnation).accepted];
    return runs.at(-1 - (back % Math.max(1, runs.length))) ?? null;
  }

  /** An action of this run; of the newest with actions, if it has none. */
  #actionOf(incarnation: number, run: number, nth: number): Named | null {
    const queued = this.#stage
      .factsOf(incarnation)
      .flatMap((fact) => (fact.type === 'published' && fact.event.type === 'action_queued' ? [fact.event] : []));
    const ofRun = (number: number): typeof queued => queued.filter(({ run_id: id }) => runNumberOf(id) === number);
    const newest = queued.at(-1);
    const chosen = ofRun(run).length > 0 || newest === undefined ? run : runNumberOf(newest.run_id);
    const actions = ofRun(chosen);
    const action = actions[nth % Math.max(1, actions.length)]?.action_id;
    return action === undefined ? null : { run: chosen, action };
  }

  /** The conversation continues after a run that was accepted. */
  async moveHead({ back }: Extract<Request, { type: 'head' }>): Promise<void> {
    let moved: { readonly run: number; readonly incarnation: number } | null = null;
    const { answer, incarnation } = await this.#request(async (host) => {
      if (moved?.incarnation !== host.incarnation) {
        const run = this.#accepted(host.incarnation, back);
        if (run === null) return;
        moved = { run, incarnation: host.incarnation };
        this.#stage.note({ type: 'head_sent', run }, host.incarnation);
      }
      await host.session.branches.moveHead(this.#runOf(host, moved.run));
    }, true);
    const { run = null } = (moved as { readonly run: number } | null) ?? {};
    if (answer === LOST || run === null || incarnation !== this.#stage.incarnation) return;
    this.#stage.note(
      { type: 'head_answered', run, runs: this.#rows.runsAtMove(run), code: codeOf(answer) },
      incarnation,
    );
  }

  /** Makes a fork at the end of a run that was accepted, which the client asks for again if it fails. */
  async fork({ back }: Extract<Request, { type: 'fork' }>): Promise<void> {
    await this.#request(async (host) => {
      const { session, incarnation } = host;
      await session.recover();
      const number = this.#accepted(incarnation, back);
      if (number === null) return;
      const run = this.#runOf(host, number);
      session.branches.requireForkable(run);
      const journal = new Journal(this.#stage.statements.over(openNodeSql(), 'fork'));
      const target = new ForkTarget(journal, FORK, null);
      try {
        for await (const page of readBy(host, session.forkPages(run))) {
          // The next page is another request to the host.
          await host.life.wait(FORK_PAGE_MS);
          const arrived = this.#stage.broken.page?.(page) ?? page;
          await target.take(structuredClone(arrived));
        }
        await target.finish();
      } catch (fault) {
        this.#stage.note({ type: 'fork_lost', exists: journal.record !== null }, incarnation);
        throw fault;
      }
      const events = journal.between(0, journal.lastSeq + 1);
      const open = journal.runs.open().map((one) => one.run);
      this.#stage.note({ type: 'forked', run: number, events, open }, incarnation);
    }, true);
  }

  /** As the route does. Its text follows its first file. */
  async #admit({ session, incarnation }: Host, index: number, { files }: MessageScript): Promise<AdmittedContent> {
    const text = `${markOf(index)} please`;
    if (files.length === 0) return { content: text, files: NO_FILES };
    const artifact = [...this.#stage.seenOf(incarnation).artifacts].at(-1) ?? null;
    const key = `${incarnation}/${index}`;
    const parts = this.#parts.get(key) ?? files.map((file, place) => givenPart(index, place, file, artifact));
    this.#parts.set(key, parts);
    const given: readonly GivenPart[] = parts.toSpliced(1, 0, { type: 'text', text });
    const admitted = await admitContent(given, (id) => session.read().artifact(id));
    const sent = filesOfContent(admitted.content);
    this.#stage.note({ type: 'message_sent', message: index, files: sent }, incarnation);
    return admitted;
  }

  /** Asks for things of the earlier sessions with this id, and answers them. */
  async #askForEarlier(incarnation: number): Promise<void> {
    for (let earlier = 0; earlier < incarnation; earlier += 1) {
      const { runs, approvals, artifacts, calls } = this.#stage.seenOf(earlier);
      for (const id of runs) await this.#late('run', id, ({ session }) => session.run(id));
      for (const id of approvals) {
        await this.#late('approval', id, ({ session }) => session.approval(id));
        await this.#late('approval', id, ({ session }) => session.resolveApproval(id, true, null));
      }
      for (const id of calls) await this.#late('call', id, ({ session }) => session.settleCall(id, { output: 'late' }));
      for (const id of artifacts) await this.#late('artifact', id, ({ session }) => session.read().artifact(id));
    }
  }

  async #late(what: LateAnswer['what'], id: string, ask: (host: Host) => unknown): Promise<void> {
    const { answer, incarnation } = await this.#request(async (host) => await ask(host), false);
    if (answer === LOST) return;
    this.#stage.note({ type: 'late_answer', what, id, code: codeOf(answer) }, incarnation);
  }

  async cancel(): Promise<void> {
    let runs: readonly number[] = [];
    const { answer, incarnation } = await this.#request(async ({ session }) => {
      await session.recover();
      runs = session.runs().flatMap(({ run, status }) => (isOpen(status) ? [run] : []));
      await session.cancel('a client cancelled');
    }, true);
    if (answer === undefined) this.#stage.note({ type: 'cancel_answered', runs }, incarnation);
  }

  /** As the route does. */
  async delete(exportMs: number | null): Promise<void> {
    await this.#request(async (host) => {
      const { session, life } = host;
      await session.dispose('the session was deleted');
      if (exportMs !== null) {
        for await (const line of session.export()) void line;
        // The end of the stream is reached when the client reads it.
        await life.wait(exportMs);
      }
      await host.delete(session);
    }, true);
  }

  /** Makes the session, if there is none. */
  async create(): Promise<void> {
    await this.#request(() => Promise.resolve(), true);
  }

  /** A person sees the request and decides, now or later. */
  seeApproval(approval: string, token: string): void {
    if (this.#seen.has(approval) || this.#protocolOf(token)?.decides === true) return;
    const decision = this.#decisionOf(approval);
    this.#seen.add(approval);
    const { incarnation } = this.#stage;
    this.#stage.note({ type: 'approval_seen', approval });
    for (let time = 0; time < decision.times; time += 1) {
      this.#stage.time.after(decision.afterMs, () => void this.#decide(approval, decision.approved, incarnation));
    }
  }

  /** The decision about an approval is always the same. */
  #decisionOf(approval: string): DecisionScript {
    const known = this.#decisions.get(approval);
    if (known !== undefined) return known;
    const decision = this.#stage.history.decisions[this.#decisions.size] ?? APPROVE;
    this.#decisions.set(approval, decision);
    return decision;
  }

  /** The protocol of the client that has caused an action. */
  #protocolOf(token: string): ClientProtocol | null {
    const via = this.#stage.history.messages[placeOf(token)?.message ?? -1]?.via ?? null;
    return via === null ? null : CLIENT_PROTOCOLS[via.protocol];
  }

  /** A client sees a call, and posts its result as the script of the action says. */
  seeCall(call: string, token: string): void {
    // Clients of other protocols answer their own.
    if (this.#seen.has(call) || this.#protocolOf(token) !== null) return;
    this.#seen.add(call);
    const { incarnation } = this.#stage;
    const posts = postsOf(this.#stage.history.messages, token, { expiryMs: limits.clientToolMs, againMs: AGAIN_MS });
    for (const { afterMs, result, isMistaken } of posts) {
      this.#stage.time.after(
        afterMs,
        () => void (isMistaken ? this.#settleWrong(mistaken(call), result) : this.#settle(call, result, incarnation)),
      );
    }
  }

  /** A client has mistaken the id of its call. */
  async #settleWrong(call: string, result: CallResult): Promise<void> {
    if (this.#seen.has(call)) return;
    const { answer, incarnation } = await this.#request(
      async ({ session }) => await session.settleCall(call, result),
      true,
    );
    if (answer !== LOST) this.#stage.note({ type: 'wrong_call', call, code: codeOf(answer) }, incarnation);
  }

  /** @param incarnation the session of the call */
  async #settle(call: string, result: CallResult, incarnation: number): Promise<void> {
    const arrived = this.#stage.broken.result?.(result) ?? result;
    const { answer, incarnation: answering } = await this.#request(
      async ({ session }) => await session.settleCall(call, arrived),
      true,
    );
    if (answer === LOST) return;
    const code = codeOf(answer);
    if (answering !== incarnation)
      return this.#stage.note({ type: 'late_answer', what: 'call', id: call, code }, answering);
    const isRecorded = this.#isRecorded('client_tool_settled', 'call_id', call, answering);
    this.#stage.note({ type: 'call_answered', call, result: JSON.stringify(result), code, isRecorded }, answering);
  }

  /** @param incarnation the session of the approval */
  async #decide(approval: string, approved: boolean, incarnation: number): Promise<void> {
    const { answer, incarnation: answering } = await this.#request(async ({ session }) => {
      await session.recover();
      const { schema } = session.approval(approval).question ?? {};
      const content = approved && schema !== undefined ? { word: `the answer to ${approval}` } : null;
      const arrived = this.#stage.broken.decision?.(approved) ?? approved;
      await session.resolveApproval(approval, arrived, null, arrived ? content : null);
    }, true);
    if (answer === LOST) return;
    const code = codeOf(answer);
    if (answering !== incarnation) {
      return this.#stage.note({ type: 'late_answer', what: 'approval', id: approval, code }, answering);
    }
    if (code === 'accepted') this.#decided.add(approval);
    const isRecorded = this.#isRecorded('approval_resolved', 'approval_id', approval, answering);
    this.#stage.note({ type: 'decision_answered', approval, approved, code, isRecorded }, answering);
  }

  /** The storage of a deleted session is empty. */
  #isRecorded(type: string, member: string, id: string, incarnation: number): boolean {
    return incarnation !== this.#stage.incarnation || this.#rows.isRecorded(type, member, id);
  }

  /**
   * Sends a request, again if it got no answer and may be repeated.
   *
   * @returns the answer, or the engine's error; LOST if no answer arrived, or the session was deleted
   */
  async #request<T>(send: (host: Host) => Promise<T>, mayRepeat: boolean): Promise<Answered<T>> {
    this.open += 1;
    const lost: Answered<T> = { answer: LOST, incarnation: this.#stage.incarnation };
    try {
      for (let attempt = 0; attempt < MOST_REPEATS; attempt += 1) {
        const host = this.#host();
        if (host === null) return lost;
        const answered = await Promise.race([ask(host, send), host.life.gone.promise.then(() => lost)]);
        if (answered.answer !== LOST || !mayRepeat) return answered;
        await new Promise<void>((resolve) => void this.#stage.time.after(REPEAT_MS, () => resolve()));
      }
      return lost;
    } finally {
      this.open -= 1;
    }
  }
}

async function ask<T>(host: Host, send: (host: Host) => Promise<T>): Promise<Answered<T>> {
  let { incarnation } = host;
  try {
    await host.ensure();
    // What was deleted while it was made refuses the request; the next one does not.
    if (host.session.exists) ({ incarnation } = host);
    return { answer: await send(host), incarnation };
  } catch (fault) {
    if (fault instanceof EngineError) return { answer: fault, incarnation };
    // The client gets status 500, or no answer.
    if (fault instanceof HostGone || fault instanceof DiskFailure) return { answer: LOST, incarnation };
    throw fault;
  }
}

function codeOf(answer: unknown): string {
  return answer instanceof EngineError ? answer.code : 'accepted';
}

/** Pages of a fork, whose reads may fail. */
async function* readBy<Page>({ life }: Host, iterable: AsyncIterable<Page>): AsyncGenerator<Page> {
  const pages = iterable[Symbol.asyncIterator]();
  try {
    for (;;) {
      life.forkPages += 1;
      const { done, value } = await pages.next().finally(() => (life.forkPages -= 1));
      if (done === true) return;
      yield value;
    }
  } finally {
    await pages.return?.();
  }
}

async function* pieces(text: string, chars: number): AsyncGenerator<string> {
  for (let at = 0; at < text.length; at += chars) {
    yield text.slice(at, at + chars);
    await Promise.resolve();
  }
}

const isOpen = (status: string): boolean => status === 'queued' || status === 'running' || status === 'waiting';
