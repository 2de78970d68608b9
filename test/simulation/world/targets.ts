/**
 * What actions call: tools, the runner's jobs and child sessions. They outlive the hosts, count what they do, and
 * remember it where the real ones do.
 */
import type { ActionOutcome } from '../../../src/domain/action.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import type { ChildEnd, ChildSessions } from '../../../src/domain/ports/children.ts';
import type { CodeTools } from '../../../src/domain/ports/code-tools.ts';
import type { JobResult, JobWorkspace, RunnerClient, RunnerJob } from '../../../src/domain/ports/runner.ts';
import type { WorkspaceResult } from '../../../src/domain/workspace.ts';
import type { ActionCall, ActionContext } from '../../../src/executors/executor.ts';
import { RunnerError } from '../../../src/executors/runner/error.ts';
import type { AttemptScript } from '../history.ts';
import { EVERY_EVENT } from '../../support/event-sql.ts';
import { placeOf, scriptOf } from '../script.ts';
import { ownFile, SHARED_FILE } from '../script.ts';
import { bytesOf, hashOf, pngOf } from './files.ts';
import { type Program, WorldFleet } from './fleet.ts';
import type { Life } from './life.ts';
import type { Stage } from './stage.ts';

/** The image in the results of the tool `idempotent`, as the characters of its bytes. */
export function imageOf(token: string): { readonly name: string; readonly bytes: string } {
  return { name: `${token}.png`, bytes: pngOf(`bytes of the image of ${token}`) };
}

/** What no reader may see: the simulated agent has a pattern for it (C9). */
export const HIDDEN = /hidden [a-z0-9_]{1,24}/;

function outputOf(token: string, target: string | null): JsonObject {
  const output = { token, value: `value of ${token}, hidden ${token}` };
  if (target !== 'idempotent') return output;
  const { name, bytes } = imageOf(token);
  return { ...output, files: [{ name, content_type: 'image/png', base64: btoa(bytes) }] };
}

/** What the earlier session asked for. */
const EARLIER = 'the earlier session';

type JobEnd = Omit<JobResult, 'workspace'> & { readonly workspace?: WorkspaceResult };

function jobResult(token: string, end: JobResult['end'], exitCode: number | null): JobEnd {
  return { end, exitCode, stdout: `output of ${token}`, stderr: '', truncated: false };
}

/** Every job writes a file of its own and one that all share. @param text differs for each attempt */
function leftBy(token: string, text: string, workspace: JobWorkspace | undefined): WorkspaceResult {
  const bytes = bytesOf(text);
  const file = { sha256: hashOf(bytes), size: bytes.length, executable: false };
  const base = (path: string): string | null => workspace?.files.find((one) => one.path === path)?.sha256 ?? null;
  const changes = [ownFile(token), SHARED_FILE].map((path) => ({ path, base: base(path), ...file }));
  return { changes, skipped: [], skippedCount: 0, error: null };
}

const EARLIER_JOB: JobResult = {
  end: 'exited',
  exitCode: 0,
  stdout: `output of ${EARLIER}`,
  stderr: '',
  truncated: false,
};

function childEnd(token: string, isGood: boolean): ChildEnd {
  return {
    sessionId: `ses_${'b'.repeat(32)}`,
    status: isGood ? 'completed' : 'failed',
    output: `answer of ${token}`,
    error: isGood ? null : { code: 'internal', message: 'the child failed' },
    spent: { modelCalls: 1, tokens: 10, cost: 0, actions: 1, children: 1 },
  };
}

/** Every second question asks for a value, whose default is for clients that cannot send one. */
function asking(token: string, attempt: number): ActionOutcome {
  const message = `question ${attempt} of ${token}`;
  const schema = { type: 'object', properties: { word: { type: 'string', default: 'none' } }, required: ['word'] };
  return {
    ok: false,
    error: { code: 'unanswered', message: 'the question has no answer', retryable: false },
    question: { from: 'the target', message, schema: attempt % 2 === 1 ? schema : null, state: { question: message } },
  };
}

function tokenIn({ code }: RunnerJob): string {
  return /"(\w+)"/.exec(code)?.[1] ?? '';
}

function attemptIn(jobId: string): number {
  return Number(jobId.split('/').at(-1));
}

