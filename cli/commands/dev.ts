/**
 * `npm start`: runs the runner and the Worker on loopback, prints what is active, and stops both on Ctrl-C. With
 * `npm start -- --open`, it opens the console in a browser.
 */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { resolve as resolvePath } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import pc from 'picocolors';
import { setAsideDamaged } from '../system/damaged-databases.ts';
import { hiddenThings } from '../system/hidden-things.ts';
import { findLocalModel } from '../system/local-model.ts';
import { checkManifests, projectFolders } from '../project/manifest-files.ts';
import { watchManifests } from '../system/manifest-watch.ts';
import type { Failure } from '../system/supervisor.ts';
import { failureOf, supervise, RestartBudget, restart } from '../system/supervisor.ts';
import { openBrowser } from '../system/open-browser.ts';
import { endOrphans } from '../system/orphans.ts';
import { LogLines } from '../system/log-lines.ts';
import { portIsFree, statusOf } from '../system/services.ts';
import { startLimits } from '../system/start-limits.ts';
import { startScreen } from '../system/start-screen.ts';
import { starterGone } from '../system/starter.ts';
import { lockState } from '../system/state-lock.ts';
import { checkWorkerSettings, settingsOf } from '../system/settings.ts';
import { parseRunnerUrls } from '../../src/executors/runner/list.ts';
import type { ApiKey } from '../../src/http/api-keys.ts';
import { PROJECT_ROOT } from '../project/folders.ts';
import { planSystem } from '../system/system.ts';
import type { WorkerHealth } from '../system/system.ts';

function port(name: 'PORT' | 'RUNNER_PORT', fallback: number): number {
  const text = settings.start[name];
  if (text === undefined) return fallback;
  const value = Number(text);
  if (Number.isInteger(value) && value > 0 && value < 65_536) return value;
  fail(`${name}=${text} is not a valid port (1-65535).`);
}

function fail(message: string): never {
  console.error(`${pc.red('Cannot start.')} ${message}`);
  process.exit(1);
}

async function requireFree(name: string, number: number): Promise<void> {
  if (await portIsFree(number)) return;
  fail(
    `Port ${number} is in use by another program.\n  Stop that program, or use another port: ${name}=${number + 100} npm start`,
  );
}

// Ignore errors of a closed reader (`npm start | head`): this process must live to stop the services.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);

/** @throws nothing: exits with 2 for an unknown option */
function readOptions(): { readonly open?: boolean } {
  try {
    return parseArgs({ options: { open: { type: 'boolean' } } }).values;
  } catch (fault) {
    const message = fault instanceof Error ? fault.message.split('.')[0] : String(fault);
    console.error(`${message}\nusage: npm start [-- --open]   (--open opens the console in a browser)`);
    process.exit(2);
  }
}

const { open } = readOptions();
const settings = settingsOf(PROJECT_ROOT, process.env);
const workerPort = port('PORT', 8787);
const runnerPort = port('RUNNER_PORT', 8790);
const stateDir = settings.start.CORTEX_STATE_DIR ?? '.cortex';
const vars: Record<string, string> = { ...settings.worker };
if (settings.unknown.length > 0) {
  console.error(
    pc.red(`.dev.vars: unknown settings ${settings.unknown.join(', ')} (see docs/operations.md, Settings)`),
  );
}
const configured = ['LLM_PROVIDER', 'LLM_BASE_URL', 'LLM_API_KEY'].some((name) => (vars[name] ?? '') !== '');
const found = configured ? null : await findLocalModel(vars['LLM_MODEL'] ?? null);
if (found !== null) {
  Object.assign(vars, found.vars);
  console.error(
    pc.dim(
      `found a local ${found.server}; using its model ${found.vars['LLM_MODEL'] ?? ''} (LLM_PROVIDER=demo for the demo)`,
    ),
  );
}
const ownRunner = vars['RUNNER_URLS'] === undefined;

function checkedKeys(): readonly ApiKey[] {
  try {
    return checkWorkerSettings(vars);
  } catch (fault) {
    fail(fault instanceof Error ? fault.message : String(fault));
  }
}
const keys = checkedKeys();

/** Held while this process runs. If the folder cannot be locked at all, the services report the cause. */
function lock(): (() => void) | null {
  try {
    return lockState(resolvePath(PROJECT_ROOT, stateDir));
  } catch {
    return () => undefined;
  }
}
const unlock = lock();
if (unlock === null) {
  fail(
    `${stateDir} is in use by another npm start.\n  Stop it, or use another folder: CORTEX_STATE_DIR=${stateDir}-2 npm start`,
  );
}

const orphans = await endOrphans(resolvePath(PROJECT_ROOT, stateDir));
if (orphans !== null) console.error(pc.yellow(`${orphans[0]?.toUpperCase() ?? ''}${orphans.slice(1)}: ended.`));
if (ownRunner && workerPort === runnerPort) fail(`PORT and RUNNER_PORT are both ${workerPort}; they must differ.`);
await requireFree('PORT', workerPort);
if (ownRunner) await requireFree('RUNNER_PORT', runnerPort);

