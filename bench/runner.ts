/**
 * `npm run bench:runner`: the time from the request for an action to the first byte of the program's output in the
 * session's event stream; jobs per second; 200 concurrent jobs; remaining processes and containers; what a workspace costs; 1,000 jobs on several
 * runners.
 */
import { createHash, randomUUID } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createParser } from 'eventsource-parser';
import { sign } from 'hono/jwt';
import { freePort, startService, stopService, waitUntilHealthy } from '../cli/system/services.ts';
import { PACKAGE_ROOT } from '../cli/project/folders.ts';
import { connectEngine } from '../container-runner/sandbox/docker-engine.ts';
import { descendantsOf } from '../container-runner/sandbox/process-tree.ts';
import { writeBars } from './chart.ts';
import { percentile, table, writeSection } from './report.ts';
import { measureSeveral } from './runner/several.ts';
import { measureWorkspaces, type WorkspaceRow, workspaceTables } from './runner/workspace.ts';

const SAMPLES = Number(process.env['BENCH_SAMPLES'] ?? 40);
const WARM_UP = 4;
const AT_ONCE = 200;
const REST_MS = 60_000;
const PREWARM_LEAD_MS = 600;
const SECRET = randomUUID().repeat(2);
type Level = 'docker' | 'bubblewrap' | 'wasm';
/** `BENCH_LEVELS=docker` measures only that level. */
const LEVELS = (process.env['BENCH_LEVELS'] ?? 'docker bubblewrap wasm').split(' ') as Level[];
const TARGETS: Partial<Record<Level, number>> = { docker: 30, bubblewrap: 25 };
const PROGRAMS = {
  python: { kind: 'python', code: 'print("first byte")' },
  shell: { kind: 'shell', code: 'echo first byte' },
} as const;
type Program = keyof typeof PROGRAMS;

interface Row {
  readonly level: Level;
  readonly program: Program;
  readonly cold: readonly number[];
  readonly pooled: readonly number[];
  readonly prewarmed: readonly number[];
  readonly perSecond: number;
}
interface Burst {
  readonly level: Level;
  readonly accepted: number;
  readonly refused: number;
  readonly seconds: number;
  readonly ends: string;
  readonly left: string;
}

interface SeenEvent {
  readonly type: string;
  readonly job: string;
  readonly data: Record<string, unknown>;
}

/** A runner of one level, with the stream of one session. */
class Bench {
  readonly url: string;
  readonly pid: number;
  /** The label of its containers. */
  readonly owner: string;
  readonly session = `ses_${randomUUID()}`;
  readonly #waiting = new Map<string, (event: SeenEvent) => void>();

  constructor(url: string, pid: number, owner: string) {
    this.url = url;
    this.pid = pid;
    this.owner = owner;
  }

  async ask(method: string, target: string, body: unknown = ''): Promise<Response> {
    const text = body === '' ? '' : JSON.stringify(body);
    const now = Math.floor(Date.now() / 1_000);
    const claims = {
      aud: 'cortex-runner',
      iat: now,
      exp: now + 30,
      jti: randomUUID(),
      htm: method,
      htu: target,
      bod: createHash('sha256').update(text).digest('base64url'),
    };
    return await fetch(this.url + target, {
      method,
      headers: { authorization: `Bearer ${await sign(claims, SECRET, 'HS256')}` },
      ...(text === '' ? {} : { body: text }),
    });
  }

  /** Opens the stream for all jobs of the session. */
  async listen(): Promise<void> {
    const response = await this.ask('GET', `/events?session=${this.session}&after=0`);
    if (response.body === null) throw new Error(`GET /events: ${response.status}`);
    const parser = createParser({
      onEvent: ({ event, data }) => {
        const { job, data: payload } = JSON.parse(data) as { job: string; data: Record<string, unknown> };
        this.#waiting.get(job)?.({ type: event ?? '', job, data: payload });
      },
    });
    const decoder = new TextDecoder();
    void (async () => {
      for await (const chunk of response.body ?? []) parser.feed(decoder.decode(chunk, { stream: true }));
    })().catch(() => undefined);
  }

