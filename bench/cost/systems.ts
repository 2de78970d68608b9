/** The systems of `npm run bench:cost`, each in a workerd of its own, with the CPU time of that process. */
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { PACKAGE_ROOT } from '../../cli/project/folders.ts';
import { freePort, startService, stopService, waitUntilHealthy } from '../../cli/system/services.ts';
import type * as StageModule from '../../test/support/staged-system.ts';
import { descendants, largest } from '../sessions/host.ts';

export interface CostSystem extends AsyncDisposable {
  readonly name: string;
  readonly url: string;
  /** CPU time of workerd so far, in milliseconds. */
  cpuMs(): number;
}

const AGENT = `kind: Agent
version: "1.0"
name: bench_16
summary: Carries out the plans of the benchmark.
persona: You carry out plans.
import:
  tools: [work, call]
loop:
  max_parallel_actions: 16
`;

function tool(name: string, implementation: string, parameters: string): string {
  return `kind: Tool
version: "1.0"
name: ${name}
summary: A call of the benchmark.
implementation: ${implementation}
effects: idempotent
parameters:
  type: object
  properties: ${parameters}
`;
}

/**
 * The whole system, from the sources in `root`.
 *
 * @param toolHost host:port of the server of the HTTP tool
 */
export async function startOwn(name: string, root: string, modelUrl: string, toolHost: string): Promise<CostSystem> {
  const { stage } = (await import(
    pathToFileURL(join(root, 'test/support/staged-system.ts')).href
  )) as typeof StageModule;
  const staged = await stage({
    'agents/bench_16.yaml': AGENT,
    'tools/work.yaml': tool('work', '{ type: builtin, entrypoint: echo }', '{ q: { type: string }, of: {} }'),
    'tools/call.yaml': tool(
      'call',
      `{ type: http, url: "http://${toolHost}/{ms}", method: GET }`,
      '{ ms: { type: integer, default: 0 }, call: { type: string }, of: {} }',
    ),
  });
  try {
    const system = await staged.startSystem({
      port: await freePort(),
      runnerPort: await freePort(),
      stateDir: join(staged.root, 'state'),
      vars: { LLM_BASE_URL: modelUrl, LLM_MODEL: 'bench', ALLOW_HOSTS: toolHost },
      ownRunner: false,
      progress: () => undefined,
    });
    const pid = largest(descendants(system.services[0]?.process.pid ?? 0));
    return {
      name,
      url: system.url,
      cpuMs: () => cpuMsOf(pid),
      async [Symbol.asyncDispose]() {
        await system.stop();
        staged[Symbol.dispose]();
      },
    };
  } catch (fault) {
    staged[Symbol.dispose]();
    throw fault;
  }
}

/** Objects that only relay, and only call. */
export async function startBare(name: string, modelUrl: string): Promise<CostSystem> {
  const state = mkdtempSync(join(tmpdir(), 'cortex-cost-'));
  const port = await freePort();
  const service = startService(
    'workerd',
    process.execPath,
    [
      join(PACKAGE_ROOT, 'node_modules/wrangler/bin/wrangler.js'),
      'dev',
      `--config=${join(PACKAGE_ROOT, 'bench/cost/workerd/wrangler.toml')}`,
      '--ip=127.0.0.1',
      `--port=${port}`,
      '--inspector-port=0',
      `--persist-to=${state}`,
      `--var=LLM_BASE_URL:${modelUrl}`,
      '--show-interactive-dev-session=false',
      '--log-level=warn',
    ],
    {
      env: { ...process.env, CI: 'true', CLOUDFLARE_CF_FETCH_ENABLED: 'false', X_LOCAL_OBSERVABILITY: 'false' },
      cwd: PACKAGE_ROOT,
      echo: () => false,
    },
  );
  const stop = async (): Promise<void> => {
    await stopService(service);
    rmSync(state, { recursive: true, force: true });
  };
  const url = `http://127.0.0.1:${port}`;
  try {
    await waitUntilHealthy(service, `${url}/health`, 60_000);
  } catch (fault) {
    await stop();
    throw fault;
  }
  const pid = largest(descendants(service.process.pid ?? 0));
  return { name, url, cpuMs: () => cpuMsOf(pid), [Symbol.asyncDispose]: stop };
}

/** Nanoseconds of each thread where the kernel counts them, else the process's hundredths of a second. */
function cpuMsOf(pid: number): number {
  const tasks = `/proc/${pid}/task`;
  if (!existsSync(`/proc/${pid}/schedstat`)) return hundredthsOf(pid) * 10;
  let nanoseconds = 0;
  for (const task of readdirSync(tasks)) {
    const file = join(tasks, task, 'schedstat');
    if (existsSync(file)) nanoseconds += Number(readFileSync(file, 'utf8').split(' ')[0]);
  }
  return nanoseconds / 1e6;
}

/** User and system time. */
function hundredthsOf(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  // The name before the fields can contain spaces.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return Number(fields[11]) + Number(fields[12]);
}