const damaged = setAsideDamaged(
  resolvePath(PROJECT_ROOT, stateDir, 'worker'),
  new Date().toISOString().replaceAll(/[:.]/g, '-'),
);
for (const file of damaged) {
  console.error(
    pc.red(`A database was damaged. It was renamed to ${stateDir}/worker/${file} and replaced with a new one.`),
  );
}

const hidden = hiddenThings(resolvePath(PROJECT_ROOT, stateDir, 'worker'), keys);

let stopping = false;
const { promise: aborted, resolve: stop } = Promise.withResolvers<'stop'>();
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => {
    if (stopping) process.exit(1);
    stopping = true;
    stop('stop');
  });
}
void stopWithStarter();

async function stopWithStarter(): Promise<void> {
  await starterGone();
  stopping = true;
  stop('stop');
}

const say = (line: string, isGood: boolean): void => console.error(isGood ? pc.green(line) : pc.red(line));
const progress = (message: string): void => console.error(pc.dim(message));
const logLines = new LogLines(() => new Date(), true);
const system = planSystem({
  port: workerPort,
  ...(settings.start.CORTEX_BUILT_WORKER === undefined ? {} : { builtWorker: settings.start.CORTEX_BUILT_WORKER }),
  runnerPort,
  stateDir,
  vars,
  ownRunner,
  runnerEnv: settings.runner,
  progress,
  logLines,
});
const isStopping = (): boolean => stopping;
const supervised = system.parts.map((part) => ({
  part,
  options: {
    budget: new RestartBudget(Date.now),
    say,
    failed: ({ type }: Failure): void => {
      if (part.name === 'Worker' && type === 'frozen') system.lives.froze();
    },
    seen: (phase: 'answers' | 'silent'): void => {
      if (part.name === 'Worker') system.lives.seen(phase);
    },
    isStopping,
  },
}));

/** Restarts a part that freezes during its start. A part that exits has a permanent error, so it is not restarted. */
async function startPart({ part, options }: (typeof supervised)[number]): Promise<void> {
  try {
    await part.start();
  } catch (fault) {
    const failure = failureOf(fault);
    if (!isStopping()) options.failed(failure);
    if (failure.type === 'died' || isStopping()) throw fault;
    if ((await restart(part, failure, options)) !== null) throw fault;
  }
}

/** Waits until the Worker reports `healthy`, or for `readyMs`. */
async function readHealth(): Promise<WorkerHealth> {
  for (const until = Date.now() + startLimits.readyMs; !isStopping(); await delay(startLimits.startPollMs)) {
    const answer = await system.askHealth();
    const isReady = statusOf(answer) === 'healthy' || Date.now() > until;
    if (answer.type === 'answer' && answer.ok && isReady) return answer.body as WorkerHealth;
  }
  throw new Error('stopped');
}

const starts = supervised.map(startPart);
// Each part is watched as soon as it serves, independently of the others.
const watches = supervised.map(async ({ part, options }, at) => {
  await starts[at];
  return { part, failure: await supervise(part, options) };
});
for (const watch of watches) watch.catch(() => undefined);
const health = await Promise.race([Promise.all(starts).then(readHealth), aborted]).catch(async (fault: unknown) => {
  if (stopping) return 'stop' as const;
  stopping = true;
  await system.stop();
  return fail(fault instanceof Error ? fault.message : String(fault));
});
if (health === 'stop') {
  await system.stop();
  await Promise.allSettled(starts);
  await system.stop();
  process.exit(0);
}

const folders = projectFolders(settings.start.CORTEX_MANIFESTS).filter((folder) => existsSync(folder));
const { problems } = checkManifests(folders, vars);
if (problems.length > 0) {
  const what = `${folders.map((folder) => `${folder.replace(/\/$/, '')}/`).join(', ')} has errors`;
  const rule = 'what has errors keeps its previous version, if it has one; everything else is active';
  console.error(pc.red(`${what}: ${rule}.`));
}
const external = ownRunner
  ? null
  : {
      urls: parseRunnerUrls(vars['RUNNER_URLS']).map(({ url }) => url),
      hasSecret: vars['RUNNER_SECRET'] !== undefined,
    };
const manifests = { folders, errors: problems.length };
console.log(startScreen({ url: system.url, health, keys, hidden, stateDir, manifests, external }));
logLines.started();
if (open === true) void openBrowser(system.url, (line) => say(line, false));
const watched = folders.map((folder, index) =>
  watchManifests(
    folder,
    () => {
      // wrangler builds after a change in the first folder only
      if (index > 0) {
        const env = { ...process.env, CORTEX_KEEP_BUNDLE: '1' };
        spawnSync(process.execPath, ['cli/project/build.ts'], { cwd: PROJECT_ROOT, env });
      }
      return checkManifests(folders, vars);
    },
    (line, good) => console.error(good ? pc.green(line) : pc.red(line)),
  ),
);
const ended = await Promise.race([aborted, ...watches]);
stopping = true;
const failed = ended === 'stop' || ended.failure === null ? null : `The ${ended.part.name} ${ended.failure.what}`;
if (failed !== null) say(`${failed}. It failed too often and is not restarted.`, false);
for (const unwatch of watched) unwatch();
console.error(pc.dim('stopping …'));
await system.stop();
unlock();
process.exit(failed === null ? 0 : 1);