  /** Runs one job to its end; times in milliseconds since just before the request. */
  async run(body: Record<string, unknown>): Promise<{ readonly firstMs: number; readonly end: string }> {
    const id = randomUUID();
    let firstMs = Number.NaN;
    const ended = new Promise<string>((resolve) => {
      this.#waiting.set(id, ({ type, data }) => {
        if (type === 'stdout' && Number.isNaN(firstMs)) firstMs = performance.now() - startedAt;
        if (type === 'exited') resolve(String(data['end']));
      });
    });
    const startedAt = performance.now();
    const answer = await this.ask('PUT', `/jobs/${id}`, { session: this.session, ...body });
    if (answer.status === 429) {
      this.#waiting.delete(id);
      return { firstMs, end: 'refused' };
    }
    if (!answer.ok) throw new Error(`PUT: ${answer.status} ${await answer.text()}`);
    const end = await ended;
    this.#waiting.delete(id);
    return { firstMs, end };
  }
}

/** `BENCH_ONLY=workspace` or `several` measures only that part. */
const ONLY = process.env['BENCH_ONLY'];
if (ONLY === undefined || ONLY === 'several') {
  const several = await measureSeveral();
  if (process.env['BENCH_DRY'] !== '1')
    writeSection('Several runners', 'BENCH_ONLY=several npm run bench:runner', several);
  console.log(several);
  if (ONLY === 'several') process.exit();
}

const rows: Row[] = [];
const bursts: Burst[] = [];
const notes: string[] = [];
const workspaces: WorkspaceRow[] = [];
for (const level of LEVELS) {
  if (ONLY !== 'workspace') await measure(level);
  workspaces.push(...(await measureWorkspaces(level, Math.ceil(SAMPLES / 2))));
}
if (ONLY === 'workspace') {
  console.log(workspaceTables(workspaces));
  process.exit();
}

const svg = 'docs/benchmarks-runner.svg';
const shown = rows.map(({ level, program, cold, pooled, prewarmed }) => ({
  title: `${level}, ${program}`,
  bars: Object.entries({ cold, pooled, prewarmed })
    .map(([label, samples]) => ({ label, ms: percentile(samples, 0.5) }))
    .filter(({ ms }) => Number.isFinite(ms)),
}));
const most = Math.max(10, ...shown.flatMap(({ bars }) => bars.map(({ ms }) => ms)));
writeBars(
  join(PACKAGE_ROOT, svg),
  {
    title: 'From the closing tag to the first byte of output (p50)',
    note: 'Milliseconds on a logarithmic axis from 1 ms; shorter is better.',
  },
  shown.map(({ title, bars }) => ({
    title,
    bars: bars.map(({ label, ms }) => ({
      label,
      share: Math.log10(ms) / Math.log10(most),
      shown: `${ms.toFixed(1)} ms`,
    })),
  })),
);
const body = [
  "Time from just before the signed `PUT /jobs/{id}` is sent until the first byte of the program's output arrives on the session's",
  "event stream, by the client's clock, p50 / p95. It includes both HTTP requests, the writes of the ledger, the sandbox and the",
  'interpreter.',
  '',
  '- *cold*: no sandbox is ready.',
  '- *pooled*: the pool has a warm sandbox.',
  `- *prewarmed*: the pool is empty, and the session has requested a sandbox ${PREWARM_LEAD_MS} ms earlier, when its action was opened.`,
  '',
  table(
    ['sandbox', 'program', 'cold', 'pooled', 'prewarmed', 'target (pooled p50)', 'met', 'jobs/s'],
    rows.map(({ level, program, cold, pooled, prewarmed, perSecond }) => {
      const target = TARGETS[level];
      const met = target === undefined ? '' : percentile(pooled, 0.5) <= target ? 'yes' : 'no';
      return [
        level,
        program,
        figures(cold),
        figures(pooled),
        figures(prewarmed),
        target === undefined ? '' : `${target} ms`,
        met,
        perSecond.toFixed(1),
      ];
    }),
  ),
  '',
  `![From the closing tag to the first byte of output](${svg.replace('docs/', '')})`,
  '',
  `### ${AT_ONCE} jobs at once`,
  '',
  'Eight jobs run and 64 wait. The others are rejected with 429 before anything is recorded. The last column counts processes and',
  'containers that remain afterwards and belong neither to the runner nor to its pool.',
  '',
  table(
    ['sandbox', 'accepted', 'rejected with 429', 'all ended after', 'ends', 'left behind'],
    bursts.map(({ level, accepted, refused, seconds, ends, left }) => [
      level,
      String(accepted),
      String(refused),
      `${seconds.toFixed(1)} s`,
      ends,
      left,
    ]),
  ),
  '',
  '### Workspaces',
  '',
  workspaceTables(workspaces),
  ...notes.flatMap((note) => ['', note]),
].join('\n');
if (process.env['BENCH_DRY'] !== '1') writeSection('Runner', 'npm run bench:runner', body);
console.log(body);