const FEED_ATTEMPT: AttemptScript = { ms: 5, end: 'ok' };

/** A job of the runner, or a child session: it ends by itself, whatever happens to its caller. */
interface Work<Result> {
  readonly ended: Promise<Result>;
  stop: () => void;
}

export class Targets {
  readonly #stage: Stage;
  readonly #jobs = new Map<string, Work<JobEnd>>();
  /** What jobs have written, by hash. */
  readonly #written = new Map<string, Uint8Array>();
  readonly #children = new Map<string, Work<ChildEnd>>();
  #parses = 0;
  /** Null: there is one runner, which is never lost. */
  readonly fleet: WorldFleet | null;

  constructor(stage: Stage) {
    this.#stage = stage;
    this.fleet = stage.hasFleet ? new WorldFleet(stage) : null;
  }

  /** The executor of tools. */
  readonly execute =
    (life: Life, incarnation: number) =>
    async (sent: ActionCall, { signal }: ActionContext): Promise<ActionOutcome> => {
      life.enter();
      const call = this.#stage.broken.call?.(sent) ?? sent;
      const token = String(call.parameters['token']);
      if (!this.#stage.isOwnKey(call.runtimeKey, incarnation))
        return { ok: true, output: outputOf(EARLIER, call.action.name) };
      const { ms, end } = this.#attemptOf(token, call.attempt);
      this.#noteCall(call, incarnation);
      if (end !== 'unreached' && end !== 'asks') {
        this.#effect(token, call.action.name, call.runtimeKey, call.attempt, incarnation, call.parameters);
      }
      const outcome = await this.#answer<ActionOutcome>(life, signal, ms, end, (how) => {
        if (how === 'ok') return { ok: true, output: outputOf(token, call.action.name) };
        if (how === 'asks') return asking(token, call.attempt);
        const error = { code: how, message: `the target ${how}`, retryable: how !== 'refuses' };
        return { ok: false, error: how === 'unreached' ? { ...error, beforeDispatch: true } : error };
      });
      const ended = outcome.ok ? 'ok' : 'failed';
      this.#stage.note({ type: 'attempt_answered', token, attempt: call.attempt, end: ended }, incarnation);
      return outcome;
    };

  /** Code tools: they end with their host, and are reported if they did (K2). Each parse gives another result. */
  codeTools(life: Life, incarnation: number): CodeTools {
    const parsedOf = (given: JsonObject): JsonObject => ({ ...given, parse: (this.#parses += 1) });
    return {
      parse: async ({ parameters }) => {
        life.enter();
        await life.wait(1);
        return { ok: true, output: parsedOf(parameters) };
      },
      run: async ({ name, parameters: given, parsed, idempotencyKey, attempt }, { signal, progress }) => {
        life.enter();
        const parameters = parsed === true ? given : parsedOf(given);
        const token = String(parameters['token']);
        if (!this.#stage.isOwnKey(idempotencyKey, incarnation)) return { ok: true, output: outputOf(EARLIER, name) };
        const { ms, end } = this.#attemptOf(token, attempt);
        if (end !== 'unreached') this.#effect(token, name, idempotencyKey, attempt, incarnation, parameters);
        progress({ text: `progress of ${token}`, percent: 50 });
        const outcome = await this.#answer<ActionOutcome>(life, signal, ms, end === 'lost' ? 'throws' : end, (how) => {
          if (how === 'ok') return { ok: true, output: outputOf(token, name) };
          const error = { code: how, message: `the tool ${how}`, retryable: how === 'fails' || how === 'unreached' };
          return { ok: false, error: how === 'unreached' ? { ...error, beforeDispatch: true } : error };
        });
        this.#stage.note({ type: 'attempt_answered', token, attempt, end: outcome.ok ? 'ok' : 'failed' }, incarnation);
        return outcome;
      },
      lost: async (name) => {
        life.enter();
        if (this.#stage.broken.losesReports !== true) this.#stage.note({ type: 'tool_reported', name }, incarnation);
        await life.wait(1);
      },
    };
  }

  /** The runner: a job runs once, also if it is submitted or looked up again. */
  runner(life: Life, incarnation: number): RunnerClient {
    const written = this.#written;
    async function* read(hashes: readonly string[]): AsyncGenerator<readonly [string, Uint8Array]> {
      for (const sha256 of hashes) {
        await life.wait(1);
        yield [sha256, written.get(sha256) ?? new Uint8Array()];
      }
    }
    const resultOf = ({ workspace, ...result }: JobEnd): JobResult =>
      workspace === undefined ? result : { ...result, workspace: { ...workspace, read } };
    const observe = async (work: Work<JobEnd>, signal: AbortSignal): Promise<JobResult> => {
      const onAbort = (): void => work.stop();
      signal.addEventListener('abort', onAbort, { once: true });
      const end = await work.ended;
      await life.wait(0);
      signal.removeEventListener('abort', onAbort);
      return resultOf(end);
    };
    const begin = (job: RunnerJob): Work<JobEnd> => this.#beginJob(job, incarnation);
    const fleet = this.fleet?.client(life, (job): Program => {
      const work = begin(job);
      return { ended: work.ended.then(resultOf), stop: () => work.stop() };
    });
    return {
      run: async (given, observer) => {
        const { id } = given;
        life.enter();
        if (!this.#stage.isOwnKey(id, incarnation)) return EARLIER_JOB;
        const { ms, end } = this.#attemptOf(tokenIn(given), attemptIn(id));
        if (end === 'unreached') {
          await life.wait(ms);
          throw new RunnerError('runner_unavailable', 'no runner can be reached', { beforeDispatch: true });
        }
        if (fleet !== undefined) return await fleet.run(given, observer);
        const job = this.#jobs.get(id) ?? begin(given);
        this.#jobs.set(id, job);
        return await observe(job, observer.signal);
      },
      lookup: async (given, observer) => {
        const { id } = given;
        life.enter();
        if (!this.#stage.isOwnKey(id, incarnation)) return EARLIER_JOB;
        if (fleet !== undefined) return await fleet.lookup(given, observer);
        const job = this.#jobs.get(id);
        await life.wait(1);
        return job === undefined ? null : await observe(job, observer.signal);
      },
      callRelic: () => Promise.reject(new Error('this world has no relics')),
      stopRelics: () => Promise.resolve(),
      forgetWorkspace: () => Promise.resolve(),
      prewarm: () => undefined,
      health: () => Promise.resolve({}),
    };
  }

  /** Child sessions: the same key is the same child. */
  children(life: Life, incarnation: number): ChildSessions {
    return {
      run: async ({ key, message }, { signal, event }) => {
        life.enter();
        if (!this.#stage.isOwnKey(key, incarnation)) return childEnd(EARLIER, true);
        const cut = key.lastIndexOf('/');
        let child = this.#children.get(key);
        if (child === undefined) {
          const attempt = Number(key.slice(cut + 1));
          this.#effect(message, 'child', key.slice(0, cut), attempt, incarnation);
          child = this.#startChild(message, this.#attemptOf(message, attempt));
          this.#children.set(key, child);
        }
        const onAbort = (): void => child.stop();
        signal.addEventListener('abort', onAbort, { once: true });
        event({ type: 'agent_started', seq: 1 });
        const end = await child.ended;
        await life.wait(0);
        signal.removeEventListener('abort', onAbort);
        return end;
      },
    };
  }

  #beginJob(job: RunnerJob, incarnation: number): Work<JobEnd> {
    const { id, workspace } = job;
    const token = tokenIn(job);
    const attempt = attemptIn(id);
    const { ms, end } = this.#attemptOf(token, attempt);
    this.#effect(token, 'python', id.slice(0, id.lastIndexOf('/')), attempt, incarnation);
    const text = `${token} of ${id}`;
    this.#written.set(hashOf(bytesOf(text)), bytesOf(text));
    const left = leftBy(token, text, workspace);
    return this.#startJob(token, ms, end, this.#stage.broken.left?.(left) ?? left);
  }

  /** @param workspace what it leaves if it ends by itself */
  #startJob(token: string, ms: number, end: AttemptScript['end'], workspace: WorkspaceResult): Work<JobEnd> {
    const result = (how: JobResult['end'], exitCode: number | null): JobEnd => jobResult(token, how, exitCode);
    if (end === 'lost') return this.#work(ms, result('lost', null), result('killed', null));
    if (end === 'silent') return this.#work(null, result('lost', null), result('killed', null));
    const exited = result('exited', end === 'ok' || end === 'deaf' ? 0 : 1);
    return this.#work(ms, { ...exited, workspace }, result('killed', null));
  }

  #startChild(token: string, { ms, end }: AttemptScript): Work<ChildEnd> {
    const isGood = end === 'ok' || end === 'deaf' || end === 'lost';
    const child = childEnd(token, isGood);
    return this.#work(end === 'silent' ? null : ms, child, { ...child, status: 'cancelled' });
  }

  /** @param ms null: it ends only when it is stopped */
  #work<Result>(ms: number | null, result: Result, stopped: Result): Work<Result> {
    const { promise, resolve } = Promise.withResolvers<Result>();
    if (ms !== null) this.#stage.time.after(ms, () => resolve(result));
    return { ended: promise, stop: () => resolve(stopped) };
  }

  /** Answers after a time, as the attempt ends. An abort is answered at once, except by a deaf target. */
  async #answer<Outcome>(
    life: Life,
    signal: AbortSignal,
    ms: number,
    end: AttemptScript['end'],
    outcome: (how: AttemptScript['end'] | 'aborted') => Outcome,
  ): Promise<Outcome> {
    const { promise, resolve } = Promise.withResolvers<'time' | 'aborted'>();
    if (end !== 'silent') this.#stage.time.after(ms, () => resolve('time'));
    if (end !== 'deaf') signal.addEventListener('abort', () => resolve('aborted'), { once: true });
    const how = await promise;
    await life.wait(0);
    if (how === 'aborted') return outcome('aborted');
    if (end === 'throws') throw new Error('the executor threw');
    return outcome(end === 'deaf' ? 'ok' : end === 'lost' ? 'fails' : end);
  }

  #noteCall({ action, runtimeKey: key, attempt, answer }: ActionCall, incarnation: number): void {
    const asks = scriptOf(this.#stage.history.messages, action.id)?.attempts.some(({ end }) => end === 'asks');
    if (asks !== true) return;
    const isRecorded = this.#isStartRecorded(key, attempt);
    const given =
      answer === undefined
        ? null
        : { question: String(answer.state['question']), content: JSON.stringify(answer.content) };
    this.#stage.note({ type: 'tool_called', id: action.id, key, attempt, isRecorded, answer: given }, incarnation);
  }

  #effect(
    token: string,
    target: string,
    key: string,
    attempt: number,
    incarnation: number,
    given: JsonObject | null = null,
  ): void {
    const isRecorded = this.#isStartRecorded(key, attempt);
    const parameters = given === null ? null : JSON.stringify(given);
    const id = placeOf(token) === null ? null : token;
    this.#stage.note({ type: 'effect', id, token, target, key, attempt, isRecorded, parameters }, incarnation);
  }

  /** Whether the start of this attempt is on disk. */
  #isStartRecorded(runtimeKey: string, attempt: number): boolean {
    const [run, iteration, ordinal] = runtimeKey.split('/').slice(-3);
    // The start of a feed is not recorded.
    if (run === 'feed') return true;
    if (!this.#stage.disk.has('events')) return false;
    const rows = this.#stage.disk.exec(
      // Long parameters are in chunks; the attempt is at the beginning.
      `SELECT MIN(seq) AS seq FROM ${EVERY_EVENT} AS events WHERE type = 'action_started' AND run = ? AND json_extract(state, '$.key') = ?
         AND COALESCE(data, (SELECT text FROM chunks WHERE chunks.seq = events.seq AND field = 'data' AND part = 0))
           LIKE '{"attempt":' || ? || '%'`,
      [Number(run), `${iteration}/${ordinal}`, String(attempt)],
      false,
    );
    const seq = rows[0]?.['seq'];
    return typeof seq === 'number' && seq <= this.#stage.disk.durableSeq;
  }

  #attemptOf(token: string, attempt: number): AttemptScript {
    if (placeOf(token) === null) return FEED_ATTEMPT;
    const attempts = scriptOf(this.#stage.history.messages, token)?.attempts ?? [];
    return attempts[Math.min(attempt, attempts.length) - 1] ?? FEED_ATTEMPT;
  }
}
