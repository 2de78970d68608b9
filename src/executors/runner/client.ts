/**
 * The client of one runner (R1, R7): jobs are submitted with one short request each, and all jobs of a session are
 * observed over one event stream.
 *
 * Owns: the requests, and the stream of each session. Does not own: the jobs themselves, which continue if this object
 * is discarded.
 * Invariants:
 * 1. `run` settles once: with the job's end, or with a `RunnerError` if the job was not accepted.
 * 2. After an abort the job is killed, even if the runner has not confirmed it yet.
 * 3. A job is observed before the runner is asked about it, so no event in between is missed.
 */
import { parseObject, type JsonObject } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import type { Clock } from '../../domain/ports/clock.ts';
import type { RunnerClient, RunnerJob } from '../../domain/ports/runner.ts';
import { pause } from '../../domain/sleep.ts';
import { TRACEPARENT } from '../../domain/trace.ts';
import { connectionFailure, neverConnected, NoAnswer, refusalOf, RunnerError } from './error.ts';
import type { SigningKey } from './list.ts';
import { REPEATABLE_HEADER, type RunnerReports } from './record.ts';
import { tokenOf } from './signature.ts';
import { FileRequests, missingFilesOf } from './file-requests.ts';
import { killed, mergeRecord, runnerRetryMs, SessionStream, watch } from './stream.ts';
import type { Transport, Watched, WatchedEnd } from './stream.ts';
import { broken, relicAnswerOf, wireJob, wireRelicCall } from './wire.ts';

export interface RunnerClientOptions {
  /** `http://127.0.0.1:8790`, without a path. */
  readonly baseUrl: string;
  /** Shared secret with the runner. */
  readonly key: SigningKey;
  readonly fetch: (input: string, init: RequestInit) => Promise<Response>;
  readonly clock: Clock;
  /** The namespace of the session, if the deployment has several: the runner shares its capacity between them. */
  readonly tenant?: () => string | null;
  /** A new random string of at least 16 characters with every call. */
  readonly newNonce: () => string;
  /** A movable job counts as lost if its runner is unreachable for this time; others use the default (R7). */
  readonly moveAfterMs?: number;
  /** Called after each contact, or attempt. @param answered whether the runner answered */
  readonly contacted?: (answered: boolean) => void;
  /** What it reports to the pool, whose sessions share the time of the last contact. */
  readonly reports?: RunnerReports;
}

/** One runner. `record` returns the record of a job, null if it is unknown, undefined if the runner is unreachable. */
export interface SingleRunner extends RunnerClient {
  record(id: string): Promise<JsonObject | null | undefined>;
  /** Time of the last contact, epoch milliseconds; `-Infinity` before the first and after a failed connection. */
  lastContactAt(): number;
}

