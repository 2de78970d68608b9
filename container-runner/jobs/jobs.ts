/**
 * Admits and runs jobs (R8): bounded concurrency, a bounded queue, one execution per id.
 *
 * Owns the running and queued jobs. Does not own their records (the ledger) and their processes (the sandbox).
 * Invariants:
 * 1. At most `operatorLimits.running` run and `operatorLimits.queued` wait; a share more may wait for sessions that have no other job
 *    waiting (`#admit`). Others are rejected before anything is recorded.
 * 2. Queued jobs start in fair order among tenants and sessions (fair-queue.ts).
 * 3. No tenant can use the whole capacity, of running or of queued jobs (fair-share.ts).
 * 4. Every accepted job ends in the ledger exactly once, whatever happens to its sandbox. If the ledger cannot be
 *    written, the end is kept in memory and retried.
 */
import { createHash } from 'node:crypto';

import type { Logger } from 'pino';

import { isAllowed } from '../images/image-name.ts';
import { BuildFailure } from '../images/tool-images.ts';
import { FairQueue } from './fair-queue.ts';
import { type Program, programOf, withTrace, withWorkspace } from './job-data.ts';
import type { JobRequest, Outcome } from './job.ts';
import type { JobRecord, Ledger } from '../ledger/ledger.ts';
import { LedgerError } from '../ledger/ledger-error.ts';
import { limits } from '../limits.ts';
import { type OperatorLimits, requireWithinLimits } from '../operator-limits.ts';
import { RunnerError } from '../problem.ts';
import type { Prewarmer } from '../prewarm.ts';
import { hasCapacity } from '../fair-share.ts';
import type { SandboxRegistry } from '../sandbox/registry.ts';
import type { Sandbox, SandboxLevel, SandboxProcess } from '../sandbox/sandbox.ts';
import { supervise } from '../supervise.ts';
import { recordedTrace, type TracedJob, traceparentOfProgram } from '../telemetry/job-trace.ts';
import { formatTraceparent, type SpanContext } from '../telemetry/trace-context.ts';
import type { FileCache } from '../workspace/file-cache.ts';
import { JobWorkspace } from '../workspace/job-workspace.ts';
import { UNCHANGED } from '../workspace/receiver.ts';

interface Entry {
  readonly id: string;
  /** Null if there is only one. */
  readonly tenant: string | null;
  readonly session: string;
  readonly sandbox: Sandbox;
  readonly program: Program;
  /** Null: the program has none. */
  readonly workspace: JobWorkspace | null;
  readonly outputBytes: number;
  readonly stop: AbortController;
  /** It did not start at once. */
  hasWaited: boolean;
  /** When its program started; null: not yet. */
  preparedAt: number | null;
}

/** Header of the answers to `PUT /jobs/{id}`: the load, by which the Worker chooses among runners (R7). */
export const LOAD_HEADER = 'cortex-load';

export interface JobCounts {
  readonly running: number;
  readonly queued: number;
  /** Running jobs by the level of their sandbox. */
  readonly inUse: ReadonlyMap<SandboxLevel, number>;
}

export class Jobs {
  readonly #ledger: Ledger;
  readonly #sandboxes: SandboxRegistry;
  readonly #files: FileCache;
  readonly #log: Logger;
  /** Images that jobs may name, as patterns. */
  readonly #images: readonly string[];
  readonly #prewarmer: Prewarmer;
  readonly #operatorLimits: OperatorLimits;
  readonly #killGraceMs: number;
  readonly #exportsSpans: boolean;
  readonly #now: () => number;
  readonly #queue = new FairQueue<Entry>();
  readonly #running = new Map<string, { readonly entry: Entry; readonly done: Promise<void> }>();
  readonly #onEnd: (job: JobRecord) => void;
  /** Ends that could not be written yet; few, because jobs end at once when the disk is full. */
  readonly #unwritten: { readonly entry: Entry; readonly outcome: Outcome }[] = [];
  #retry: NodeJS.Timeout | undefined;
  #stopping = false;

  constructor(options: {
    readonly ledger: Ledger;
    readonly sandboxes: SandboxRegistry;
    /** The cache of the files of workspaces. */
    readonly files: FileCache;
    readonly images: readonly string[];
    readonly prewarmer: Prewarmer;
    readonly operatorLimits: OperatorLimits;
    readonly log: Logger;
    /** Time between TERM and KILL. */
    readonly killGraceMs: number;
    /** The runner exports the spans of jobs (O1). */
    readonly exportsSpans?: boolean;
    /** Epoch milliseconds. */
    readonly now: () => number;
    /** Called for every job that has ended. */
    readonly onEnd?: (job: JobRecord) => void;
  }) {
    this.#ledger = options.ledger;
    this.#sandboxes = options.sandboxes;
    this.#files = options.files;
    this.#log = options.log;
    this.#images = options.images;
    this.#prewarmer = options.prewarmer;
    this.#operatorLimits = options.operatorLimits;
    this.#killGraceMs = options.killGraceMs;
    this.#exportsSpans = options.exportsSpans ?? false;
    this.#now = options.now;
    this.#onEnd = options.onEnd ?? (() => undefined);
  }

