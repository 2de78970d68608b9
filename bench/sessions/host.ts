/** The workerd of all contestants, and the operating system's statistics of its process. */
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort, startService, stopService, waitUntilHealthy } from '../../cli/system/services.ts';
import { PACKAGE_ROOT } from '../../cli/project/folders.ts';

const HERE = join(PACKAGE_ROOT, 'bench/sessions');
const PEER = join(HERE, 'peer');

export interface Host {
  readonly base: string;
  /** Resident memory of workerd in MiB, and its CPU time in ms. */
  usage(): { readonly memoryMb: number; readonly cpuMs: number };
  stop(): Promise<void>;
}

/** Package and version of the SDK. */
export function peerVersion(): string {
  const { version } = JSON.parse(readFileSync(join(PEER, 'node_modules/@cloudflare/ai-chat/package.json'), 'utf8')) as {
    version: string;
  };
  return version;
}

/** Installs the SDK once; it is not a dependency of the project. */
export function installPeer(): void {
  const marker = join(PEER, 'node_modules/.package-lock.json');
  if (existsSync(marker) && statSync(marker).mtimeMs >= statSync(join(PEER, 'package.json')).mtimeMs) return;
  console.error('installing the Agents SDK (once) …');
  const npm = spawnSync('npm', ['install', '--no-workspaces', '--ignore-scripts', '--loglevel=error'], {
    cwd: PEER,
    stdio: ['ignore', 'inherit', 'inherit'],
    shell: process.platform === 'win32',
  });
  if (npm.status !== 0) throw new Error(`npm install in ${PEER} failed`);
}

/** @param folder of a `wrangler.json`. Default: that of the contestants */
export async function startHost(modelUrl: string, folder = HERE): Promise<Host> {
  const state = mkdtempSync(join(tmpdir(), 'cortex-bench-'));
  // Separate from the state, because files beside the Worker are watched.
  const built = join(state, 'built');
  build(built, folder);
  const port = await freePort();
  const service = startService(
    'workerd',
    process.execPath,
    [
      join(PACKAGE_ROOT, 'node_modules/wrangler/bin/wrangler.js'),
      'dev',
      `--config=${join(built, 'wrangler.json')}`,
      '--ip=127.0.0.1',
      `--port=${port}`,
      '--inspector-port=0',
      `--persist-to=${join(state, 'state')}`,
      `--var=LLM_BASE_URL:${modelUrl}`,
      '--var=LLM_MODEL:bench',
      '--show-interactive-dev-session=false',
      '--log-level=warn',
    ],
    {
      // Without local tracing, which writes every request and statement to a file. Deployments do not have it.
      env: { ...process.env, CI: 'true', CLOUDFLARE_CF_FETCH_ENABLED: 'false', X_LOCAL_OBSERVABILITY: 'false' },
      cwd: built,
      echo: () => false,
    },
  );
  const base = `http://127.0.0.1:${port}`;
  const stop = async (): Promise<void> => {
    await stopService(service);
    rmSync(state, { recursive: true, force: true });
  };
  try {
    await waitUntilHealthy(service, `${base}/health`, 60_000);
  } catch (fault) {
    await stop();
    throw fault;
  }
  const workerd = largest(descendants(service.process.pid ?? 0));
  return { base, usage: () => usageOf(workerd), stop };
}

/** Bundled once, so that no build runs during the measurement. */
function build(to: string, folder: string): void {
  execFileSync(process.execPath, ['cli/main.ts', 'build'], { cwd: PACKAGE_ROOT, stdio: 'ignore' });
  const wrangler = join(PACKAGE_ROOT, 'node_modules/wrangler/bin/wrangler.js');
  const args = [wrangler, 'deploy', '--dry-run', `--outdir=${to}`, `--config=${join(folder, 'wrangler.json')}`];
  execFileSync(process.execPath, args, { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] });
  const settings = JSON.parse(readFileSync(join(folder, 'wrangler.json'), 'utf8')) as object;
  writeFileSync(join(to, 'wrangler.json'), JSON.stringify({ ...settings, main: 'worker.js', no_bundle: true }));
}

/** All descendants of this process. */
export function descendants(pid: number): number[] {
  const listed = execFileSync('ps', ['-eo', 'pid=,ppid=,comm=']).toString().trim().split('\n');
  const rows = listed.map((line) => line.trim().split(/\s+/));
  const found: number[] = [];
  const add = (parent: number): void => {
    for (const [child, of, name] of rows) {
      if (Number(of) !== parent) continue;
      if (name?.startsWith('workerd') === true) found.push(Number(child));
      add(Number(child));
    }
  };
  add(pid);
  return found;
}

/** If there are several workerds, the largest one runs our Worker. */
export function largest(pids: readonly number[]): number {
  const sorted = pids.toSorted((a, b) => usageOf(b).memoryMb - usageOf(a).memoryMb);
  const [pid] = sorted;
  if (pid === undefined) throw new Error('no workerd was found');
  return pid;
}

function usageOf(pid: number): { memoryMb: number; cpuMs: number } {
  const [rss = '', time = ''] = execFileSync('ps', ['-o', 'rss=,cputimes=', '-p', String(pid)])
    .toString()
    .trim()
    .split(/\s+/);
  const stat = existsSync(`/proc/${pid}/stat`) ? readFileSync(`/proc/${pid}/stat`, 'utf8') : null;
  // User and system time in hundredths of a second; the name before them can contain spaces.
  const fields = stat?.slice(stat.lastIndexOf(')') + 2).split(' ');
  const cpuMs = fields === undefined ? Number(time) * 1_000 : (Number(fields[11]) + Number(fields[12])) * 10;
  return { memoryMb: Number(rss) / 1_024, cpuMs };
}
