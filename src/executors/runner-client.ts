/**
 * The runner as the Worker sees it (R1, R7): jobs are handed over with one short request each, and all
 * jobs of a session are watched over one event stream.
 *
 * Owns: what is known of the jobs that `run` was called for, and the stream of each session.
 * Does not own: the jobs themselves; they go on when this object goes away.
 * Invariants:
 * 1. `run` settles once: with the job's end, or with a `RunnerError` when the job was not taken.
 * 2. Output is reported in order and once, however often the stream is cut: events have numbers.
 * 3. A stream is open only while its session has jobs, and a moment longer for the next one.
 * 4. After an abort the runner is told to kill the job, also when it had not yet answered whether it took it.
 * 5. A job that is looked up is watched before the runner is asked about it: what happens meanwhile is not missed.
 */
import { createParser } from 'eventsource-parser';
import { sign } from 'hono/jwt';

import { EngineError, messageOf } from '../domain/errors.ts';
import { isJsonObject, type Json, type JsonObject } from '../domain/json.ts';
import { limits } from '../domain/limits.ts';
import type {
  Clock,
  JobEnd,
  JobObserver,
  JobResult,
  RelicAnswer,
  RelicCall,
  RunnerClient,
  RunnerJob,
} from '../domain/ports.ts';
import type { SigningKey } from './runner-list.ts';

export interface RunnerClientOptions {
  /** `http://127.0.0.1:8790`, without a path. */
  readonly baseUrl: string;
  /** Shared with the runner. */
  readonly key: SigningKey;
  readonly fetch: (input: string, init: RequestInit) => Promise<Response>;
  readonly clock: Clock;
  /** A new random string of at least 16 characters with every call. */
  readonly newNonce: () => string;
  /** A movable job counts as lost when its runner has been out of reach for so long; else as any other (R7). */
  readonly moveAfterMs?: number;
}

export type RunnerErrorCode = 'runner_busy' | 'runner_unavailable' | 'runner_rejected';

/** The job was not taken, or it is not known whether it was. */
export class RunnerError extends EngineError {
  /** How long the runner asked to be left alone (R8). */
  readonly retryAfterMs: number | null;
  /** The runner said that it did not take the job: even an unsafe one may be tried again (S7). */
  readonly beforeDispatch: boolean;

  constructor(
    code: RunnerErrorCode,
    message: string,
    options: {
      readonly beforeDispatch: boolean;
      readonly retryAfterMs?: number | undefined;
      /** The runner's own code for its refusal. */
      readonly problem?: string;
      readonly cause?: unknown;
    },
  ) {
    const { beforeDispatch, retryAfterMs, problem, cause } = options;
    const details = {
      beforeDispatch,
      ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
      ...(problem === undefined ? {} : { problem }),
    };
    super(code, message, details, cause);
    this.beforeDispatch = beforeDispatch;
    this.retryAfterMs = retryAfterMs ?? null;
  }
}

/** A job that somebody waits for. */
interface Watched {
  readonly id: string;
  readonly observe: JobObserver;
  stdout: string;
  stderr: string;
  /** The runner has taken it. */
  accepted: boolean;
  /** Its events up to this number are known from its record. */
  after: number;
  /** Its runner may be out of reach for so long. */
  readonly patienceMs: number;
  /** Events that came before the record did; null when they need not wait. */
  held: JobEvent[] | null;
  settle(result: JobResult): void;
}

interface JobEvent {
  readonly seq: number;
  readonly type: string | undefined;
  readonly payload: JsonObject;
}

const AUDIENCE = 'cortex-runner';
const ENDS: ReadonlySet<string> = new Set<JobEnd>([
  'exited',
  'timeout',
  'killed',
  'oom',
  'output_limit',
  'lost',
  'build_failed',
]);
/** What a platform reports when no connection came about, so that nothing can have been sent. */
const NO_CONNECTION: ReadonlySet<unknown> = new Set([
  'ECONNREFUSED',
  'ENOTFOUND',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'EAI_AGAIN',
]);

/** One runner; `record` is what it knows of a job, null when nothing, `undefined` when it cannot be asked. */
export interface SingleRunner extends RunnerClient {
  record(id: string): Promise<JsonObject | null | undefined>;
}

