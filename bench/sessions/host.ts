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
  /** Of the inspector of the Worker's isolate. */
  readonly inspectorPort: number;
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

export interface HostOptions {
  /** Folder with the `wrangler.json` of the Worker. Default: the one with the Agents SDK. */
  readonly folder?: string;
  /** Whether the Worker also has the objects of wrangler.toml. Default: yes. */
  readonly withOurs?: boolean;
  readonly vars?: Readonly<Record<string, string>>;
}

export async function startHost(modelUrl: string, options: HostOptions = {}): Promise<Host> {
  const { folder = HERE, withOurs = true, vars = {} } = options;
  const state = mkdtempSync(join(tmpdir(), 'cortex-bench-'));
  const worker = await builtWorker(folder, withOurs);
  const port = await freePort();
  const inspectorPort = await freePort();
  const service = startService(
    'workerd',
    process.execPath,
    [
      join(PACKAGE_ROOT, 'node_modules/wrangler/bin/wrangler.js'),
      'dev',
      `--config=${join(worker, 'wrangler.json')}`,
      '--ip=127.0.0.1',
      `--port=${port}`,
      `--inspector-port=${inspectorPort}`,
      `--persist-to=${join(state, 'state')}`,
      `--var=LLM_BASE_URL:${modelUrl}`,
      '--var=LLM_MODEL:bench',
      ...Object.entries(vars).map(([name, value]) => `--var=${name}:${value}`),
      '--show-interactive-dev-session=false',
      '--log-level=warn',
    ],
    {
      // Without local tracing, which writes every request and statement to a file. Deployments do not have it.
      env: { ...process.env, CI: 'true', CLOUDFLARE_CF_FETCH_ENABLED: 'false', X_LOCAL_OBSERVABILITY: 'false' },
      cwd: worker,
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
  return { base, inspectorPort, usage: () => usageOf(workerd), stop };
}

const builds = new Map<string, Promise<string>>();

/** The folder of the built Worker, until the process ends: separate from the state, because files beside it are watched. */
async function builtWorker(folder: string, withOurs: boolean): Promise<string> {
  const known = builds.get(folder);
  if (known !== undefined) return await known;
  const to = mkdtempSync(join(tmpdir(), 'cortex-bench-'));
  process.on('exit', () => rmSync(to, { recursive: true, force: true }));
  const built = build(folder, to, withOurs).then(() => to);
  builds.set(folder, built);
  return await built;
}

/** Bundled once, so that no build runs during the measurement. */
async function build(from: string, to: string, withOurs: boolean): Promise<void> {
  execFileSync(process.execPath, ['cli/main.ts', 'build'], { cwd: PACKAGE_ROOT, stdio: 'ignore' });
  const wrangler = join(PACKAGE_ROOT, 'node_modules/wrangler/bin/wrangler.js');
  const args = [wrangler, 'deploy', '--dry-run', `--outdir=${to}`, `--config=${join(from, 'wrangler.json')}`];
  execFileSync(process.execPath, args, { cwd: from, stdio: ['ignore', 'ignore', 'inherit'] });
  const settings = JSON.parse(readFileSync(join(from, 'wrangler.json'), 'utf8')) as Objects;
  const { unstable_readConfig: readConfig } = await import('wrangler');
  const ours = readConfig({ config: join(PACKAGE_ROOT, 'wrangler.toml') });
  const built = {
    ...settings,
    main: 'worker.js',
    no_bundle: true,
    ...(withOurs && {
      durable_objects: { bindings: [...ours.durable_objects.bindings, ...settings.durable_objects.bindings] },
      migrations: [...ours.migrations, ...settings.migrations],
    }),
  };
  writeFileSync(join(to, 'wrangler.json'), JSON.stringify(built));
}

/** The objects of a benchmark in its `wrangler.json`. */
interface Objects {
  readonly durable_objects: { readonly bindings: readonly object[] };
  readonly migrations: readonly object[];
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
