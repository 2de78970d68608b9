/**
 * The front of a runner in a container that sleeps (R7): it starts the container for work, and answers everything else
 * itself, so that questions neither start a container nor keep it awake.
 *
 * Owns: the start of the container, and the ids of the unsafe jobs that were sent to it. Does not own: jobs. They are lost
 * when it stops, as after a crash, and so is the runner's ledger.
 *
 * Invariants:
 *  1. Only jobs, their event streams, files for them, relic calls, outbound requests and reserved sandboxes start it.
 *  2. `GET /health` reaches it only within `limits.containerQuietMs` after work.
 *  3. An answer that waited for the start says for how long, in a header.
 *  4. Work is sent only if the container has answered within `limits.runnerAliveMs`, and each request is sent once. If the
 *     answer to work that may have an effect is lost, its outcome is unknown.
 *  5. A job that may run only once is not sent to a container that was started after the job was sent (J3).
 */
import { type JsonObject, parseObject } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import type { Clock } from '../../domain/ports/clock.ts';
import { pause, within } from '../../domain/sleep.ts';
import { OUTCOME_UNKNOWN, REPEATABLE_HEADER } from './record.ts';
import type { SentJobs } from './sent-jobs.ts';

/** What the platform offers for a container, in our terms. */
export interface ContainerPort {
  readonly running: boolean;
  /** @throws if the platform does not start it */
  start(): void;
  /** It stops after this time without a request. */
  stopWhenIdle(ms: number): Promise<void>;
  /** A request to the runner in it. @throws if it does not accept connections (yet) */
  fetch(url: string, init: ContainerRequest): Promise<Response>;
}

export interface ContainerRequest {
  readonly method: string;
  readonly headers: Headers;
  readonly body: ArrayBuffer | null;
}

/** What a container's runner can do, until it has told. It contains no engine. */
const EXECUTORS = ['python', 'shell', 'tool'];

/** Why the container is not ready for work. */
interface Refusal {
  readonly code: string;
  readonly detail: string;
}

export class ContainerFront {
  readonly #container: ContainerPort;
  readonly #clock: Clock;
  readonly #sent: SentJobs;
  /** When the start that is going on began. */
  #startingAt: number | null = null;
  /** All work waits for the same start. */
  #preparing: Promise<Refusal | null> | null = null;
  /** The platform knows when it has to stop the container. */
  #hasIdleTime = false;
  /** When it last answered. */
  #answeredAt = Number.NEGATIVE_INFINITY;
  /** When it last had work. */
  #workAt = Number.NEGATIVE_INFINITY;
  /** The last answer of the running container to `GET /health`. */
  #health: JsonObject | null = null;

  constructor(container: ContainerPort, clock: Clock, sent: SentJobs) {
    this.#container = container;
    this.#clock = clock;
    this.#sent = sent;
  }

  async fetch(request: Request): Promise<Response> {
    const { pathname } = new URL(request.url);
    if (request.method === 'GET' && pathname === '/health') return await this.#answerHealth(request);
    if (isWork(request.method, pathname)) return await this.#work(request, pathname);
    if (!this.#container.running) return nothingHere();
    this.#workAt = this.#clock.now();
    return await this.#send(request, null, false);
  }

  async #answerHealth(request: Request): Promise<Response> {
    const now = this.#clock.now();
    if (this.#startingAt !== null) return asleep({ starting_ms: now - this.#startingAt });
    if (!this.#container.running) {
      this.#health = null;
      return asleep({});
    }
    if (this.#health !== null && now - this.#workAt > limits.containerQuietMs) return Response.json(this.#health);
    try {
      const { ok, status, text } = await this.#probe(request.url);
      this.#health = ok ? parseObject(text) : null;
      return new Response(text, { status, headers: { 'content-type': 'application/json' } });
    } catch {
      // It has just stopped, or was started by an earlier host of this object and is not ready.
      return asleep({});
    }
  }

  /** Asks the container for its health. @throws if it does not accept connections */
  async #probe(url: string): Promise<{ readonly ok: boolean; readonly status: number; readonly text: string }> {
    const answer = await this.#container.fetch(url, { method: 'GET', headers: new Headers(), body: null });
    return { ok: answer.ok, status: answer.status, text: await answer.text() };
  }

  async #work(request: Request, pathname: string): Promise<Response> {
    this.#workAt = this.#clock.now();
    const body = request.body === null ? null : await request.arrayBuffer();
    const job = request.headers.has(REPEATABLE_HEADER) ? null : jobOf(request.method, pathname);
    // It would be lost in any case, so nothing is started for it.
    if (job !== null && this.#isLost(job)) return jobLost();
    const refusal = await this.#prepare(request.url);
    if (refusal !== null)
      return unavailable(refusal.code, 'The container of the runner does not start', refusal.detail);
    this.#workAt = this.#clock.now();
    return await (job === null
      ? this.#send(request, body, hasEffect(request.method, pathname))
      : this.#sendOnce(job, request, body));
  }

  /** The job was sent to a container that has stopped. */
  #isLost(job: string): boolean {
    return this.#sent.has(job) && (!this.#container.running || this.#sent.wasSentBeforeStart(job));
  }

  /** Sends a job that may run only once. A request for the same job and the same container is left to its ledger. */
  async #sendOnce(job: string, request: Request, body: ArrayBuffer | null): Promise<Response> {
    if (this.#isLost(job)) return jobLost();
    const isFirst = !this.#sent.has(job);
    const number = await this.#sent.add(job);
    if (!this.#container.running || this.#sent.isBeforeStart(number)) {
      if (!isFirst) return jobLost();
      this.#sent.remove(job, number);
      return unreachable('it stopped before the job was sent');
    }
    const answer = await this.#send(request, body, true);
    // The runner's own answer says that it did not take the job. It says nothing about an earlier request for it.
    const isRefused = (answer.status >= 400 && answer.status < 500) || answer.status === 503;
    if (isFirst && isRefused) this.#sent.remove(job, number);
    return answer;
  }

  /** Sends a request, once. Its token is valid once, too, so only the client can repeat it. */
  async #send({ url, method, headers }: Request, body: ArrayBuffer | null, hasEffect: boolean): Promise<Response> {
    try {
      const answer = await this.#container.fetch(url, { method, headers, body });
      this.#answeredAt = this.#clock.now();
      return answer;
    } catch (fault) {
      this.#answeredAt = Number.NEGATIVE_INFINITY;
      return hasEffect ? answerLost(textOf(fault)) : unreachable(textOf(fault));
    }
  }