export function createRunnerClient(options: RunnerClientOptions): SingleRunner {
  const { clock } = options;
  const base = options.baseUrl.replace(/\/+$/, '');
  const sessions = new Map<string, SessionStream>();
  const contactedLast = options.reports?.alive ?? { at: Number.NEGATIVE_INFINITY };
  /** @param answered whether anything was received, for example that the runner is starting */
  const contact = (alive: boolean, answered = alive): void => {
    contactedLast.at = alive ? clock.now() : Number.NEGATIVE_INFINITY;
    options.contacted?.(answered);
  };

  async function request(
    method: string,
    target: string,
    body: string | Uint8Array,
    signal: AbortSignal,
    trace?: string,
    more: Readonly<Record<string, string>> = {},
  ): Promise<Response> {
    const url = new URL(target, `${base}/`);
    const token = await tokenOf({ method, url, body }, options.key, options.newNonce(), clock.now());
    const type = typeof body === 'string' ? 'application/json' : 'application/octet-stream';
    return await options.fetch(url.href, {
      method,
      headers: {
        authorization: `Bearer ${token}`,
        ...(trace === undefined ? {} : { [TRACEPARENT]: trace }),
        ...(body === '' ? {} : { 'content-type': type }),
        ...more,
      },
      signal,
      ...(body === '' ? {} : { body: body as string | Uint8Array<ArrayBuffer> }),
    });
  }

  const files = new FileRequests(request, clock);

  function tenantQuery(): string {
    const tenant = options.tenant?.() ?? null;
    return tenant === null ? '' : `?tenant=${encodeURIComponent(tenant)}`;
  }

  /** One request with the runner's request timeout. */
  async function ask(
    method: string,
    target: string,
    body = '',
    trace?: string,
    more?: Readonly<Record<string, string>>,
  ): Promise<{ status: number; headers: Headers; text: string }> {
    const stop = new AbortController();
    const cancel = clock.schedule(limits.runnerRequestMs, () =>
      stop.abort(new NoAnswer(`no answer within ${limits.runnerRequestMs / 1_000} s`)),
    );
    try {
      const response = await request(method, target, body, stop.signal, trace, more);
      const text = await response.text();
      contact(response.status < 500, response.status < 500 || response.status === 503);
      return { status: response.status, headers: response.headers, text };
    } catch (fault) {
      contact(false);
      throw fault;
    } finally {
      cancel();
    }
  }

  /**
   * Submits a job. The same id runs only once, so a lost answer is requested again. The front of a container, whose
   * ledger ends with it, ensures this for jobs that are not movable (container-front.ts).
   *
   * @returns whether the job had already ended: then its events may precede any stream
   */
  async function submit(job: RunnerJob, signal: AbortSignal): Promise<boolean> {
    const body = JSON.stringify(wireJob(job));
    const more = job.movable === true ? { [REPEATABLE_HEADER]: 'true' } : {};
    // An attempt without an answer may have submitted the job, regardless of later attempts.
    let mayBeThere = false;
    let transfers = 0;
    for (let attempt = 1; ; attempt += 1) {
      let answer: Awaited<ReturnType<typeof ask>>;
      try {
        answer = await ask('PUT', `${pathOf(job.id)}${tenantQuery()}`, body, job.trace, more);
      } catch (fault) {
        mayBeThere ||= !neverConnected(fault);
        if (attempt < limits.runnerAttempts && !signal.aborted) {
          await pause(runnerRetryMs(attempt), clock, signal);
          continue;
        }
        throw new RunnerError('runner_unavailable', `The runner could not be reached: ${connectionFailure(fault)}`, {
          beforeDispatch: !mayBeThere,
          cause: fault,
        });
      }
      const { session, workspace } = job;
      const missing = workspace === undefined || transfers >= limits.workspaceAttempts ? null : missingFilesOf(answer);
      if (workspace === undefined || missing === null) {
        options.reports?.jobAnswered({ status: answer.status, headers: answer.headers });
        if (answer.status < 300) return parseObject(answer.text)?.['state'] === 'ended';
        throw refusalOf(answer, mayBeThere);
      }
      attempt -= 1;
      if (await files.send({ session, workspace }, missing, mayBeThere, signal)) transfers += 1;
    }
  }

  async function kill(id: string): Promise<void> {
    for (let attempt = 1; attempt <= limits.runnerAttempts; attempt += 1) {
      const answer = await ask('DELETE', pathOf(id)).catch(() => null);
      if (answer !== null && answer.status < 500) return;
      await pause(runnerRetryMs(attempt), clock);
    }
  }

  /** The runner's record of a job; `null` if it is unknown, `undefined` if the runner is unreachable. */
  async function lookUp(id: string): Promise<JsonObject | null | undefined> {
    const answer = await ask('GET', pathOf(id)).catch(() => null);
    const body = answer === null ? null : parseObject(answer.text);
    if (answer?.status === 200) return body ?? undefined;
    // A proxy in front of the runner may also answer 404, without knowing its jobs.
    return answer?.status === 404 && body?.['code'] === 'unknown_job' ? null : undefined;
  }

  /** Like `lookUp`, but retries for as long as a running job would be waited for. */
  async function find(id: string, signal: AbortSignal): Promise<JsonObject | null | undefined> {
    const until = clock.now() + limits.runnerLostMs;
    for (;;) {
      const record = await lookUp(id);
      if (record !== undefined || signal.aborted || clock.now() >= until) return record;
      await pause(limits.runnerRetryMaxMs, clock, signal);
    }
  }

  const transport: Transport = {
    open: (target, signal) => request('GET', target, '', signal),
    lookUp,
    contact,
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
        const ended = await new Promise<WatchedEnd>((resolve, reject) => {
          const maxSilenceMs =
            job.movable === true ? (options.moveAfterMs ?? limits.runnerLostMs) : limits.runnerLostMs;
          const watched = watch(job.id, observe, resolve, maxSilenceMs);
          stream.add(watched);
          const taken = submit(job, observe.signal).then(
            async (ended) => {
              watched.accepted = true;
              const record = ended ? await find(job.id, observe.signal) : null;
              if (record != null) mergeRecord(watched, record, () => undefined);
              return true;
            },
            (fault: unknown) => {
              reject(fault);
              return !(fault instanceof RunnerError && fault.beforeDispatch);
            },
          );
          onAbort = () => {
            // Later output has no receiver.
            stream.remove(job.id);
            void taken.then((mayRun) => (mayRun ? kill(job.id) : undefined));
            resolve(killed(watched));
          };
          observe.signal.addEventListener('abort', onAbort, { once: true });
        });
        return files.withFiles(ended, job.session);
      } finally {
        if (onAbort !== undefined) observe.signal.removeEventListener('abort', onAbort);
        stream.remove(job.id);
      }
    },

    async lookup({ id, session }, observe) {
      const stream = streamOf(session);
      let onAbort: (() => void) | undefined;
      try {
        const ended = await new Promise<WatchedEnd | null>((resolve) => {
          const watched: Watched = { ...watch(id, observe, resolve), held: [] };
          stream.add(watched);
          onAbort = () => {
            void kill(id);
            resolve(killed(watched));
          };
          observe.signal.addEventListener('abort', onAbort, { once: true });
          if (observe.signal.aborted) onAbort();
          else void find(id, observe.signal).then((record) => mergeRecord(watched, record, () => resolve(null)));
        });
        return ended === null ? null : files.withFiles(ended, session);
      } finally {
        if (onAbort !== undefined) observe.signal.removeEventListener('abort', onAbort);
        stream.remove(id);
      }
    },

    record: lookUp,
    lastContactAt: () => contactedLast.at,

    async callRelic(call, { signal }) {
      const stop = new AbortController();
      const waitMs = call.timeoutMs + limits.relicGraceMs;
      const cancel = clock.schedule(waitMs, () => stop.abort(new NoAnswer(`no answer within ${waitMs / 1_000} s`)));
      const { name } = call.relic;
      let response: Response;
      try {
        const body = JSON.stringify(wireRelicCall(call));
        const target = `/relics/${encodeURIComponent(name)}/call${tenantQuery()}`;
        response = await request('POST', target, body, AbortSignal.any([signal, stop.signal]), call.trace);
      } catch (fault) {
        cancel();
        signal.throwIfAborted();
        contact(false);
        throw new RunnerError('runner_unavailable', `The runner could not be reached: ${connectionFailure(fault)}`, {
          beforeDispatch: neverConnected(fault),
          cause: fault,
        });
      }
      try {
        const text = await response.text();
        if (!response.ok) throw refusalOf({ status: response.status, headers: response.headers, text });
        return relicAnswerOf(parseObject(text), name);
      } catch (fault) {
        if (fault instanceof RunnerError) throw fault;
        signal.throwIfAborted();
        return broken(
          `The runner closed the connection during the call of the relic ${name}: ${connectionFailure(fault)}`,
        );
      } finally {
        cancel();
      }
    },

    async stopRelics(space, { forget }) {
      const target = `/relics?space=${encodeURIComponent(space)}${forget ? '&forget=true' : ''}`;
      await ask('DELETE', target).catch(() => null);
    },

    async forgetWorkspace(session) {
      await ask('DELETE', `/workspaces/${encodeURIComponent(session)}`).catch(() => null);
    },

    prewarm({ session, kind, runtime, sandbox }) {
      const body = {
        session,
        kind,
        ...(runtime === null ? {} : { runtime }),
        ...(sandbox === undefined ? {} : { sandbox }),
      };
      // A lost hint only costs a cold start.
      void ask('POST', '/prewarm', JSON.stringify(body)).catch(() => undefined);
    },

    async health() {
      const stop = new AbortController();
      const cancel = clock.schedule(limits.runnerRequestMs / 4, () => stop.abort());
      try {
        const response = await options.fetch(`${base}/health`, { method: 'GET', signal: stop.signal });
        const body = response.ok ? parseObject(await response.text()) : null;
        contact(body?.['status'] === 'healthy', body !== null);
        return body;
      } catch {
        contact(false);
        return null;
      } finally {
        cancel();
      }
    },
  };
}

function pathOf(id: string): string {
  return `/jobs/${encodeURIComponent(id)}`;
}