  get counts(): JobCounts {
    const inUse = new Map<SandboxLevel, number>();
    for (const { entry } of this.#running.values()) {
      const { level } = entry.sandbox;
      inUse.set(level, (inUse.get(level) ?? 0) + 1);
    }
    return { running: this.#running.size, queued: this.#queue.size, inUse };
  }

  /** `running=8, queued=20, max_running=8` */
  get load(): string {
    return `running=${this.#running.size}, queued=${this.#queue.size}, max_running=${this.#operatorLimits.running}`;
  }

  /**
   * Accepts a job, or finds an accepted one with the id.
   *
   * @param trace span that sent the job; only that of the request that creates it counts
   * @returns the job's record, and whether this request created it
   * @throws RunnerError `id_conflict`, `invalid_request`, `unsupported`, `busy`, `missing_files`, `stopping`
   */
  async submit(
    id: string,
    request: JobRequest,
    tenant: string | null = null,
    trace: SpanContext | null = null,
  ): Promise<{ readonly record: JobRecord; readonly created: boolean }> {
    // Without its files: a job that is submitted again after a crash of its host may have other ones by then.
    const { workspace: given, ...hashed } = request;
    const requestHash = createHash('sha256').update(JSON.stringify(hashed)).digest('base64url');
    const accepted = this.#accepted(id, requestHash);
    if (accepted !== null) return { record: accepted, created: false };
    const traced: TracedJob = {
      id,
      createdAt: this.#now(),
      traceparent: trace === null ? null : formatTraceparent(trace),
    };
    requireWithinLimits(request.limits, this.#operatorLimits);
    const program = programOf(request);
    const sandbox = this.#sandboxFor(program, request);
    const who = { tenant, session: request.session };
    this.#admit(who);
    let workspace: JobWorkspace | null = null;
    if (given !== undefined) workspace = await JobWorkspace.take(this.#files, request.session, given);
    try {
      // a check of files takes time: another request may have added the job, or taken the last place
      const added = this.#accepted(id, requestHash);
      if (added !== null) {
        workspace?.release();
        return { record: added, created: false };
      }
      this.#admit(who);
      const spansDue = this.#exportsSpans && recordedTrace(traced) !== null;
      this.#ledger.add({ ...traced, session: request.session, kind: request.kind, requestHash, spansDue });
    } catch (fault) {
      workspace?.release();
      throw fault;
    }
    const traceparent = traceparentOfProgram(traced, this.#exportsSpans);
    const entry: Entry = {
      id,
      tenant,
      session: request.session,
      sandbox,
      program: traceparent === null ? program : withTrace(program, traceparent),
      workspace,
      outputBytes: request.limits.output_bytes,
      stop: new AbortController(),
      hasWaited: false,
      preparedAt: null,
    };
    this.#queue.push(entry);
    this.#startNext();
    entry.hasWaited = this.#queue.find(id) !== undefined;
    const record = this.#ledger.job(id);
    if (record === null) throw new Error(`The ledger has no job ${JSON.stringify(id)}`);
    return { record, created: true };
  }

  /** The accepted job with this id, or null if a new one may be accepted. @throws RunnerError `id_conflict`, `stopping` */
  #accepted(id: string, requestHash: string): JobRecord | null {
    const known = this.#ledger.job(id);
    if (known !== null && known.requestHash !== '' && known.requestHash !== requestHash) {
      throw new RunnerError('id_conflict', `The id ${JSON.stringify(id)} was used for a job with another body`);
    }
    if (known === null && this.#stopping) {
      throw new RunnerError('stopping', 'The runner is stopping and accepts no new jobs', {
        'retry-after': String(limits.stoppingRetrySeconds),
      });
    }
    return known;
  }

  /** Kills a job; an unknown id will never start. */
  kill(id: string): void {
    const running = this.#running.get(id);
    if (running !== undefined) {
      running.entry.stop.abort();
      return;
    }
    const entry = this.#queue.find(id);
    if (entry === undefined) {
      this.#ledger.recordKilled(id);
      return;
    }
    this.#queue.remove(entry);
    this.#finish(entry, { end: 'killed', exitCode: null, truncated: false });
  }

  get draining(): boolean {
    return this.#stopping;
  }

  /** Accepts no new jobs; resolves when all accepted jobs have ended. */
  async drain(): Promise<void> {
    this.#stopping = true;
    while (this.#running.size > 0) await Promise.all([...this.#running.values()].map(({ done }) => done));
  }

  /** Accepts no new jobs and kills the running ones; resolves when all have ended. */
  async stop(): Promise<void> {
    this.#stopping = true;
    for (const entry of this.#queue.clear()) this.#finish(entry, { end: 'killed', exitCode: null, truncated: false });
    const running = [...this.#running.values()];
    for (const { entry } of running) entry.stop.abort();
    await Promise.all(running.map(({ done }) => done));
    this.#writeEnds();
    clearTimeout(this.#retry);
  }

  /**
   * A session without queued jobs may also use the reserve, so that a session that fills the queue does not keep others
   * out.
   *
   * @throws RunnerError `busy` if all job slots and the queue are full
   */
  #admit(who: { readonly tenant: string | null; readonly session: string }): void {
    const { tenant } = who;
    const { running, queued } = this.#operatorLimits;
    const waits = this.#queue.waitingOf(tenant);
    if (waits === 0 && this.#mayRun(tenant)) return;
    const isFirst = this.#queue.waitingOfSession(who) === 0;
    const most = queued + (isFirst ? Math.ceil(queued * limits.queueReserve) : 0);
    if (hasCapacity(tenant, { own: waits, used: this.#queue.size, most })) return;
    const own = tenant === null ? '' : `, ${this.#queue.runningOf(tenant)} and ${waits} of them for this namespace`;
    throw new RunnerError(
      'busy',
      `${this.#running.size} jobs are running and ${this.#queue.size} are queued${own} (maximum ${running} and ${queued}${tenant === null ? '' : '; a namespace must leave as much capacity free as it uses'})`,
      { 'retry-after': String(limits.retryAfterSeconds), [LOAD_HEADER]: this.load },
    );
  }

  #mayRun(tenant: string | null): boolean {
    return hasCapacity(tenant, {
      own: this.#queue.runningOf(tenant),
      used: this.#running.size,
      most: this.#operatorLimits.running,
    });
  }

  #startNext(): void {
    for (;;) {
      const entry = this.#queue.take((tenant) => this.#mayRun(tenant));
      if (entry === undefined) return;
      const done = this.#run(entry).finally(() => {
        this.#running.delete(entry.id);
        this.#queue.ended(entry);
        this.#startNext();
      });
      this.#running.set(entry.id, { entry, done });
    }
  }

  async #run(entry: Entry): Promise<void> {
    const { id, session, sandbox, program, workspace, stop } = entry;
    let outcome: Outcome;
    let unkept = false;
    try {
      this.#ledger.start(id, session, sandbox.level);
      // its files were checked when it was accepted
      const damaged = entry.hasWaited ? ((await workspace?.damaged()) ?? null) : null;
      if (damaged !== null) {
        this.#tell(entry, `The file ${JSON.stringify(damaged)} was lost in the cache of the runner\n`);
        this.#finish(entry, { end: 'lost', exitCode: null, truncated: false });
        return;
      }
      const process = await this.#begin(entry);
      entry.preparedAt = this.#now();
      outcome = await supervise(process, {
        timeoutMs: program.launch.timeoutMs,
        killGraceMs: this.#killGraceMs,
        outputBytes: entry.outputBytes,
        signal: stop.signal,
        output: (stream, text) => {
          try {
            this.#ledger.output(id, session, stream, text);
          } catch (fault) {
            // readers cannot get output that is not stored, so the job ends as lost
            if (!unkept) this.#log.error({ job: id, reason: messageOf(fault) }, 'the ledger cannot be written');
            unkept = true;
            stop.abort();
          }
        },
      });
      if (unkept) outcome = { end: 'lost', exitCode: null, truncated: true };
      if (workspace !== null && outcome.end === 'exited') outcome = { ...outcome, workspace: workspace.result() };
    } catch (fault) {
      if (fault instanceof LedgerError) {
        this.#log.error({ job: id, reason: fault.message }, 'the ledger cannot be written');
        this.#finish(entry, { end: 'lost', exitCode: null, truncated: false });
        return;
      }
      // the program never ran: treated like a program that could not be started
      if (fault instanceof BuildFailure && !stop.signal.aborted) {
        this.#tell(entry, fault.message);
        this.#finish(entry, { end: 'build_failed', exitCode: null, truncated: false });
        return;
      }
      const message = messageOf(fault);
      this.#log.error({ job: id, sandbox: sandbox.level, reason: message }, 'a sandbox did not start');
      this.#tell(entry, `The ${sandbox.level} sandbox did not start: ${message}\n`);
      outcome = {
        end: stop.signal.aborted ? 'killed' : 'exited',
        exitCode: stop.signal.aborted ? null : 126,
        truncated: false,
        ...(workspace === null || stop.signal.aborted ? {} : { workspace: UNCHANGED }),
      };
    }
    this.#finish(entry, outcome);
  }

  #sandboxFor(program: Program, { sandbox }: JobRequest): Sandbox {
    if (program.type === 'source') return this.#sandboxes.choose(program.launch.interpreter, sandbox);
    if (program.type === 'image' && !isAllowed(program.launch.image, this.#images)) {
      throw new RunnerError(
        'unsupported',
        `The operator does not allow the image ${program.launch.image} (allowed: ${this.#images.join(', ')})`,
      );
    }
    return this.#sandboxes.chooseForImage(sandbox);
  }

  async #begin(entry: Entry): Promise<SandboxProcess> {
    const { sandbox, stop } = entry;
    const program = entry.workspace === null ? entry.program : withWorkspace(entry.program, entry.workspace.launch());
    if (program.type === 'source') {
      const held = await this.#prewarmer.take(entry.session, sandbox, program.launch.interpreter);
      return await (held ?? sandbox).start(program.launch);
    }
    if (sandbox.startImage === undefined || sandbox.buildImage === undefined) throw new Error('it cannot run images');
    if (program.type === 'image') {
      const held = await this.#prewarmer.takeImage(entry.session, sandbox, program.launch.image);
      return await (held?.start(program.launch) ?? sandbox.startImage(program.launch));
    }
    const tell = (text: string): void => {
      if (!stop.signal.aborted) this.#tell(entry, text, 'build');
    };
    const building = sandbox.buildImage(program.build, tell, stop.signal);
    const image = await Promise.race([building, aborted(stop.signal)]);
    return await sandbox.startImage({ ...program.launch, image });
  }

  #tell({ id, session }: Entry, text: string, stream: 'stderr' | 'build' = 'stderr'): void {
    try {
      this.#ledger.output(id, session, stream, text);
    } catch (fault) {
      this.#log.error({ job: id, reason: messageOf(fault) }, 'the ledger cannot be written');
    }
  }

  #finish(entry: Entry, outcome: Outcome): void {
    entry.workspace?.release();
    if (this.#write(entry, outcome)) return;
    this.#unwritten.push({ entry, outcome });
    this.#retryLater();
  }

  #retryLater(): void {
    clearTimeout(this.#retry);
    this.#retry = setTimeout(() => {
      this.#writeEnds();
      if (this.#unwritten.length > 0) this.#retryLater();
    }, limits.ledgerRetryMs).unref();
  }

  #writeEnds(): void {
    for (const { entry, outcome } of this.#unwritten.splice(0)) {
      if (!this.#write(entry, outcome)) this.#unwritten.push({ entry, outcome });
    }
  }

  /** False if the ledger cannot be written; the next start marks the unfinished job as lost. */
  #write({ id, session, preparedAt }: Entry, outcome: Outcome): boolean {
    // names of files are contents
    const { workspace, ...logged } = outcome;
    try {
      this.#ledger.finish(id, session, outcome, preparedAt);
      const record = this.#ledger.job(id);
      if (record === null) return true;
      this.#onEnd(record);
      const { kind, sandbox: level, startedAt, endedAt } = record;
      const ms = startedAt === null || endedAt === null ? null : endedAt - startedAt;
      const files =
        workspace === undefined ? {} : { changes: workspace.changes.length, skipped: workspace.skipped_count };
      const trace = this.#exportsSpans || record.traceparent !== null ? recordedTrace(record) : null;
      const traced = trace === null ? {} : { trace_id: trace.traceId };
      this.#log.info({ job: id, session, kind, sandbox: level, ...logged, ...files, ms, ...traced }, 'job ended');
      return true;
    } catch (fault) {
      this.#log.error({ job: id, ...logged, reason: messageOf(fault) }, 'the ledger cannot be written');
      return false;
    }
  }
}

/** Rejects when the signal aborts. */
function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const stop = (): void => reject(new Error('stopped while its image was being built'));
    signal.addEventListener('abort', stop, { once: true });
    if (signal.aborted) stop();
  });
}

function messageOf(fault: unknown): string {
  return fault instanceof Error ? fault.message : String(fault);
}
