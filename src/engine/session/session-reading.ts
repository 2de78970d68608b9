/**
 * Reads a session for one request, in slices, so that other work of the thread can run in between.
 *
 * Owns the order in which a session is read and sent. Does not own the journal or HTTP.
 *
 * Invariants:
 *  1. It shows the session as of its creation: later events are left out, as are later changes of runs. Events never
 *     change, so they may be read later.
 *  2. One turn reads at most `limits.sliceChars`, or one event.
 *  3. Sent data is not kept: neither outputs of actions nor more than one event of an export.
 *  4. With a view, everything that it returns is a part of what the view leaves.
 */
import type { Artifact, ArtifactEntry, Download } from '../../domain/artifact.ts';
import { EngineError, unknownSession } from '../../domain/errors.ts';
import { encodeData } from '../../domain/event.ts';
import type { EventOf, EventType, SessionEvent } from '../../domain/event.ts';
import type { Json } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import type { ResolvedAgent } from '../../domain/manifests/resolved.ts';
import type { SeededMessage } from '../../domain/seeded.ts';
import type { RunRecord, SessionRecord } from '../../domain/session.ts';
import type { ThreadShare } from '../../domain/fair-queue.ts';
import { Slices } from '../../domain/work.ts';

import { artifactsOf, outputJson, safeName, servedType } from '../../journal/artifacts.ts';
import { eventOfArtifact } from '../../journal/run-id.ts';
import type { LazyArtifact } from '../../journal/artifacts.ts';
import type { Journal } from '../../journal/journal.ts';
import { readTranscript } from '../generation/conversation.ts';
import { outgoingPrompt } from '../generation/prompt-record.ts';
import { shownParameters } from '../actions/shown-parameters.ts';
import { RunAnswer } from '../../view/answer.ts';
import { RunFold } from '../../view/result.ts';
import type { RunResult } from '../../view/result.ts';
import { OutgoingText } from './outgoing-text.ts';
import { SeededCalls } from './seeded-calls.ts';
import type { SessionFiles } from './session-files.ts';
import { exportLines, outgoingVariables, variablesJson } from './session-export.ts';
import type { ExportOptions } from './session-export.ts';
import type { VariablesSnapshot } from './session-variables.ts';
import type { SessionView } from './session-view.ts';

/** The bytes of the session's files. */
export type StoredBytes = Pick<SessionFiles, 'read' | 'hold'>;

export class SessionReading {
  readonly slices: Slices;
  /** What the reader may have; null: everything (T1). */
  readonly view: SessionView | null;
  readonly #journal: Journal;
  readonly #record: SessionRecord;
  readonly #files: StoredBytes;
  readonly #makeOutgoing: () => OutgoingText;
  #madeOutgoing: OutgoingText | null = null;
  readonly #isGone: () => boolean;
  readonly #until: number;

  constructor(given: {
    readonly journal: Journal;
    readonly record: SessionRecord;
    readonly files: StoredBytes;
    /** Redacts what is not an event (C9). Default: nothing. */
    readonly outgoing?: () => OutgoingText;
    readonly share: ThreadShare;
    /** Whether the session is being deleted: then nothing more is read. */
    readonly isGone: () => boolean;
    /** Default: everything. */
    readonly view?: SessionView | null;
  }) {
    this.view = given.view ?? null;
    this.slices = new Slices(given.share);
    this.#journal = given.journal;
    this.#record = given.record;
    this.#files = given.files;
    this.#makeOutgoing = given.outgoing ?? (() => new OutgoingText(null));
    this.#isGone = given.isGone;
    this.#until = given.journal.lastSeq;
  }

  /** Redacts what is not an event (C9). Made on first use: most readings have events only. */
  get outgoing(): OutgoingText {
    return (this.#madeOutgoing ??= this.#makeOutgoing());
  }

  /** A run's answer; for a completed run, without reading all of its events. */
  async answer(run: RunRecord): Promise<string> {
    const last = run.status === 'completed' && run.lastSeq !== null ? this.#event(run.lastSeq) : null;
    const response = last?.type === 'agent_completed' ? last.data.response : null;
    if (response !== null) {
      await this.#took(response.length + limits.eventChars);
      return response;
    }
    const answer = new RunAnswer();
    const until = Math.min(endOf(run) ?? Infinity, this.#until);
    for (let after = run.firstSeq - 1; after < until;) {
      const { found, next, chars } = this.#journal.slice({
        run: run.run,
        after,
        until,
        only: RunAnswer.EVENTS,
      });
      this.#add(found, answer);
      after = next;
      await this.#took(chars);
    }
    return answer.text;
  }