export function createRunnerClient(options: RunnerClientOptions): SingleRunner {
  const { clock } = options;
  const base = options.baseUrl.replace(/\/+$/, '');
  const sessions = new Map<string, SessionStream>();
  const signingKey = jwkOf(options.key);

  async function request(method: string, target: string, body: string, signal: AbortSignal): Promise<Response> {
    const url = new URL(target, `${base}/`);
    const seconds = Math.floor(clock.now() / 1_000);
    const token = await sign(
      {
        aud: AUDIENCE,
        iat: seconds,
        exp: seconds + limits.runnerTokenSeconds,
        jti: options.newNonce(),
        htm: method,
        htu: url.pathname + url.search,
        hst: url.host,
        bod: await hashOf(body),
      },
      signingKey,
      'HS256',
    );
    return await options.fetch(url.href, {
      method,
      headers: { authorization: `Bearer ${token}`, ...(body === '' ? {} : { 'content-type': 'application/json' }) },
      signal,
      ...(body === '' ? {} : { body }),
    });
  }

  /** One request with the time that the runner gets to answer it. */
  async function ask(
    method: string,
    target: string,
    body = '',
  ): Promise<{ status: number; headers: Headers; text: string }> {
    const stop = new AbortController();
    const cancel = clock.schedule(limits.runnerRequestMs, () =>
      stop.abort(new Error(`no answer in ${limits.runnerRequestMs / 1_000} s`)),
    );
    try {
      const response = await request(method, target, body, stop.signal);
      return { status: response.status, headers: response.headers, text: await response.text() };
    } finally {
      cancel();
    }
  }

  function sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const cancel = clock.schedule(ms, resolve);
      signal?.addEventListener(
        'abort',
        () => {
          cancel();
          resolve();
        },
        { once: true },
      );
    });
  }

  /**
   * Hands a job over. The same id is one execution, so that a lost answer is asked for again.
   *
   * @returns whether the job had ended before: its events may be older than any stream
   */
  async function submit(job: RunnerJob, signal: AbortSignal): Promise<boolean> {
    const body = JSON.stringify(wireJob(job));
    for (let attempt = 1; ; attempt += 1) {
      let answer: Awaited<ReturnType<typeof ask>>;
      try {
        answer = await ask('PUT', pathOf(job.id), body);
      } catch (fault) {
        if (attempt < limits.runnerAttempts && !signal.aborted) {
          await sleep(limits.runnerRetryMs * attempt, signal);
          continue;
        }
        throw new RunnerError('runner_unavailable', `The runner at ${base} could not be reached: ${messageOf(fault)}`, {
          beforeDispatch: neverConnected(fault),
          cause: fault,
        });
      }
      if (answer.status < 300) return objectOf(answer.text)?.['state'] === 'ended';
      throw refusalOf(answer, base);
    }
  }

  async function kill(id: string): Promise<void> {
    for (let attempt = 1; attempt <= limits.runnerAttempts; attempt += 1) {
      const answer = await ask('DELETE', pathOf(id)).catch(() => null);
      if (answer !== null && answer.status < 500) return;
      await sleep(limits.runnerRetryMs * attempt);
    }
  }

  /** What the runner knows of a job: its record, `null` when it has none, `undefined` when it cannot be asked. */
  async function lookUp(id: string): Promise<JsonObject | null | undefined> {
    const answer = await ask('GET', pathOf(id)).catch(() => null);
    if (answer === null || (answer.status !== 200 && answer.status !== 404)) return undefined;
    return answer.status === 404 ? null : objectOf(answer.text);
  }

  /** As `lookUp`, asking again for as long as a running job would be waited for. */
  async function find(id: string, signal: AbortSignal): Promise<JsonObject | null | undefined> {
    const until = clock.now() + limits.runnerLostMs;
    for (;;) {
      const record = await lookUp(id);
      if (record !== undefined || signal.aborted || clock.now() >= until) return record;
      await sleep(limits.runnerRetryMaxMs, signal);
    }
  }

  const transport: Transport = {
    open: (target, signal) => request('GET', target, '', signal),
    lookUp,
    sleep,
    clock,
  };

  function streamOf(session: string): SessionStream {
    const known = sessions.get(session);
    if (known !== undefined) return known;
    const stream = new SessionStream(session, transport, () => sessions.delete(session));
    sessions.set(session, stream);
    return stream;
  }

  return {
    async run(job, observe) {
      observe.signal.throwIfAborted();
      const stream = streamOf(job.session);
      let onAbort: (() => void) | undefined;
      try {
        return await new Promise<JobResult>((resolve, reject) => {
          const patienceMs = job.movable === true ? (options.moveAfterMs ?? limits.runnerLostMs) : limits.runnerLostMs;
          const watched = watch(job.id, observe, resolve, patienceMs);
          stream.add(watched);
          const taken = submit(job, observe.signal).then(
            async (ended) => {
              watched.accepted = true;
              const record = ended ? await find(job.id, observe.signal) : null;
              if (record != null) meet(watched, record, () => undefined);
              return true;
            },
            (fault: unknown) => {
              reject(fault);
              return !(fault instanceof RunnerError && fault.beforeDispatch);
            },
          );
          onAbort = () => {
            // what comes after this is nobody's any more
            stream.remove(job.id);
            void taken.then((mayRun) => (mayRun ? kill(job.id) : undefined));
            resolve(killed(watched));
          };
          observe.signal.addEventListener('abort', onAbort, { once: true });
        });
      } finally {
        if (onAbort !== undefined) observe.signal.removeEventListener('abort', onAbort);
        stream.remove(job.id);
      }
    },

    async lookup({ id, session }, observe) {
      const stream = streamOf(session);
      let onAbort: (() => void) | undefined;
      try {
        return await new Promise<JobResult | null>((resolve) => {
          const watched: Watched = { ...watch(id, observe, resolve), held: [] };
          stream.add(watched);
          onAbort = () => {
            void kill(id);
            resolve(killed(watched));
          };
          observe.signal.addEventListener('abort', onAbort, { once: true });
          if (observe.signal.aborted) onAbort();
          else void find(id, observe.signal).then((record) => meet(watched, record, () => resolve(null)));
        });
      } finally {
        if (onAbort !== undefined) observe.signal.removeEventListener('abort', onAbort);
        stream.remove(id);
      }
    },

    record: lookUp,

    async callRelic(call, signal) {
      const stop = new AbortController();
      const waitMs = call.timeoutMs + limits.relicGraceMs;
      const cancel = clock.schedule(waitMs, () => stop.abort(new Error(`no answer in ${waitMs / 1_000} s`)));
      const { name } = call.relic;
      let response: Response;
      try {
        const body = JSON.stringify(wireRelicCall(call));
        const target = `/relics/${encodeURIComponent(name)}/call`;
        response = await request('POST', target, body, AbortSignal.any([signal, stop.signal]));
      } catch (fault) {
        cancel();
        signal.throwIfAborted();
        throw new RunnerError('runner_unavailable', `The runner at ${base} could not be reached: ${messageOf(fault)}`, {
          beforeDispatch: neverConnected(fault),
          cause: fault,
        });
      }
      try {
        const text = await response.text();
        if (!response.ok) throw refusalOf({ status: response.status, headers: response.headers, text }, base);
        return relicAnswerOf(objectOf(text), name);
      } catch (fault) {
        if (fault instanceof RunnerError) throw fault;
        signal.throwIfAborted();
        return broken(`The runner broke off the call of the relic ${name}: ${messageOf(fault)}`);
      } finally {
        cancel();
      }
    },

    async stopRelics(space, { forget }) {
      const target = `/relics?space=${encodeURIComponent(space)}${forget ? '&forget=true' : ''}`;
      await ask('DELETE', target).catch(() => null);
    },

    prewarm({ session, kind, runtime }) {
      const body = { session, kind, ...(runtime === null ? {} : { runtime }) };
      // a hint that is lost costs a cold start
      void ask('POST', '/prewarm', JSON.stringify(body)).catch(() => undefined);
    },

    async health() {
      const stop = new AbortController();
      const cancel = clock.schedule(limits.runnerRequestMs / 4, () => stop.abort());
      try {
        const response = await options.fetch(`${base}/health`, { method: 'GET', signal: stop.signal });
        return response.ok ? objectOf(await response.text()) : null;
      } catch {
        return null;
      } finally {
        cancel();
      }
    },
  };
}

