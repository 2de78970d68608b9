/**
 * The front of a runner in a container that sleeps (R7): it starts the container for work, and answers everything else
 * itself, so that questions neither start a container nor keep it awake.
 *
 * Owns: the start of the container. Does not own: jobs. They are lost when it stops, as after a crash.
 *
 * Invariants:
 *  1. Only jobs, their event streams, files for them, relic calls, outbound requests and reserved sandboxes start it.
 *  2. `GET /health` reaches it only within `limits.containerQuietMs` after work.
 *  3. An answer that waited for the start says for how long, in a header.
 */
import { type JsonObject, parseObject } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import type { Clock } from '../../domain/ports/clock.ts';
import { pause } from '../../domain/sleep.ts';
import { COLD_START_HEADER } from './record.ts';

/** What the platform offers for a container, in our terms. */
export interface ContainerPort {
  readonly running: boolean;
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

export class ContainerFront {
  readonly #container: ContainerPort;
  readonly #clock: Clock;
  /** When the start that is going on began. */
  #startingAt: number | null = null;
  /** When it last had work. */
  #workAt = Number.NEGATIVE_INFINITY;
  /** The last answer of the running container to `GET /health`. */
  #health: JsonObject | null = null;

  constructor(container: ContainerPort, clock: Clock) {
    this.#container = container;
    this.#clock = clock;
  }

  async fetch(request: Request): Promise<Response> {
    const { pathname } = new URL(request.url);
    if (request.method === 'GET' && pathname === '/health') return await this.#answerHealth(request);
    if (!isWork(request.method, pathname) && !this.#container.running) return nothingHere();
    return await this.#work(request);
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
      const answer = await this.#container.fetch(request.url, { method: 'GET', headers: new Headers(), body: null });
      const text = await answer.text();
      this.#health = answer.ok ? parseObject(text) : null;
      return new Response(text, { status: answer.status, headers: { 'content-type': 'application/json' } });
    } catch {
      // It has just stopped, or was started by an earlier host of this object and is not ready.
      return asleep({});
    }
  }

  /** Starts the container if necessary. The request is repeated while it starts, so its body is kept. */
  async #work(request: Request): Promise<Response> {
    const clock = this.#clock;
    const { method, headers } = request;
    const again = { method, headers, body: request.body === null ? null : await request.arrayBuffer() };
    const arrivedAt = clock.now();
    const until = arrivedAt + limits.containerStartMs;
    let isCold = this.#startingAt !== null;
    for (;;) {
      this.#workAt = clock.now();
      if (!this.#container.running) {
        isCold = true;
        this.#health = null;
        this.#startingAt = clock.now();
        this.#container.start();
        await this.#container.stopWhenIdle(limits.containerIdleMs);
      }
      try {
        const answer = await this.#container.fetch(request.url, again);
        // The runner itself says that it is starting while it prepares its interpreters.
        if (answer.status !== 503 || !isCold || (await codeOf(answer.clone())) !== 'starting' || clock.now() >= until) {
          this.#startingAt = null;
          return isCold ? withColdStart(answer, clock.now() - arrivedAt) : answer;
        }
      } catch (fault) {
        if (clock.now() >= until) {
          this.#startingAt = null;
          return unavailable(fault instanceof Error ? fault.message : String(fault));
        }
      }
      await pause(limits.containerPollMs, clock);
    }
  }
}

function isWork(method: string, pathname: string): boolean {
  if (method === 'POST') return true;
  return method === 'PUT' || pathname === '/events';
}

async function codeOf(answer: Response): Promise<unknown> {
  return parseObject(await answer.text())?.['code'];
}

function withColdStart(answer: Response, ms: number): Response {
  const headers = new Headers(answer.headers);
  headers.set(COLD_START_HEADER, String(ms));
  return new Response(answer.body, { status: answer.status, headers });
}

function asleep(more: JsonObject): Response {
  return Response.json({ status: 'asleep', executors: EXECUTORS, ...more });
}

/** A container that does not run has no jobs and no files. */
function nothingHere(): Response {
  return problem(404, 'unknown_job', 'Unknown job', 'The container of the runner does not run, so it has no jobs');
}

/** An answer in the runner's format, sent before anything has happened. */
function unavailable(detail: string): Response {
  return problem(503, 'starting', 'The container of the runner does not start', detail, { 'retry-after': '2' });
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