  /** A run as one JSON document (`RunResult`), in pieces. */
  async *result(run: RunRecord): AsyncGenerator<string> {
    const fold = new RunFold(run.status);
    await this.#each(run, fold);
    const { responses, actions, response, outputsSeq, pendingSeqs, ...rest } = fold.outline;
    const { runId, status, startedAt, endedAt } = run;
    yield `${open({ session_id: this.#record.session_id, run_id: runId, status, response })},"responses":[`;
    await this.#took(response.length);
    for (const [index, { seq, final }] of responses.entries()) {
      const { content } = this.#required(seq, 'response_completed').data;
      yield `${index === 0 ? '' : ','}${JSON.stringify({ content, final })}`;
      await this.#took(content.length + limits.eventChars);
    }
    yield '],"actions":[';
    for (const [index, { action, outputSeq, parametersSeq }] of actions.entries()) {
      const { id, name, type, mode, status: end, ...more } = action;
      const output = outputSeq === null ? 'null' : outputJson(this.#required(outputSeq, 'action_completed'));
      const head = open({ id, name, type, mode, status: end, ...(await this.#parameters(parametersSeq)) });
      const text = `${head},"output":${output},${JSON.stringify(more).slice(1)}`;
      yield `${index === 0 ? '' : ','}${text}`;
      await this.#took(text.length + limits.eventChars);
    }
    yield ']';
    if (this.#record.workflow !== undefined) {
      const outputs = outputsSeq === null ? 'null' : outputJson(this.#required(outputsSeq, 'action_completed'));
      yield `,"outputs":${outputs}`;
      await this.#took(outputs.length);
    }
    yield* this.#pending(pendingSeqs);
    yield `,${JSON.stringify({ ...rest, started_at: startedAt, ended_at: endedAt }).slice(1)}`;
  }

  /** The open calls of client tools as members of the document: the oldest ones, and the number of the others. */
  async *#pending(seqs: readonly number[]): AsyncGenerator<string> {
    if (seqs.length === 0) return;
    let shown = 0;
    let left: number = limits.pendingCallChars;
    yield ',"pending":[';
    for (const seq of seqs.slice(0, limits.pendingCalls)) {
      const text = JSON.stringify(this.#required(seq, 'client_tool_called').data);
      if (text.length > left) break;
      yield `${shown === 0 ? '' : ','}${text}`;
      left -= text.length;
      shown += 1;
      await this.#took(text.length + limits.eventChars);
    }
    yield seqs.length === shown ? ']' : `],"pending_more":${seqs.length - shown}`;
  }

  /** The events of these types of a run, oldest first. */
  async *events(run: RunRecord, only: readonly EventType[]): AsyncGenerator<SessionEvent> {
    const until = Math.min(endOf(run) ?? Infinity, this.#until);
    for (let after = run.firstSeq - 1; after < until;) {
      const { found, next, chars } = this.#journal.slice({ run: run.run, after, until, only });
      for (const event of found) {
        // A slice has no outputs.
        const isCompleted = event.type === 'action_completed';
        const whole = isCompleted ? this.#required(event.seq, 'action_completed') : this.#seen(event);
        if (whole === null) continue;
        yield whole;
        if (isCompleted) await this.#took(encodeData(whole).length);
      }
      after = next;
      await this.#took(chars);
    }
  }

  /** The messages that a run sent to the model, in pieces (`PromptDocument`). */
  async *prompt(run: RunRecord): AsyncGenerator<string> {
    yield `${open({ session_id: this.#record.session_id, run_id: run.runId })},"generations":[`;
    const stored = new Set<number>();
    for (const { run: number, iteration, at, request, messages, chars } of this.#journal.prompts.all()) {
      await this.#took(chars);
      if (number > run.run) break;
      if (number !== run.run) continue;
      const shown = outgoingPrompt(messages, (value) => this.outgoing.json(value));
      const text = JSON.stringify({ iteration, sent_at: at, ...request, messages: shown });
      yield `${stored.size === 0 ? '' : ','}${text}`;
      stored.add(iteration);
      await this.#took(text.length);
    }
    yield `],"dropped":${(await this.#modelCalls(run)) - stored.size}}`;
  }

  /** Number of generations of a run that a model wrote; 0 for posted text and workflows. */
  async #modelCalls(run: RunRecord): Promise<number> {
    let isModel = false;
    let calls = 0;
    const until = Math.min(endOf(run) ?? Infinity, this.#until);
    for (let after = run.firstSeq - 1; after < until;) {
      const only: EventType[] = ['agent_started', 'iteration_started'];
      const { found, next, chars } = this.#journal.slice({ run: run.run, after, until, only });
      for (const event of found) {
        if (event.type === 'agent_started') isModel = event.data.source === 'model';
        else calls += 1;
      }
      after = next;
      await this.#took(chars);
    }
    return isModel ? calls : 0;
  }

  /** Why a run failed; null if it did not. */
  failure(run: RunRecord): RunResult['error'] {
    const end = this.#journal.runFailure(run);
    const seen = end === null ? null : this.#seen(end);
    return seen?.type === 'agent_failed' ? seen.data.error : null;
  }

  /** The result of a run as values. `actions`: the number of all actions; `outputs`: a workflow's, else null. */
  async outcome(
    run: RunRecord,
  ): Promise<Pick<RunResult, 'response' | 'error' | 'usage'> & { readonly actions: number; readonly outputs: Json }> {
    const fold = new RunFold(run.status);
    await this.#each(run, fold);
    const { response, error, usage, outputsSeq } = fold.outline;
    const outputs = outputsSeq === null ? null : this.#required(outputsSeq, 'action_completed').data.output;
    return { response, error, usage, actions: fold.actionCount, outputs };
  }

  /** A JSON document with a list between other members, in pieces. */
  async *list(before: object, name: string, items: readonly object[], behind: object): AsyncGenerator<string> {
    yield `${open(before)},${JSON.stringify(name)}:[`;
    for (const [index, item] of items.entries()) {
      const text = JSON.stringify(item);
      yield `${index === 0 ? '' : ','}${text}`;
      await this.#took(text.length);
    }
    yield `],${JSON.stringify(behind).slice(1)}`;
  }

  /** Whether an action of the run called a relic. */
  async calledRelic(run: RunRecord): Promise<boolean> {
    for (let after = run.firstSeq - 1; after < this.#until;) {
      const { found, next, chars } = this.#journal.slice({
        run: run.run,
        after,
        until: this.#until,
        only: ['action_queued'],
        mentioning: '"type":"relic"',
      });
      if (found.some(({ type, data }) => type === 'action_queued' && data.type === 'relic')) return true;
      after = next;
      await this.#took(chars);
    }
    return false;
  }

  /**
   * Everything of the session that is durable, as JSON Lines: its record, its seeded history, its runs, the files of its
   * messages and of its workspace, all events in order, its variables.
   */
  export(variables: VariablesSnapshot, options: ExportOptions = {}): AsyncGenerator<string> {
    const lines = exportLines(
      {
        journal: this.#journal,
        record: this.#record,
        files: this.#files,
        outgoing: this.outgoing,
        until: this.#until,
        count: (chars) => this.slices.count(chars),
        took: (chars) => this.#took(chars),
        view: this.view,
      },
      variables,
      options,
    );
    const hashes = new Set(this.#journal.workspace.list().map(({ sha256 }) => sha256));
    return held(lines, () => this.#files.hold(hashes));
  }

  /** `GET …/state`, in pieces: the variables under both of their names. */
  async *state(variables: VariablesSnapshot): AsyncGenerator<string> {
    yield `${open({ session_id: this.#record.session_id })},"variables":`;
    const shown = outgoingVariables(variables, this.outgoing);
    yield* variablesJson(shown, (chars) => this.#took(chars));
    yield ',"state":';
    yield* variablesJson(shown, (chars) => this.#took(chars));
    yield '}';
  }

  /** The messages of the seeded history before the number `before`, newest first. */
  async *seeded(before?: number): AsyncGenerator<{ readonly id: number; readonly message: SeededMessage }> {
    const calls = new SeededCalls(this.#journal.seeded);
    for (const { id, message, chars } of this.#journal.seeded.newestFirst(before)) {
      const seen = this.view?.seeded(message, calls.nameOf(id, message)) ?? message;
      yield { id, message: this.outgoing.seeded(seen) };
      await this.#took(chars + limits.eventChars);
    }
  }

  /** The artifacts of one event. */
  artifactsOf(event: SessionEvent): LazyArtifact[] {
    return artifactsOf(event);
  }

  /** The artifacts of completed actions after the event `after`, oldest first; `next` is the start of the next page. */
  async artifacts(
    after: number,
  ): Promise<{ readonly artifacts: readonly ArtifactEntry[]; readonly next: number | null }> {
    const artifacts: ArtifactEntry[] = [];
    let sizeBytes = 0;
    let last = after;
    for (let searched = after; searched < this.#until;) {
      const { found, next, chars } = this.#journal.history.outcomesWithArtifacts(searched, this.#until);
      for (const seq of found) {
        if (artifacts.length >= limits.pageRows || sizeBytes > limits.artifactPageBytes) {
          return { artifacts, next: last };
        }
        for (const { entry } of await this.#artifactsAt(seq)) {
          sizeBytes += entry.size_bytes;
          artifacts.push(entry);
        }
        last = seq;
      }
      searched = next;
      await this.#took(chars);
    }
    return { artifacts, next: null };
  }

  /** @throws EngineError `unknown_artifact` */
  async artifact(id: string): Promise<Artifact> {
    const seq = eventOfArtifact(id);
    const artifacts = seq === null ? [] : await this.#artifactsAt(seq);
    const found = artifacts.find(({ entry }) => entry.id === id);
    if (found !== undefined) return { ...found.entry, bytes: found.read() };
    throw new EngineError('unknown_artifact', `This session has no artifact "${id.slice(0, limits.excerptChars)}"`);
  }

  /**
   * A file of a message, by its SHA-256.
   *
   * @throws EngineError `unknown_content`, also if its bytes are lost; `storage_unavailable`
   */
  async content(sha256: string): Promise<Download> {
    const shown = sha256.slice(0, 64);
    const file = this.#journal.blobs.file(sha256);
    if (file === null) throw new EngineError('unknown_content', `No message of this session has the file "${shown}"`);
    await this.#took(file.sizeBytes * limits.attachmentByteSteps);
    const bytes = await this.#files.read(sha256);
    if (bytes === null) throw new EngineError('unknown_content', `The bytes of the file "${shown}" are lost`);
    const name = safeName(file.name ?? undefined) ?? `file-${sha256.slice(0, 12)}`;
    return { id: sha256, name, content_type: servedType(file.mediaType ?? undefined, false), bytes };
  }

  /** The completed runs as training examples, one JSON text per line. */
  async *transcript(resolved: ResolvedAgent, redact: (text: string) => string): AsyncGenerator<string> {
    const safe = (text: string): string => this.outgoing.text(redact(text));
    for await (const line of readTranscript(this.#journal, resolved, safe, (chars) => this.#took(chars))) {
      yield `${line}\n`;
    }
  }

  /** The artifacts of one event. Yields to other work before a long event is searched. */
  async #artifactsAt(seq: number): Promise<LazyArtifact[]> {
    // The data is scanned three times.
    await this.#took(this.#journal.dataBytes(seq) * 3);
    const event = this.#event(seq);
    return event === null ? [] : artifactsOf(event);
  }

  /** Folds the part of a run that belongs to this reading. */
  async #each(run: RunRecord, fold: RunFold): Promise<void> {
    const end = endOf(run);
    for (let after = run.firstSeq - 1; after < this.#until;) {
      // fire_and_forget actions end after their run; nothing follows after the last of them.
      if (end !== null && after >= end && fold.settled) return;
      const { found, next, chars } = this.#journal.slice({ run: run.run, after, until: this.#until });
      this.#add(found, fold);
      after = next;
      await this.#took(chars);
    }
  }

  /** The parameters in an event, for the document of a run. */
  async #parameters(seq: number | null): Promise<Pick<RunResult['actions'][number], 'parameters' | 'parameters_cut'>> {
    if (seq === null) return { parameters: null };
    await this.#took(this.#journal.dataBytes(seq));
    const event = this.#event(seq);
    switch (event?.type) {
      case 'action_queued':
        return shownParameters(event.data.parameters);
      case 'action_started':
      case 'action_rejected': {
        const { parameters = null, parameters_cut: isCut } = event.data;
        return { parameters, ...(isCut === true ? { parameters_cut: true } : {}) };
      }
      default:
        return { parameters: null };
    }
  }

  /** The part of an event that the reader may have; null: nothing. */
  #seen(event: SessionEvent): SessionEvent | null {
    return this.view === null ? event : this.view.event(event);
  }

  #add(events: readonly SessionEvent[], fold: Pick<RunFold, 'add'>): void {
    for (const event of events) {
      const seen = this.#seen(event);
      if (seen !== null) fold.add(seen);
    }
  }

  #event(seq: number): SessionEvent | null {
    const event = this.#journal.event(seq);
    return event === null ? null : this.#seen(event);
  }

  #required<T extends EventType>(seq: number, type: T): EventOf<T> {
    const event = this.#event(seq);
    if (event?.type !== type) throw new Error(`event ${seq} is not ${type}`);
    return event as EventOf<T>;
  }

  /** @throws EngineError `unknown_session` if it was deleted in the meantime */
  async #took(chars: number): Promise<void> {
    this.slices.count(chars);
    if (!this.slices.full) return;
    await this.slices.pause();
    if (this.#isGone()) throw unknownSession();
  }
}

/** The last event of a run; null if more may follow, because the run is active or waits for a person or a client. */
function endOf({ status, lastSeq }: RunRecord): number | null {
  return status === 'waiting' ? null : lastSeq;
}

/** An object without its closing brace: more members follow. */
function open(members: object): string {
  return JSON.stringify(members).slice(0, -1);
}

/** @param hold keeps what the lines need until its result is called */
async function* held(lines: AsyncIterable<string>, hold: () => () => void): AsyncGenerator<string> {
  const release = hold();
  try {
    yield* lines;
  } finally {
    release();
  }
}