interface Transport {
  open(target: string, signal: AbortSignal): Promise<Response>;
  lookUp(id: string): Promise<JsonObject | null | undefined>;
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  readonly clock: Clock;
}

/** The event stream of one session: opened with its first job, resumed where it was cut, closed after the last. */
class SessionStream {
  readonly #session: string;
  readonly #transport: Transport;
  readonly #onClose: () => void;
  readonly #jobs = new Map<string, Watched>();
  /** Number of the last event seen. */
  #cursor: number | null = null;
  #open: AbortController | null = null;
  #cancelLinger: (() => void) | null = null;
  /** When the runner was last heard. */
  #heardAt: number;

  constructor(session: string, transport: Transport, onClose: () => void) {
    this.#session = session;
    this.#transport = transport;
    this.#onClose = onClose;
    this.#heardAt = transport.clock.now();
  }

  add(watched: Watched): void {
    this.#jobs.set(watched.id, watched);
    this.#cancelLinger?.();
    this.#cancelLinger = null;
    if (this.#open !== null) return;
    this.#open = new AbortController();
    this.#heardAt = this.#transport.clock.now();
    void this.#follow(this.#open.signal);
  }

  remove(id: string): void {
    this.#jobs.delete(id);
    if (this.#jobs.size > 0 || this.#open === null || this.#cancelLinger !== null) return;
    this.#cancelLinger = this.#transport.clock.schedule(limits.runnerLingerMs, () => this.#close());
  }

  #close(): void {
    this.#cancelLinger = null;
    this.#open?.abort();
    this.#open = null;
    this.#onClose();
  }

  /** Reads, and reads again after every cut, until closed. */
  async #follow(closed: AbortSignal): Promise<void> {
    for (let cuts = 0; !closed.aborted; cuts += 1) {
      const heard = await this.#read(closed);
      if (closed.aborted) return;
      if (heard) cuts = 0;
      if (this.#jobs.size === 0) {
        // nothing to wait for: the next job opens a new stream
        this.#cancelLinger?.();
        this.#close();
        return;
      }
      await this.#catchUp();
      await this.#transport.sleep(Math.min(limits.runnerRetryMs * 2 ** cuts, limits.runnerRetryMaxMs), closed);
    }
  }

