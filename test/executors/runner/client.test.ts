/** The Worker's client with a real runner: cut connections, lost answers, aborts, refusals (R1, R7, R8). */
import { randomUUID } from 'node:crypto';
import { cpSync } from 'node:fs';

import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import { limits as runnerLimits } from '../../../container-runner/limits.ts';
import { FakeSandbox } from '../../../container-runner/test/support/fake-sandbox.ts';
import { SECRET, startRunner, type TestRunner } from '../../../container-runner/test/support/test-runner.ts';
import { limits } from '../../../src/domain/limits.ts';
import type { Clock } from '../../../src/domain/ports/clock.ts';
import type { JobResult, RunnerClient, RunnerJob } from '../../../src/domain/ports/runner.ts';
import {
  createRunnerClient,
  type RunnerClientOptions,
  type SingleRunner,
} from '../../../src/executors/runner/client.ts';
import { RunnerError } from '../../../src/executors/runner/error.ts';
import { eventually } from '../../support/eventually.ts';

/** A clock for the client and the runner that only the test advances. */
class ManualClock implements Clock {
  #now = Date.now();
  readonly #timers = new Set<{ readonly at: number; readonly callback: () => void }>();

  now(): number {
    return this.#now;
  }

  schedule(delayMs: number, callback: () => void): () => void {
    const timer = { at: this.#now + delayMs, callback };
    this.#timers.add(timer);
    return () => void this.#timers.delete(timer);
  }

  advance(ms: number): void {
    this.#now += ms;
    for (const timer of [...this.#timers].sort((a, b) => a.at - b.at)) {
      if (timer.at > this.#now || !this.#timers.delete(timer)) continue;
      timer.callback();
    }
  }

  get pending(): number {
    return this.#timers.size;
  }
}

interface Sent {
  readonly method: string;
  readonly path: string;
}

/** The network between the two, with errors that a test selects. */
class Wire {
  readonly sent: Sent[] = [];
  /** Called before a request is sent; throws to lose it. */
  before: (sent: Sent) => void = () => undefined;
  /** Called with the answer; throws to lose it. */
  after: (sent: Sent, response: Response) => Response = (_sent, response) => response;
  readonly #streams = new Set<AbortController>();
  #underWay = 0;

  readonly fetch = async (input: string, init: RequestInit): Promise<Response> => {
    const url = new URL(input);
    const sent = { method: init.method ?? 'GET', path: url.pathname + url.search };
    this.sent.push(sent);
    this.before(sent);
    if (url.pathname !== '/events') return this.after(sent, await this.#answered(input, init));
    const cut = new AbortController();
    this.#streams.add(cut);
    const signals = [cut.signal, ...(init.signal === null || init.signal === undefined ? [] : [init.signal])];
    const response = await fetch(input, { ...init, signal: AbortSignal.any(signals) });
    return this.after(sent, response);
  };

  /** Whether no request is pending, so that the clock can advance without a timeout. */
  get isQuiet(): boolean {
    return this.#underWay === 0;
  }

  async #answered(input: string, init: RequestInit): Promise<Response> {
    this.#underWay += 1;
    try {
      const response = await fetch(input, init);
      return new Response(response.status === 204 ? null : await response.arrayBuffer(), response);
    } finally {
      this.#underWay -= 1;
    }
  }

  /** Closes every open stream. */
  cut(): void {
    for (const stream of this.#streams) stream.abort();
    this.#streams.clear();
  }

  count(method: string, prefix: string): number {
    return this.sent.filter((request) => request.method === method && request.path.startsWith(prefix)).length;
  }
}

let sandbox: FakeSandbox;
let runner: TestRunner;
let wire: Wire;
let clock: ManualClock;
let client: SingleRunner;

function clientFor(changes: Partial<RunnerClientOptions> = {}): SingleRunner {
  return createRunnerClient({
    baseUrl: runner.url,
    key: { id: null, secret: SECRET },
    fetch: wire.fetch,
    clock,
    newNonce: randomUUID,
    ...changes,
  });
}

/** A client whose answers selected by `hold` arrive when they are released. */
function heldClient(hold: (method: string, url: string) => boolean): {
  readonly held: SingleRunner;
  readonly release: () => void;
} {
  const { promise, resolve } = Promise.withResolvers<void>();
  const held = clientFor({
    fetch: async (input, init) => {
      const response = await wire.fetch(input, init);
      if (!hold(init.method ?? 'GET', input)) return response;
      const text = await response.text();
      await promise;
      return new Response(text, response);
    },
  });
  return { held, release: resolve };
}

beforeEach(async () => {
  sandbox = new FakeSandbox();
  wire = new Wire();
  clock = new ManualClock();
  runner = await startRunner({ sandboxes: [sandbox], now: () => clock.now() });
  client = clientFor();
});
afterEach(async () => {
  wire.cut();
  await runner.close();
});

const job = (more: Partial<RunnerJob> = {}): RunnerJob => ({
  id: `ses_1/run_1/1/${randomUUID()}/1`,
  session: 'ses_1',
  kind: 'python',
  code: 'print(1)',
  runtime: null,
  inputs: { x: [1, 'é'] },
  limits: { timeoutMs: 60_000, memoryMb: null },
  ...more,
});

interface Running {
  readonly result: Promise<JobResult>;
  readonly output: string[];
  readonly stop: AbortController;
  settled: boolean;
}

function start(what: RunnerJob = job(), by: RunnerClient = client): Running {
  const output: string[] = [];
  const stop = new AbortController();
  const result = by.run(what, { signal: stop.signal, output: (stream, text) => output.push(`${stream}:${text}`) });
  const running: Running = { result, output, stop, settled: false };
  const settle = (): void => {
    running.settled = true;
  };
  // a test can handle the rejection later
  result.then(settle, settle);
  return running;
}

/** The nth program that the runner started. */
async function program(at: number): Promise<FakeSandbox['started'][number]> {
  return await eventually(() => {
    const started = sandbox.started[at];
    if (started === undefined) throw new Error(`only ${sandbox.started.length} programs were started`);
    return started;
  });
}

/** Advances the clock until the condition is true. */
async function untilSo(check: () => void | Promise<void>): Promise<void> {
  await eventually(async () => {
    if (wire.isQuiet) clock.advance(limits.runnerRetryMaxMs);
    await check();
  });
}

describe('a job', () => {
  test('[R3] progress of its image build is reported as it arrives, and is not part of its output', async () => {
    await runner.close();
    sandbox = new FakeSandbox('docker');
    runner = await startRunner({ sandboxes: [sandbox], now: () => clock.now() });
    const build = { base: 'python3', files: { 'main.py': '1' }, entrypoint: 'main.py', requirements: [] } as const;
    const running = start(job({ kind: 'tool', code: '', build }), clientFor());
    const started = await program(0);
    started.print('out');
    started.end();
    expect(await running.result).toMatchObject({ end: 'exited', stdout: 'out', stderr: '' });
    expect(running.output).toEqual(['build:building main.py\n', 'stdout:out']);
  });

  test('[R1] its output and its end are reported as they arrive', async () => {
    const running = start();
    const started = await program(0);
    started.print('one');
    await eventually(() => expect(running.output).toEqual(['stdout:one']));
    started.print('two');
    started.end({ exitCode: 3 });
    expect(await running.result).toEqual({
      end: 'exited',
      exitCode: 3,
      stdout: 'onetwo',
      stderr: '',
      truncated: false,
    });
    expect(running.output.join('')).toBe('stdout:onestdout:two');
  });

  test('[P14] the runner receives code and values separately', async () => {
    start(job({ kind: 'shell', code: 'echo $x' }));
    const { launch } = await program(0);
    expect(launch).toMatchObject({ source: 'echo $x', inputsJson: '{"x":[1,"é"]}', env: { x: '[1,"é"]' } });
  });

  test('[R1] a script tool sends its interpreter and its memory limit', async () => {
    start(job({ kind: 'tool', runtime: 'shell', limits: { timeoutMs: 1_234.5, memoryMb: 512 } }));
    expect((await program(0)).launch).toMatchObject({
      interpreter: 'shell',
      entry: 'tool',
      memoryMb: 512,
      timeoutMs: 1_235,
    });
  });

  test('[R1] the jobs of a session share one stream; another session has its own', async () => {
    const first = start();
    await program(0);
    const second = start();
    await program(1);
    const other = start(job({ session: 'ses_2' }));
    for (const at of [0, 1, 2]) (await program(at)).end();
    await Promise.all([first.result, second.result, other.result]);
    expect(wire.count('GET', '/events')).toBe(2);
    expect(wire.count('PUT', '/jobs')).toBe(3);
    expect(wire.count('GET', '/jobs')).toBe(0);
  });

  test('[R1] the stream stays open for a short time after a job, then closes', async () => {
    const first = start();
    (await program(0)).end();
    await first.result;
    clock.advance(limits.runnerLingerMs - 1);
    const second = start();
    (await program(1)).end();
    await second.result;
    expect(wire.count('GET', '/events')).toBe(1);
    clock.advance(limits.runnerLingerMs);
    const third = start();
    (await program(2)).end();
    await third.result;
    expect(wire.count('GET', '/events')).toBe(2);
    clock.advance(limits.runnerLingerMs);
    await eventually(() => expect(clock.pending).toBe(0));
  });

  test('[R7] every request has its own token', async () => {
    const tokens = new Set<string>();
    const spying = clientFor({
      fetch: (input, init) => {
        tokens.add(new Headers(init.headers).get('authorization') ?? '');
        return fetch(input, init);
      },
    });
    const running = start(job(), spying);
    (await program(0)).end();
    await running.result;
    expect(tokens.size).toBe(2);
  });
});

test('[R1] a job that has ended returns its result again, and does not run twice', async () => {
  const what = job();
  const first = start(what);
  const started = await program(0);
  started.print('once');
  started.end({ exitCode: 2 });
  await first.result;
  clock.advance(runnerLimits.recentMs + 1);
  expect(await start(what, clientFor()).result).toMatchObject({ end: 'exited', exitCode: 2, stdout: 'once' });
  expect(sandbox.started.length).toBe(1);
});

test('[R2] a prewarm hint reaches the runner, and the caller does not wait for it', async () => {
  const answered: number[] = [];
  wire.after = (_sent, response) => {
    answered.push(response.status);
    return response;
  };
  for (const kind of ['python', 'shell', 'docker'] as const) client.prewarm({ session: 'ses_1', kind, runtime: null });
  client.prewarm({ session: 'ses_1', kind: 'tool', runtime: 'node' });
  // the same for this runner without containers, which refuses the hint
  const statuses = (): number[] => answered.toSorted((one, other) => one - other);
  await eventually(() => expect(statuses()).toEqual([202, 202, 202, 422]));
  expect(wire.count('POST', '/prewarm')).toBe(4);
  wire.before = () => {
    throw new Error('gone');
  };
  client.prewarm({ session: 'ses_1', kind: 'python', runtime: null });
});

describe('an unreliable network', () => {
  test('[R1] a cut stream is resumed: every piece of output arrives once, in order', async () => {
    const running = start();
    const started = await program(0);
    for (const text of ['a', 'b', 'c', 'd']) {
      started.print(text);
      await untilSo(() => expect(running.output.join('')).toContain(text));
      wire.cut();
    }
    started.end();
    await untilSo(() => expect(wire.count('GET', '/jobs')).toBeGreaterThan(0));
    await untilSo(() => expect(running.settled).toBe(true));
    expect(await running.result).toMatchObject({ stdout: 'abcd' });
    expect(running.output).toEqual(['stdout:a', 'stdout:b', 'stdout:c', 'stdout:d']);
    expect(sandbox.started.length).toBe(1);
  });

  test('[R1] the result of a job that ended while the stream was cut is looked up', async () => {
    const running = start();
    const started = await program(0);
    started.print('before ');
    await eventually(() => expect(running.output.length).toBe(1));
    wire.before = ({ path }) => {
      if (path.startsWith('/events')) throw new Error('no way');
    };
    wire.cut();
    started.print('after');
    started.end({ exitCode: 1 });
    await untilSo(() => expect(running.settled).toBe(true));
    expect(await running.result).toMatchObject({ end: 'exited', exitCode: 1, stdout: 'before after' });
    expect(running.output.join('')).toBe('stdout:before stdout:after');
  });

  test('[R1] after a lost answer the request is repeated, with one execution', async () => {
    let lost = 0;
    wire.after = ({ method }, response) => {
      if (method !== 'PUT' || lost === 2) return response;
      lost += 1;
      throw new Error('the answer was lost');
    };
    const running = start();
    (await program(0)).end();
    await untilSo(() => expect(wire.count('PUT', '/jobs')).toBe(3));
    expect(await running.result).toMatchObject({ end: 'exited', exitCode: 0 });
    expect(sandbox.started.length).toBe(1);
  });

  test('[R1] a stream that is silent for too long counts as cut', async () => {
    // a stream that opens and sends nothing
    wire.after = ({ path }, response) =>
      path.startsWith('/events') && wire.count('GET', '/events') === 1 ? new Response(new ReadableStream()) : response;
    const running = start();
    (await program(0)).end();
    await eventually(() => expect(wire.count('GET', '/events')).toBe(1));
    clock.advance(limits.runnerSilenceMs);
    await untilSo(() => expect(running.settled).toBe(true));
    expect(await running.result).toMatchObject({ end: 'exited' });
  });

  test('[R1] the job is lost if the runner never comes back', async () => {
    const running = start();
    (await program(0)).print('half');
    await eventually(() => expect(running.output.length).toBe(1));
    wire.before = () => {
      throw new Error('gone');
    };
    wire.cut();
    await untilSo(() => expect(running.settled).toBe(true));
    expect(await running.result).toMatchObject({ end: 'lost', stdout: 'half' });
  });

  test('[R1] a restarted runner does not know the job: it is lost, and the next job runs', async () => {
    const anew = new FakeSandbox();
    const next = await startRunner({ sandboxes: [anew], now: () => clock.now() });
    let moved = false;
    const through = clientFor({
      fetch: (input, init) => wire.fetch(moved ? input.replace(runner.url, next.url) : input, init),
    });
    try {
      const first = start(job(), through);
      (await program(0)).print('half');
      await eventually(() => expect(first.output.length).toBe(1));
      moved = true;
      wire.cut();
      const second = start(job(), through);
      await untilSo(() => expect(first.settled).toBe(true));
      expect(await first.result).toMatchObject({ end: 'lost', stdout: 'half' });
      await eventually(() => expect(anew.started.length).toBe(1));
      anew.started[0]?.end({ exitCode: 9 });
      await untilSo(() => expect(second.settled).toBe(true));
      expect(await second.result).toMatchObject({ end: 'exited', exitCode: 9 });
    } finally {
      await next.close();
    }
  });
});

describe('a refusal', () => {
  test('[R8] a full runner: busy, before dispatch, with the time to wait', async () => {
    // Running jobs must not reach their timeout before the queue is full.
    const long = { timeoutMs: 600_000, memoryMb: null };
    const full = Array.from({ length: runnerLimits.jobsRunning + runnerLimits.jobsQueued }, () =>
      start(job({ limits: long })),
    );
    await eventually(async () => {
      const { jobs } = (await (await fetch(`${runner.url}/health`)).json()) as { jobs: { queued: number } };
      expect(jobs.queued).toBe(runnerLimits.jobsQueued);
    });
    const fault = await start().result.catch((thrown: unknown) => thrown);
    expect(fault).toBeInstanceOf(RunnerError);
    expect(fault).toMatchObject({
      code: 'runner_busy',
      beforeDispatch: true,
      retryAfterMs: runnerLimits.retryAfterSeconds * 1_000,
      details: { beforeDispatch: true, retryAfterMs: runnerLimits.retryAfterSeconds * 1_000 },
    });
    for (const { stop } of full) stop.abort();
  });

  test('[R7] a wrong secret is rejected without an execution', async () => {
    const fault = await start(
      job(),
      clientFor({ key: { id: null, secret: 'another secret of more than thirty-two characters' } }),
    ).result.catch((thrown: unknown) => thrown);
    expect(fault).toMatchObject({ code: 'runner_rejected', beforeDispatch: true, retryAfterMs: null });
    expect(sandbox.started).toEqual([]);
  });

  test('[R2] a job without a matching sandbox is rejected with the reason', async () => {
    const reason = 'needs a real machine';
    const other = await startRunner({
      sandboxes: [new FakeSandbox('wasm', { ok: false, reason })],
      now: () => clock.now(),
    });
    const by = clientFor({ baseUrl: other.url });
    await expect(start(job(), by).result).rejects.toThrow(reason);
    await other.close();
  });

  test('[R1] without a runner: unavailable, and certainly not dispatched', async () => {
    await runner.stop();
    const running = start();
    await untilSo(() => expect(wire.count('PUT', '/jobs')).toBe(limits.runnerAttempts));
    await expect(running.result).rejects.toMatchObject({ code: 'runner_unavailable', beforeDispatch: true });
    expect(await client.health()).toBeNull();
  });

  test('[S7] after a broken connection: unavailable, and it is unknown whether the job ran', async () => {
    wire.before = ({ method }) => {
      if (method === 'PUT') throw new Error('broken pipe');
    };
    const running = start();
    await untilSo(() => expect(wire.count('PUT', '/jobs')).toBe(limits.runnerAttempts));
    await expect(running.result).rejects.toMatchObject({ code: 'runner_unavailable', beforeDispatch: false });
  });

  test.each([
    ['a refused connection', () => Object.assign(new Error('refused'), { cause: { code: 'ECONNREFUSED' } })],
    ['a proxy error', () => new Response('no runner', { status: 503 })],
  ])('[S7] after a lost answer and then %s it is unknown whether the job ran', async (_name, next) => {
    // the runner accepts the job, and ends before it answers
    wire.after = ({ method }, response) => {
      if (method !== 'PUT') return response;
      if (wire.count('PUT', '/jobs') === 1) throw new Error('reset');
      const fault = next();
      if (fault instanceof Error) throw fault;
      return fault;
    };
    const running = start();
    await program(0);
    await untilSo(() => expect(running.settled).toBe(true));
    await expect(running.result).rejects.toMatchObject({ code: 'runner_unavailable', beforeDispatch: false });
  });
});

describe('an abort', () => {
  test('[R4] kills the job and settles at once with the output so far', async () => {
    const running = start();
    const started = await program(0);
    started.print('half');
    await eventually(() => expect(running.output.length).toBe(1));
    running.stop.abort(new Error('timeout'));
    expect(await running.result).toMatchObject({ end: 'killed', exitCode: null, stdout: 'half' });
    await eventually(() => expect(started.signals).toEqual(['TERM']));
  });

  test('[R4] before the runner’s answer kills the job', async () => {
    const { held, release } = heldClient((method) => method === 'PUT');
    const running = start(job(), held);
    const started = await program(0);
    running.stop.abort();
    expect(await running.result).toMatchObject({ end: 'killed' });
    release();
    await eventually(() => expect(started.signals).toEqual(['TERM']));
  });

  test('[R4] before the start sends nothing', async () => {
    const stopped = AbortSignal.abort(new Error('too late'));
    await expect(client.run(job(), { signal: stopped, output: () => undefined })).rejects.toThrow('too late');
    expect(wire.sent).toEqual([]);
  });

  test('[R4] repeats a kill that was lost', async () => {
    const running = start();
    const started = await program(0);
    let lost = false;
    wire.before = ({ method }) => {
      if (method !== 'DELETE' || lost) return;
      lost = true;
      throw new Error('lost');
    };
    running.stop.abort();
    await running.result;
    await untilSo(() => expect(started.signals).toEqual(['TERM']));
    expect(wire.count('DELETE', '/jobs')).toBe(2);
  });
});

describe('a lookup after a crash', () => {
  /** What a client of a new host requests for a job of the previous one. */
  function lookUp(what: RunnerJob): { readonly output: string[]; readonly stop: AbortController } & {
    readonly found: Promise<JobResult | null>;
  } {
    const output: string[] = [];
    const stop = new AbortController();
    const observe = { signal: stop.signal, output: (stream: string, text: string) => output.push(`${stream}:${text}`) };
    return { output, stop, found: clientFor().lookup({ id: what.id, session: what.session }, observe) };
  }

  test('[J2] an unknown job gives null', async () => {
    expect(await lookUp(job()).found).toBeNull();
  });

  test.each([
    ['a 404 from a proxy', () => new Response('no such host', { status: 404 })],
    ['a login page', () => new Response('<html>', { status: 200 })],
  ])('[J2] %s does not prove that the runner does not know the job', async (_name, answer) => {
    const what = job();
    start(what);
    const started = await program(0);
    started.end({ exitCode: 3 });
    wire.after = ({ method, path }, response) =>
      method === 'GET' && path.startsWith('/jobs') && wire.count('GET', '/jobs') === 1 ? answer() : response;
    const { found } = lookUp(what);
    let result: JobResult | null | undefined;
    void found.then((end) => (result = end));
    await untilSo(() => expect(result).toMatchObject({ end: 'exited', exitCode: 3 }));
  });

  test('[J2] a job that has ended gives its result with the whole output', async () => {
    const what = job();
    const running = start(what);
    const started = await program(0);
    started.print('all of it');
    started.end({ exitCode: 5 });
    await running.result;
    const { found, output } = lookUp(what);
    expect(await found).toEqual({ end: 'exited', exitCode: 5, stdout: 'all of it', stderr: '', truncated: false });
    expect(output).toEqual(['stdout:all of it']);
  });

  test('[J2] a running job is waited for, with its output from the beginning, once', async () => {
    const what = job();
    start(what);
    const started = await program(0);
    started.print('before ');
    const { found, output } = lookUp(what);
    await eventually(() => expect(output.join('')).toBe('stdout:before '));
    started.print('after');
    await eventually(() => expect(output).toEqual(['stdout:before ', 'stdout:after']));
    started.end({ exitCode: 0 });
    expect(await found).toMatchObject({ end: 'exited', exitCode: 0, stdout: 'before after' });
    expect(sandbox.started.length).toBe(1);
  });

  test('[J2] output that arrives during the lookup is neither lost nor duplicated', async () => {
    const what = job();
    start(what);
    const started = await program(0);
    started.print('one ');
    const second = clientFor();
    // the lookup answer arrives long after the stream has reported the end
    const { held, release } = heldClient((method, url) => method === 'GET' && url.includes('/jobs/'));
    const output: string[] = [];
    const found = held.lookup(what, {
      signal: new AbortController().signal,
      output: (_stream, text) => output.push(text),
    });
    await eventually(() => expect(wire.count('GET', '/jobs')).toBe(1));
    started.print('two ');
    started.print('three');
    started.end({ exitCode: 0 });
    await eventually(async () => expect((await second.record(what.id))?.['state']).toBe('ended'));
    release();
    expect(await found).toMatchObject({ end: 'exited', stdout: 'one two three' });
    expect(output.join('')).toBe('one two three');
  });

  test('[J2] a job that the runner lost is lost', async () => {
    const what = job();
    start(what);
    await program(0);
    // killed, so the end of the job was not recorded
    const { stateDir } = runner;
    const copy = `${stateDir}-copy`;
    cpSync(stateDir, copy, { recursive: true });
    const next = await startRunner({ sandboxes: [new FakeSandbox()], stateDir: copy, now: () => clock.now() });
    try {
      const by = clientFor({ baseUrl: next.url, fetch });
      const signal = new AbortController().signal;
      expect(await by.lookup(what, { signal, output: () => undefined })).toMatchObject({ end: 'lost' });
    } finally {
      await next.close();
    }
  });

  test('[J2] the job is lost if the runner stays unreachable for the time limit of a running job', async () => {
    const what = job();
    wire.before = () => {
      throw new Error('gone');
    };
    const { found } = lookUp(what);
    let result: JobResult | null = null;
    void found.then((end) => (result = end));
    await untilSo(() => expect(result).toMatchObject({ end: 'lost' }));
  });

  test('[R4] a cancel during the lookup kills the job', async () => {
    const what = job();
    start(what);
    const started = await program(0);
    const { found, stop } = lookUp(what);
    stop.abort();
    expect(await found).toMatchObject({ end: 'killed' });
    await eventually(() => expect(started.signals).toEqual(['TERM']));
  });
});
