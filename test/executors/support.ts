/** Fakes at the ports that executors use. */
import { plainDeclaration } from '../../src/domain/action.ts';
import type { ActionDeclaration, ActionOutcome } from '../../src/domain/action.ts';
import type { Json, JsonObject } from '../../src/domain/json.ts';
import type { JobResult, RunnerClient, RunnerJob } from '../../src/domain/ports/runner.ts';
import type { VariableStore } from '../../src/domain/ports/session-stores.ts';
import type { ActionCall, ActionContext } from '../../src/executors/executor.ts';
import { ThreadShare, FairQueue } from '../../src/domain/fair-queue.ts';
import { Pacer } from '../../src/domain/work.ts';
import { VirtualClock } from '../../testing/virtual-clock.ts';
import { instantClock } from '../../testing/instant-clock.ts';

const action = plainDeclaration({ id: 'a', type: 'tool', mode: 'async', name: 'echo' });

export function callOf(
  parameters: JsonObject,
  changes: Partial<Omit<ActionCall, 'action'>> & { readonly action?: Partial<ActionDeclaration> } = {},
): ActionCall {
  return {
    runtimeKey: 'ses_1/1/0/0',
    attempt: 1,
    inputs: {},
    tool: null,
    timeoutMs: 60_000,
    budget: null,
    parameters,
    ...changes,
    action: { ...action, parameters, ...changes.action },
  };
}

export class MapStore implements VariableStore {
  readonly values = new Map<string, Json>();
  get(key: string): Json | undefined {
    return this.values.get(key);
  }
  set(key: string, value: Json): void {
    this.values.set(key, value);
  }
  delete(key: string): boolean {
    return this.values.delete(key);
  }
  entries(): readonly (readonly [string, Json])[] {
    return [...this.values];
  }
}

export interface TestContext extends ActionContext {
  readonly clock: VirtualClock;
  readonly variables: MapStore;
  readonly seen: JsonObject[];
  readonly abort: AbortController;
}

export function contextOf(changes: Partial<ActionContext> = {}): TestContext {
  const abort = new AbortController();
  const seen: JsonObject[] = [];
  const unexpected = (what: string) => () => Promise.reject(new Error(`unexpected use of ${what}`));
  return {
    abort,
    seen,
    signal: abort.signal,
    pacer: new Pacer(new ThreadShare(new FairQueue(instantClock()), () => null)),
    session: 'ses_1',
    progress: (data) => seen.push(data),
    internalActions: { enabled: true, allowed: null, blocked: [] },
    runner: null,
    children: { run: unexpected('children') },
    feeds: null,
    fetch: unexpected('fetch'),
    readHtml: unexpected('readHtml'),
    callModel: unexpected('callModel'),
    ...changes,
    clock: new VirtualClock(),
    variables: new MapStore(),
  };
}

/** A runner that answers every job with `result` and records the jobs. */
export function fakeRunner(
  result: Partial<JobResult> | ((job: RunnerJob) => Partial<JobResult>),
): RunnerClient & { readonly jobs: RunnerJob[] } {
  const jobs: RunnerJob[] = [];
  return {
    jobs,
    run: (job, { output }) => {
      jobs.push(job);
      const given = typeof result === 'function' ? result(job) : result;
      const full: JobResult = { end: 'exited', exitCode: 0, stdout: '', stderr: '', truncated: false, ...given };
      if (full.stdout !== '') output('stdout', full.stdout);
      if (full.stderr !== '') output('stderr', full.stderr);
      return Promise.resolve(full);
    },
    lookup: () => Promise.resolve(null),
    prewarm: () => undefined,
    callRelic: () => Promise.reject(new Error('unexpected use of a relic')),
    stopRelics: () => Promise.resolve(),
    forgetWorkspace: () => Promise.resolve(),
    health: () => Promise.resolve({ status: 'healthy' }),
  };
}

/** The error of an outcome, which must be a failure. */
export function errorOf(outcome: ActionOutcome): Extract<ActionOutcome, { ok: false }>['error'] {
  if (outcome.ok) throw new Error(`expected a failure, got ${JSON.stringify(outcome.output)}`);
  return outcome.error;
}