  /** One connection, from open to cut. True when anything came over it. */
  async #read(closed: AbortSignal): Promise<boolean> {
    const { clock } = this.#transport;
    const connection = new AbortController();
    const onClosed = (): void => connection.abort();
    closed.addEventListener('abort', onClosed, { once: true });
    let cancelSilence = clock.schedule(limits.runnerSilenceMs, () => connection.abort());
    let heard = false;
    try {
      const after = this.#cursor === null ? '' : `&after=${this.#cursor}`;
      const response = await this.#transport.open(
        `/events?session=${encodeURIComponent(this.#session)}${after}`,
        connection.signal,
      );
      if (!response.ok || response.body === null) {
        await response.body?.cancel();
        return false;
      }
      const parser = createParser({ onEvent: (event) => this.#receive(event.event, event.id, event.data) });
      const decoder = new TextDecoder();
      const reader = response.body.getReader();
      // a fetch that was aborted need not end a body that is being read
      connection.signal.addEventListener('abort', () => void reader.cancel().catch(() => undefined), { once: true });
      for (;;) {
        const { done, value } = await reader.read();
        if (done || connection.signal.aborted) return heard;
        heard = true;
        this.#heardAt = clock.now();
        cancelSilence();
        cancelSilence = clock.schedule(limits.runnerSilenceMs, () => connection.abort());
        parser.feed(decoder.decode(value, { stream: true }));
      }
    } catch {
      // a cut is no fault: the caller asks about its jobs and connects again
      return heard;
    } finally {
      cancelSilence();
      closed.removeEventListener('abort', onClosed);
      connection.abort();
    }
  }