  /** Starts the container if necessary, and waits until its runner is ready. */
  async #prepare(url: string): Promise<Refusal | null> {
    const sinceAnswerMs = this.#clock.now() - this.#answeredAt;
    if (this.#container.running && sinceAnswerMs <= limits.runnerAliveMs) return null;
    this.#preparing ??= this.#startAndProbe(new URL('/health', url).href).finally(() => {
      this.#startingAt = null;
      this.#preparing = null;
    });
    return await this.#preparing;
  }

  async #startAndProbe(health: string): Promise<Refusal | null> {
    const clock = this.#clock;
    const until = clock.now() + limits.containerStartMs;
    let starts = 0;
    let detail: string;
    const refused = (code: string): Refusal => ({ code, detail });
    for (;;) {
      if (!this.#container.running) {
        starts += 1;
        try {
          await this.#start();
        } catch (fault) {
          detail = `the platform does not start it: ${textOf(fault)}`;
          return refused('container_not_started');
        }
      }
      try {
        if (!this.#hasIdleTime) await this.#container.stopWhenIdle(limits.containerIdleMs);
        this.#hasIdleTime = true;
        const answer = await within(this.#probe(health), limits.containerProbeMs, clock, null);
        const report = answer?.ok === true ? parseObject(answer.text) : null;
        // The runner itself says that it is starting while it prepares its interpreters.
        if (report !== null && report['status'] !== 'starting') {
          this.#health = report;
          this.#answeredAt = clock.now();
          return null;
        }
        detail = answer === null ? 'it does not answer' : 'its runner is not ready';
      } catch (fault) {
        detail = textOf(fault);
      }
      if (clock.now() >= until) return refused('starting');
      if (!this.#container.running && starts >= limits.containerStarts) return refused('container_not_started');
      await pause(limits.containerPollMs, clock);
    }
  }

  /** @throws if the platform does not start it, or the start cannot be stored */
  async #start(): Promise<void> {
    this.#startingAt ??= this.#clock.now();
    this.#health = null;
    this.#answeredAt = Number.NEGATIVE_INFINITY;
    this.#hasIdleTime = false;
    await this.#sent.starts();
    this.#container.start();
  }
}

function isWork(method: string, pathname: string): boolean {
  if (method === 'POST') return true;
  return method === 'PUT' || pathname === '/events';
}

/** The id of the job that the request submits; null if it does not. */
function jobOf(method: string, pathname: string): string | null {
  return method === 'PUT' ? (/^\/jobs\/([^/]+)$/.exec(pathname)?.[1] ?? null) : null;
}

/** Whether it may change something the second time: other than events and files, which are known by their hashes. */
function hasEffect(method: string, pathname: string): boolean {
  return method !== 'GET' && !/^\/workspaces\/[^/]+\/files(\/read)?$/.test(pathname);
}

function textOf(fault: unknown): string {
  return fault instanceof Error ? fault.message : String(fault);
}

function asleep(more: JsonObject): Response {
  return Response.json({ status: 'asleep', executors: EXECUTORS, ...more });
}

/** A container that does not run has no jobs and no files. */
function nothingHere(): Response {
  return problem(404, 'unknown_job', 'Unknown job', 'The container of the runner does not run, so it has no jobs');
}

/** An answer in the runner's format, sent before anything has happened. */
function unavailable(code: string, title: string, detail: string): Response {
  return problem(503, code, title, detail, { 'retry-after': '2' });
}

/** The same for a request that may be repeated, or was not sent. */
function unreachable(detail: string): Response {
  return unavailable('container_unreachable', 'The container of the runner does not answer', detail);
}

function answerLost(why: string): Response {
  return outcomeUnknown(`its container did not answer (${why}), so the outcome of the request is unknown`);
}

function jobLost(): Response {
  return outcomeUnknown('its container has stopped since the job was sent, so the outcome of the job is unknown');
}

/** Not a 503: the request may have had an effect. */
function outcomeUnknown(detail: string): Response {
  return problem(502, OUTCOME_UNKNOWN, 'The outcome is unknown', detail);
}

function problem(
  status: number,
  code: string,
  title: string,
  detail: string,
  headers: Readonly<Record<string, string>> = {},
): Response {
  return new Response(JSON.stringify({ type: 'about:blank', title, status, code, detail }), {
    status,
    headers: { 'content-type': 'application/problem+json', ...headers },
  });
}