function ms(value: number): string {
  return `${value.toFixed(1)} ms`;
}

/** p50 and p95. */
function figures(samples: readonly number[]): string {
  return samples.length === 0 ? '–' : `${ms(percentile(samples, 0.5))} / ${ms(percentile(samples, 0.95))}`;
}

async function measure(level: Level): Promise<void> {
  const alone = await withRunner(level, 0, async (bench) => {
    const samples: Partial<Record<Program, { readonly cold: number[]; readonly prewarmed: number[] }>> = {};
    for (const program of programs()) {
      samples[program] = {
        cold: await sample(bench, program, Math.ceil(SAMPLES / 4)),
        prewarmed: await sample(bench, program, Math.ceil(SAMPLES / 2), true),
      };
    }
    return samples;
  });
  if (alone === null) return;
  await withRunner(level, 4, async (bench) => {
    for (const program of programs()) {
      const pooled = await sample(bench, program, SAMPLES);
      const perSecond = await throughput(bench, program);
      const { cold = [], prewarmed = [] } = alone[program] ?? {};
      rows.push({ level, program, cold, pooled, prewarmed, perSecond });
      console.error(`${level} ${program}: ${figures(cold)} | ${figures(pooled)} | ${figures(prewarmed)}`);
    }
    bursts.push(await burst(bench, level));
  });
}

function programs(): Program[] {
  return Object.keys(PROGRAMS) as Program[];
}

/** One job after another, each after the pool is full and idle again. */
async function sample(bench: Bench, program: Program, count: number, prewarm = false): Promise<number[]> {
  const samples: number[] = [];
  for (let n = -WARM_UP; n < count; n += 1) {
    await settled(bench);
    if (prewarm) await bench.ask('POST', '/prewarm', { session: bench.session, kind: program });
    // the time in which a model writes a short action; waiting sandboxes load their interpreter meanwhile
    await new Promise((resolve) => setTimeout(resolve, PREWARM_LEAD_MS));
    const { firstMs, end } = await bench.run(PROGRAMS[program]);
    if (end !== 'exited') throw new Error(`${program} ended with ${end}`);
    if (n >= 0) samples.push(firstMs);
  }
  return samples;
}

async function throughput(bench: Bench, program: Program): Promise<number> {
  const jobs = 60;
  const startedAt = performance.now();
  let next = 0;
  async function worker(): Promise<void> {
    while (next < jobs) {
      next += 1;
      await bench.run(PROGRAMS[program]);
    }
  }
  await Promise.all(Array.from({ length: 8 }, worker));
  return (jobs / (performance.now() - startedAt)) * 1_000;
}