  #receive(type: string | undefined, id: string | undefined, data: string): void {
    const seq = Number(id);
    if (!Number.isSafeInteger(seq) || (this.#cursor !== null && seq <= this.#cursor)) return;
    this.#cursor = seq;
    const event = objectOf(data);
    const payload = event?.['data'];
    const watched = typeof event?.['job'] === 'string' ? this.#jobs.get(event['job']) : undefined;
    if (watched === undefined || !isJsonObject(payload)) return;
    if (watched.held === null) happened(watched, { seq, type, payload });
    else watched.held.push({ seq, type, payload });
  }

  /** After a cut: jobs that ended meanwhile settle now; with a runner out of reach for too long they are lost. */
  async #catchUp(): Promise<void> {
    const { clock } = this.#transport;
    for (const watched of this.#jobs.values()) {
      if (!watched.accepted) continue;
      const record = await this.#transport.lookUp(watched.id);
      if (record === undefined) {
        if (clock.now() - this.#heardAt > watched.patienceMs) watched.settle(lost(watched));
        continue;
      }
      this.#heardAt = clock.now();
      if (record === null) {
        // a runner that began anew counts its events anew
        this.#cursor = null;
        watched.settle(lost(watched));
      } else if (record['state'] === 'ended') {
        const stdout = rest(watched, 'stdout', record['stdout']);
        const stderr = rest(watched, 'stderr', record['stderr']);
        watched.settle(resultOf(record, stdout, stderr));
      }
    }
  }
}

function watch(
  id: string,
  observe: JobObserver,
  settle: Watched['settle'],
  patienceMs: number = limits.runnerLostMs,
): Watched {
  return { id, observe, patienceMs, stdout: '', stderr: '', accepted: false, after: 0, held: null, settle };
}

function happened(watched: Watched, { seq, type, payload }: JobEvent): void {
  if (seq <= watched.after) return;
  if (type === 'stdout' || type === 'stderr' || type === 'build') {
    const text = payload['text'];
    if (typeof text !== 'string') return;
    if (type !== 'build') watched[type] += text;
    watched.observe.output(type, text);
  } else if (type === 'exited') {
    watched.settle(resultOf(payload, watched.stdout, watched.stderr));
  }
}

/** Joins what the runner's record says with what its stream has brought since the record was asked for. */
function meet(watched: Watched, record: JsonObject | null | undefined, unknown: () => void): void {
  if (record === null) return unknown();
  if (record === undefined) return watched.settle(lost(watched));
  const stdout = rest(watched, 'stdout', record['stdout']);
  const stderr = rest(watched, 'stderr', record['stderr']);
  if (record['state'] === 'ended') return watched.settle(resultOf(record, stdout, stderr));
  watched.accepted = true;
  watched.after = typeof record['last_seq'] === 'number' ? record['last_seq'] : 0;
  const held = watched.held ?? [];
  watched.held = null;
  for (const event of held) happened(watched, event);
}

/** The whole of what was printed; the part that the stream did not bring is reported now. */
function rest(watched: Watched, stream: 'stdout' | 'stderr', whole: Json | undefined): string {
  if (typeof whole !== 'string' || whole.length <= watched[stream].length) return watched[stream];
  watched.observe.output(stream, whole.slice(watched[stream].length));
  watched[stream] = whole;
  return whole;
}

function killed({ stdout, stderr }: Watched): JobResult {
  return { end: 'killed', exitCode: null, stdout, stderr, truncated: false };
}

function lost(watched: Watched): JobResult {
  return { end: 'lost', exitCode: null, stdout: watched.stdout, stderr: watched.stderr, truncated: false };
}

function resultOf(payload: JsonObject, stdout: string, stderr: string): JobResult {
  const end = payload['end'];
  const exitCode = payload['exit_code'];
  return {
    end: typeof end === 'string' && ENDS.has(end) ? (end as JobEnd) : 'lost',
    exitCode: typeof exitCode === 'number' ? exitCode : null,
    stdout,
    stderr,
    truncated: payload['truncated'] === true,
  };
}

function wireJob(job: RunnerJob): JsonObject {
  const { timeoutMs, memoryMb, cpus } = job.limits;
  return {
    kind: job.kind,
    session: job.session,
    ...programOf(job),
    inputs: job.inputs,
    limits: {
      timeout_ms: Math.max(1, Math.round(timeoutMs)),
      ...(memoryMb === null ? {} : { memory_mb: memoryMb }),
      ...(cpus === undefined ? {} : { cpus }),
    },
  };
}

/** What is to be run: source text, an image, or what an image is made of. */
function programOf({ kind, code, runtime, image, args, build }: RunnerJob): JsonObject {
  if (kind === 'docker')
    return { image: image ?? '', ...(code === '' ? {} : { command: code }), args: [...(args ?? [])] };
  if (kind !== 'tool') return { code };
  if (image !== undefined) return { image };
  if (build !== undefined) return { build: build as unknown as JsonObject };
  return { code, runtime };
}

function wireRelicCall({ space, relic, method, path, body, timeoutMs }: RelicCall): JsonObject {
  const { implementation, persistent, idleMs } = relic;
  if (implementation.type !== 'container') throw new Error(`The relic "${relic.name}" needs no runner`);
  const { image, build, command, port, health, memoryMb, cpus } = implementation;
  return {
    space,
    relic: {
      image,
      build: build as unknown as JsonObject | null,
      command: command === null ? null : [...command],
      port,
      health: { path: health.path, interval_ms: health.intervalMs, start_ms: health.startMs },
      persistent,
      idle_ms: idleMs,
      ...(memoryMb === null ? {} : { memory_mb: memoryMb }),
      ...(cpus === null ? {} : { cpus }),
    },
    call: { method, path, body: body === null ? null : JSON.stringify(body) },
    timeout_ms: Math.max(1, Math.round(timeoutMs)),
  };
}

const RELIC_PROBLEMS = ['relic_unavailable', 'relic_broken', 'relic_timeout', 'relic_answer_too_large'] as const;

function relicAnswerOf(answer: JsonObject | null, name: string): RelicAnswer {
  const { status, type, body, error } = answer ?? {};
  if (typeof status === 'number' && typeof body === 'string') {
    return { ok: true, status, type: typeof type === 'string' ? type : '', body };
  }
  if (!isJsonObject(error)) return broken(`The runner gave no answer of the relic ${name}`);
  const code = RELIC_PROBLEMS.find((known) => known === error['code']);
  const beforeDispatch = error['before_dispatch'] === true;
  const message = typeof error['message'] === 'string' ? error['message'] : `The relic ${name} gave no answer`;
  return { ok: false, code: code ?? (beforeDispatch ? 'relic_unavailable' : 'relic_broken'), message, beforeDispatch };
}

function broken(message: string): RelicAnswer {
  return { ok: false, code: 'relic_broken', message, beforeDispatch: false };
}

function pathOf(id: string): string {
  return `/jobs/${encodeURIComponent(id)}`;
}

/** The runner's own words for why it did not take a job. */
function refusalOf(
  { status, headers, text }: { status: number; headers: Headers; text: string },
  base: string,
): RunnerError {
  const detail = objectOf(text)?.['detail'];
  const said = typeof detail === 'string' ? detail : `it answered ${status}`;
  const seconds = Number(headers.get('retry-after') ?? Number.NaN);
  const retryAfterMs = Number.isFinite(seconds) ? seconds * 1_000 : undefined;
  if (status === 429) {
    return new RunnerError('runner_busy', `The runner has no free place: ${said}`, {
      beforeDispatch: true,
      retryAfterMs,
    });
  }
  if (status >= 500) {
    // 503 is said before anything happens; another 5xx may come from anywhere on the way
    return new RunnerError('runner_unavailable', `The runner at ${base} cannot take jobs: ${said}`, {
      beforeDispatch: status === 503,
      retryAfterMs,
    });
  }
  const problem = objectOf(text)?.['code'];
  return new RunnerError('runner_rejected', `The runner refused: ${said}`, {
    beforeDispatch: true,
    ...(typeof problem === 'string' ? { problem } : {}),
  });
}

function neverConnected(fault: unknown): boolean {
  const cause = fault instanceof Error ? fault.cause : undefined;
  return isCoded(cause) && NO_CONNECTION.has(cause.code);
}

function isCoded(value: unknown): value is { readonly code: unknown } {
  return typeof value === 'object' && value !== null && 'code' in value;
}

function objectOf(text: string): JsonObject | null {
  try {
    const value: unknown = JSON.parse(text);
    return isJsonObject(value) ? value : null;
  } catch {
    return null;
  }
}

/** As a plain secret where it has no id; the runner finds a named one by the token's `kid`. */
function jwkOf({ id, secret }: SigningKey): Parameters<typeof sign>[1] {
  if (id === null) return secret;
  return { kty: 'oct', alg: 'HS256', kid: id, k: base64Url(new TextEncoder().encode(secret)) };
}

async function hashOf(text: string): Promise<string> {
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text));
  return base64Url(new Uint8Array(digest));
}

function base64Url(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replaceAll('=', '');
}
