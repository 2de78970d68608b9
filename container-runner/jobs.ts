/**
 * Admission and running (R8): bounded places, a bounded queue, one execution per id.
 *
 * Owns: which jobs run and wait. Does not own: their records (the ledger), their processes (the sandbox).
 * Invariants:
 * 1. At most `maxima.running` run and `maxima.queued` wait; what is past it is refused before anything is recorded.
 * 2. Waiting jobs start in the order in which they came.
 * 3. Every accepted job ends in the ledger exactly once, whatever happens to its sandbox.
 */
import { createHash } from 'node:crypto';

import type { Logger } from 'pino';

import { isAllowed } from './images/image-name.ts';
import { BuildFailure } from './images/tool-images.ts';
import { type Program, programOf } from './job-data.ts';
import type { JobRequest, Outcome } from './job.ts';
import type { JobRecord, Ledger } from './ledger.ts';
import { limits } from './limits.ts';
import { type Maxima, refuseTooMuch } from './maxima.ts';
import { Refusal } from './problem.ts';
import type { Prewarmer } from './prewarm.ts';
import type { SandboxRegistry } from './sandbox/registry.ts';
import type { Sandbox, SandboxProcess } from './sandbox/sandbox.ts';
import { supervise } from './supervise.ts';

interface Entry {
  readonly id: string;
  readonly session: string;
  readonly sandbox: Sandbox;
  readonly program: Program;
  readonly outputBytes: number;
  readonly stop: AbortController;
}

export interface JobCounts {
  readonly running: number;
  readonly queued: number;
}

export class Jobs {
  readonly #ledger: Ledger;
  readonly #sandboxes: SandboxRegistry;
  readonly #log: Logger;
  /** Images that jobs may name, as patterns. */
  readonly #images: readonly string[];
  readonly #prewarmer: Prewarmer;
  readonly #maxima: Maxima;
  readonly #queue: Entry[] = [];
  readonly #running = new Map<string, { readonly entry: Entry; readonly done: Promise<void> }>();
  readonly #onEnd: (job: JobRecord) => void;
  #stopping = false;

  constructor(options: {
    readonly ledger: Ledger;
    readonly sandboxes: SandboxRegistry;
    readonly images: readonly string[];
    readonly prewarmer: Prewarmer;
    readonly maxima: Maxima;
    readonly log: Logger;
    /** Told of every job that has ended. */
    readonly onEnd?: (job: JobRecord) => void;
  }) {
    this.#ledger = options.ledger;
    this.#sandboxes = options.sandboxes;
    this.#log = options.log;
    this.#images = options.images;
    this.#prewarmer = options.prewarmer;
    this.#maxima = options.maxima;
    this.#onEnd = options.onEnd ?? (() => undefined);
  }

  get counts(): JobCounts {
    return { running: this.#running.size, queued: this.#queue.length };
  }

  /**
   * Accepts a job, or finds it accepted before.
   *
   * @returns the job's record, and whether this request is the one that created it
   * @throws Refusal `id_conflict`, `invalid_request`, `unsupported`, `busy`, `stopping`
   */
  submit(id: string, request: JobRequest): { readonly record: JobRecord; readonly created: boolean } {
    const requestHash = createHash('sha256').update(JSON.stringify(request)).digest('base64url');
    const known = this.#ledger.job(id);
    if (known !== null) {
      if (known.requestHash !== '' && known.requestHash !== requestHash) {
        throw new Refusal('id_conflict', `The id ${JSON.stringify(id)} was used for a job with another body`);
      }
      return { record: known, created: false };
    }
    if (this.#stopping) {
      throw new Refusal('stopping', 'The runner is about to stop and takes no new jobs', {
        'retry-after': String(limits.stoppingRetrySeconds),
      });
    }
    refuseTooMuch(request.limits, this.#maxima);
    const { running, queued } = this.#maxima;
    const program = programOf(request);
    const sandbox = this.#sandboxFor(program, request);
    if (this.#running.size >= running && this.#queue.length >= queued) {
      throw new Refusal(
        'busy',
        `${this.#running.size} jobs run and ${this.#queue.length} wait (allowed: ${running} and ${queued})`,
        { 'retry-after': String(limits.retryAfterSeconds) },
      );
    }
    this.#ledger.add({ id, session: request.session, kind: request.kind, requestHash });
    this.#queue.push({
      id,
      session: request.session,
      sandbox,
      program,
      outputBytes: request.limits.output_bytes,
      stop: new AbortController(),
    });
    this.#startNext();
    const record = this.#ledger.job(id);
    if (record === null) throw new Error(`The ledger does not hold job ${JSON.stringify(id)}`);
    return { record, created: true };
  }

