/**
 * `npm run bench:reload`: how long a change in a project takes to count while `cortex dev` runs, from the write of the file to the
 * first answer with it. The limit is a Worker of one line under the same wrangler. Build the package first (`npm run package`).
 */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { PACKAGE_ROOT } from '../cli/project/folders.ts';
import { freePort } from '../cli/system/services.ts';
import { percentile, table, writeSection } from './report.ts';

const CHANGES = 7;
const POLL_MS = 20;
const MOST_MS = 60_000;

const folder = mkdtempSync(join(tmpdir(), 'cortex-reload-'));
const started: ChildProcess[] = [];

/** Beside the packages of this repository, with the built package. */
function makeProject(): string {
  const project = join(folder, 'project');
  cpSync(join(PACKAGE_ROOT, 'template'), project, { recursive: true });
  const modules = join(project, 'node_modules');
  mkdirSync(modules);
  for (const name of readdirSync(join(PACKAGE_ROOT, 'node_modules'))) {
    if (name !== 'cortex-edge') symlinkSync(join(PACKAGE_ROOT, 'node_modules', name), join(modules, name));
  }
  cpSync(join(PACKAGE_ROOT, 'dist/package'), join(modules, 'cortex-edge'), { recursive: true });
  return project;
}

function makeWorker(): string {
  const worker = join(folder, 'worker');
  mkdirSync(worker);
  writeFileSync(
    join(worker, 'wrangler.toml'),
    'name = "limit"\nmain = "worker.ts"\ncompatibility_date = "2026-10-01"\n',
  );
  writeFileSync(join(worker, 'worker.ts'), 'export default { fetch: () => new Response("version 0") };\n');
  return worker;
}

async function start(
  args: readonly string[],
  cwd: string,
  env: Readonly<Record<string, string>>,
  url: string,
): Promise<void> {
  const child = spawn(process.execPath, args, {
    cwd,
    env: { ...process.env, CI: 'true', WRANGLER_SEND_METRICS: 'false', CLOUDFLARE_CF_FETCH_ENABLED: 'false', ...env },
    stdio: 'ignore',
    detached: true,
  });
  started.push(child);
  await until(async () => (await fetch(url)).ok);
}

async function until(isSo: () => Promise<boolean>): Promise<number> {
  const began = performance.now();
  while (performance.now() - began < MOST_MS) {
    if (await isSo().catch(() => false)) return performance.now() - began;
    await delay(POLL_MS);
  }
  throw new Error('the change never counted');
}

/** @param change writes the version into a file @param seen whether an answer has it */
async function measure(
  change: (version: number) => void,
  seen: (version: number) => Promise<boolean>,
): Promise<number[]> {
  const times: number[] = [];
  for (let version = 1; version <= CHANGES; version += 1) {
    change(version);
    times.push(await until(() => seen(version)));
    // a watcher may still be busy with the change before
    await delay(1_000);
  }
  return times;
}

function replace(file: string, pattern: RegExp, by: string): void {
  writeFileSync(file, readFileSync(file, 'utf8').replace(pattern, by));
}

const rowOf = (name: string, times: readonly number[], limit: number): string[] => [
  name,
  percentile(times, 0.5).toFixed(0),
  Math.max(...times).toFixed(0),
  (percentile(times, 0.5) / limit).toFixed(1),
];

try {
  const [port, runnerPort, limitPort] = [await freePort(), await freePort(), await freePort()];
  const worker = makeWorker();
  const wrangler = join(PACKAGE_ROOT, 'node_modules/wrangler/bin/wrangler.js');
  const limitUrl = `http://127.0.0.1:${limitPort}`;
  await start([wrangler, 'dev', `--port=${limitPort}`, '--inspector-port=0'], worker, {}, limitUrl);
  const limit = await measure(
    (version) => replace(join(worker, 'worker.ts'), /version \d+/, `version ${version}`),
    async (version) => (await (await fetch(limitUrl)).text()) === `version ${version}`,
  );

  const project = makeProject();
  const url = `http://127.0.0.1:${port}`;
  const program = join(project, 'node_modules/cortex-edge/dist/cli/main.js');
  await start([program, 'dev'], project, { PORT: String(port), RUNNER_PORT: String(runnerPort) }, `${url}/health`);
  const manifest = await measure(
    (version) =>
      replace(join(project, 'manifests/agents/assistant.yaml'), /^summary: .*$/m, `summary: Version ${version}.`),
    async (version) => (await (await fetch(`${url}/agents`)).text()).includes(`Version ${version}.`),
  );
  const tool = await measure(
    (version) =>
      replace(join(project, 'tools/days_between.ts'), /description: '.*'/, `description: 'Version ${version}.'`),
    async (version) => (await (await fetch(`${url}/agents/assistant/prompt`)).text()).includes(`Version ${version}.`),
  );
  const base = percentile(limit, 0.5);
  const rows = [
    rowOf('a Worker of one line (limit)', limit, base),
    rowOf('a manifest', manifest, base),
    rowOf('a code tool', tool, base),
  ];
  const text = table(['changed', 'p50 ms', 'longest ms', 'of the limit'], rows);
  writeSection(
    'Reload',
    'npm run package && npm run bench:reload',
    `From the write of a file to the first answer with the change, with \`cortex dev\` in a project of the template. wrangler starts workerd
again for every change, and this takes more than half of the time: wrangler's library copies the whole configuration for every 4 KiB
that it appends, and the configuration contains the Worker. Most of the rest is the build of the project.\n\n${text}`,
  );
  console.log(text);
} finally {
  for (const { pid } of started) if (pid !== undefined) process.kill(-pid, 'SIGINT');
  await delay(3_000);
  rmSync(folder, { recursive: true, force: true });
}