async function burst(bench: Bench, level: Level): Promise<Burst> {
  await settled(bench);
  // the process tree of the most recent start is complete only now
  await new Promise((resolve) => setTimeout(resolve, 2 * PREWARM_LEAD_MS));
  const before = await inventory(bench, level);
  const startedAt = performance.now();
  const results = await Promise.all(
    Array.from({ length: AT_ONCE }, () => bench.run({ kind: 'shell', code: 'sleep 0.2; echo done' })),
  );
  const seconds = (performance.now() - startedAt) / 1_000;
  const refused = results.filter(({ end }) => end === 'refused').length;
  const ends = Object.entries(Object.groupBy(results, ({ end }) => end))
    .filter(([end]) => end !== 'refused')
    .map(([end, list]) => `${end} ${list?.length ?? 0}`)
    .join(', ');
  await settled(bench);
  let left = '';
  // containers are removed after the end of their program
  for (let attempt = 0; attempt < 50; attempt += 1) {
    const after = await inventory(bench, level);
    left = `${Math.max(0, after.processes - before.processes)} processes, ${Math.max(0, after.containers - before.containers)} containers`;
    if (left.startsWith('0 ') && left.endsWith(' 0 containers')) break;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  return { level, accepted: AT_ONCE - refused, refused, seconds, ends, left };
}

/** Waits until every used pool is full and nothing runs. */
async function settled(bench: Bench): Promise<void> {
  for (const deadline = Date.now() + REST_MS; Date.now() < deadline;) {
    const health = (await (await fetch(`${bench.url}/health`)).json()) as {
      jobs: { running: number; queued: number };
      sandbox: { filling: boolean };
    };
    if (health.jobs.running + health.jobs.queued === 0 && !health.sandbox.filling) return;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  throw new Error('the runner does not come to rest');
}

/** The runner's processes, and its containers in the engine. */
async function inventory({ pid, owner }: Bench, level: Level): Promise<{ processes: number; containers: number }> {
  const filters = { label: [`cortex-edge.runner=${owner}`] };
  const containers =
    level === 'docker' ? (await (await connectEngine(null)).listContainers({ all: true, filters })).length : 0;
  return { processes: descendantsOf(pid).length, containers };
}

/** Null if the level is unavailable on this machine. */
async function withRunner<T>(level: Level, warm: number, body: (bench: Bench) => Promise<T>): Promise<T | null> {
  const stateDir = mkdtempSync(join(tmpdir(), 'cortex-bench-runner-'));
  const port = await freePort();
  const runner = startService('runner', process.execPath, ['container-runner/main.ts'], {
    cwd: PACKAGE_ROOT,
    env: {
      PATH: process.env['PATH'],
      RUNNER_PORT: String(port),
      RUNNER_SECRET: SECRET,
      CORTEX_STATE_DIR: stateDir,
      RUNNER_SANDBOX: level,
      RUNNER_WARM: String(warm),
      RUNNER_DRAIN_SECONDS: '0',
    },
    echo: () => false,
  });
  try {
    const url = `http://127.0.0.1:${port}`;
    await waitUntilHealthy(runner, `${url}/health`, 120_000);
    const identity = join(stateDir, 'runner', 'instance');
    const owner = existsSync(identity) ? readFileSync(identity, 'utf8') : '';
    const bench = new Bench(url, runner.process.pid ?? 0, owner);
    const { sandbox } = (await (await fetch(`${bench.url}/health`)).json()) as {
      sandbox: { active: Record<string, string | null>; levels: { level: string; missing: Record<string, string> }[] };
    };
    if (sandbox.active['python3'] !== level) {
      const missing = sandbox.levels.find((entry) => entry.level === level)?.missing['python3'];
      notes.push(`${level} does not run on this machine: ${missing ?? 'unknown'}.`);
      return null;
    }
    await bench.listen();
    return await body(bench);
  } finally {
    await stopService(runner, 20_000);
    rmSync(stateDir, { recursive: true, force: true });
  }
}