  /** Ends a job; one that is not known yet will never start. */
  kill(id: string): void {
    const running = this.#running.get(id);
    if (running !== undefined) {
      running.entry.stop.abort();
      return;
    }
    const index = this.#queue.findIndex((entry) => entry.id === id);
    const [entry] = index < 0 ? [] : this.#queue.splice(index, 1);
    if (entry === undefined) this.#ledger.bury(id);
    else this.#finish(entry, { end: 'killed', exitCode: null, truncated: false });
  }

  get draining(): boolean {
    return this.#stopping;
  }

  /** Takes no new jobs; resolves when those that were accepted have ended. */
  async drain(): Promise<void> {
    this.#stopping = true;
    while (this.#running.size > 0) await Promise.all([...this.#running.values()].map(({ done }) => done));
  }

  /** Takes no new jobs and ends those that run; resolves when all have ended. */
  async stop(): Promise<void> {
    this.#stopping = true;
    for (const entry of this.#queue.splice(0)) this.#finish(entry, { end: 'killed', exitCode: null, truncated: false });
    const running = [...this.#running.values()];
    for (const { entry } of running) entry.stop.abort();
    await Promise.all(running.map(({ done }) => done));
  }

  #startNext(): void {
    while (this.#running.size < this.#maxima.running) {
      const entry = this.#queue.shift();
      if (entry === undefined) return;
      const done = this.#run(entry).finally(() => {
        this.#running.delete(entry.id);
        this.#startNext();
      });
      this.#running.set(entry.id, { entry, done });
    }
  }

  async #run(entry: Entry): Promise<void> {
    const { id, session, sandbox, program, stop } = entry;
    let outcome: Outcome;
    try {
      this.#ledger.start(id, session, sandbox.level);
      const process = await this.#begin(entry);
      outcome = await supervise(process, {
        timeoutMs: program.launch.timeoutMs,
        outputBytes: entry.outputBytes,
        signal: stop.signal,
        output: (stream, text) => {
          try {
            this.#ledger.output(id, session, stream, text);
          } catch (fault) {
            // output that cannot be kept is output that nobody sees: the job is not worth going on
            this.#log.error({ job: id, reason: messageOf(fault) }, 'the ledger cannot be written');
            stop.abort();
          }
        },
      });
    } catch (fault) {
      // the program never ran: its outcome is that of one that could not be started
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
      };
    }
    this.#finish(entry, outcome);
  }

  #sandboxFor(program: Program, { sandbox }: JobRequest): Sandbox {
    if (program.kind === 'source') return this.#sandboxes.choose(program.launch.interpreter, sandbox);
    if (program.kind === 'image' && !isAllowed(program.launch.image, this.#images)) {
      throw new Refusal(
        'unsupported',
        `The operator does not allow the image ${program.launch.image} (allowed: ${this.#images.join(', ')})`,
      );
    }
    return this.#sandboxes.chooseForImage(sandbox);
  }

  async #begin(entry: Entry): Promise<SandboxProcess> {
    const { sandbox, program, stop } = entry;
    if (program.kind === 'source') {
      const held = await this.#prewarmer.take(entry.session, sandbox, program.launch.interpreter);
      return await (held ?? sandbox).start(program.launch);
    }
    if (sandbox.startImage === undefined || sandbox.buildImage === undefined) throw new Error('It runs no images');
    if (program.kind === 'image') {
      const held = await this.#prewarmer.takeImage(entry.session, sandbox, program.launch.image);
      return await (held?.start(program.launch) ?? sandbox.startImage(program.launch));
    }
    const building = sandbox.buildImage(program.build, (text) => {
      if (!stop.signal.aborted) this.#tell(entry, text, 'build');
    });
    // the build goes on for others that want the same image
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

  #finish({ id, session }: Entry, outcome: Outcome): void {
    try {
      this.#ledger.finish(id, session, outcome);
    } catch (fault) {
      // the next start finds it unfinished and calls it lost
      this.#log.error({ job: id, ...outcome, reason: messageOf(fault) }, 'the ledger cannot be written');
      return;
    }
    const record = this.#ledger.job(id);
    if (record === null) return;
    this.#onEnd(record);
    const { kind, sandbox: level, startedAt, endedAt } = record;
    const ms = startedAt === null || endedAt === null ? null : endedAt - startedAt;
    this.#log.info({ job: id, session, kind, sandbox: level, ...outcome, ms }, 'job ended');
  }
}

/** Rejects when the signal says so. */
function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const stop = (): void => reject(new Error('stopped while its image was being made'));
    signal.addEventListener('abort', stop, { once: true });
    if (signal.aborted) stop();
  });
}

function messageOf(fault: unknown): string {
  return fault instanceof Error ? fault.message : String(fault);
}
