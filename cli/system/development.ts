/** Runs the runner and the Worker on loopback for `cortex dev`, prints what is active, and stops both on a signal. */
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { resolve as resolvePath } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import pc from 'picocolors';
import { setAsideDamaged } from './damaged-databases.ts';
import { requireReadableState } from './earlier-state.ts';
import { hiddenThings } from './hidden-things.ts';
import { findLocalModel } from './local-model.ts';
import { readCodeTools } from '../project/code-tools.ts';
import { requireOwnFolder } from '../project/real-path.ts';
import { TEMPORARY } from './temporary-folder.ts';
import { checkManifests, projectFolders, ruleOfErrors } from '../project/manifest-files.ts';
import type { ProjectManifests } from '../project/manifest-files.ts';
import { watchManifests } from './manifest-watch.ts';
import type { Failure } from './supervisor.ts';
import { failureOf, supervise, RestartBudget, restart } from './supervisor.ts';
import { openBrowser } from './open-browser.ts';
import { endOrphans } from './orphans.ts';
import { LogLines } from './log-lines.ts';
import { portOf } from './ports.ts';
import type { PortName } from './ports.ts';
import { portIsFree, statusOf } from './services.ts';
import { startLimits } from './start-limits.ts';
import { startScreen } from './start-screen.ts';
import { starterGone } from './starter.ts';
import { lockState } from './state-lock.ts';
import { checkWorkerSettings, settingsOf } from './settings.ts';
import { parseRunnerUrls } from '../../src/executors/runner/list.ts';
import type { ApiKey } from '../../src/http/api-keys.ts';
import { programPath, PROJECT_ROOT, TOOLS } from '../project/folders.ts';
import { commandLine } from '../project/command-line.ts';
import { EXIT } from '../command.ts';
import type { CommandCall, ExitCode } from '../command.ts';
import { isSet } from '../option-values.ts';
import type { SystemSettings } from './settings.ts';
import type { SystemPlan } from './system.ts';
import { messageOf } from '../../src/domain/errors.ts';
import { planSystem } from './system.ts';
import type { WorkerHealth } from './system.ts';

/** @throws CannotStart, or UsageError for a setting that is not a port */
export async function runDevelopment(call: CommandCall): Promise<ExitCode> {
  return await serve(await prepare(call), call);
}

/** Something of this machine prevents the start. */
class CannotStart extends Error {
  constructor(message: string) {
    super(`${pc.red('Cannot start.')} ${message}`);
  }
}

/** What is checked and reserved before anything starts. */
interface Prepared {
  readonly settings: SystemSettings;
  readonly vars: Readonly<Record<string, string>>;
  readonly keys: readonly ApiKey[];
  readonly ports: Readonly<Record<PortName, number>>;
  readonly stateDir: string;
  readonly ownRunner: boolean;
  /** Releases the state folder. */
  readonly unlock: () => void;
}

async function requireFree(name: string, number: number): Promise<void> {
  if (await portIsFree(number)) return;
  throw new CannotStart(
    `Port ${number} is in use by another program.\n  Stop that program, or use another port: ${name}=${number + 100} ${commandLine('dev')}`,
  );
}

/** @throws CannotStart for a `.dev.vars` that cannot be read, or has unknown names */
function settingsBeforeStart(): SystemSettings {
  try {
    return settingsOf(PROJECT_ROOT, process.env);
  } catch (fault) {
    throw new CannotStart(messageOf(fault));
  }
}

/** @throws CannotStart for settings that have no effect */
function checkedKeys(vars: Readonly<Record<string, string>>): readonly ApiKey[] {
  try {
    return checkWorkerSettings(vars);
  } catch (fault) {
    throw new CannotStart(messageOf(fault));
  }
}

/** @throws CannotStart for a state folder of the project that leads out of it */
function requireState(stateDir: string): void {
  try {
    requireOwnFolder(resolvePath(PROJECT_ROOT, stateDir), TEMPORARY);
  } catch (fault) {
    throw new CannotStart(`${messageOf(fault)}.\n  For a state folder elsewhere, set CORTEX_STATE_DIR.`);
  }
}

/** Held while this process runs. @throws CannotStart if another process has it, or the folder cannot be used */
function lock(stateDir: string): () => void {
  let unlock: (() => void) | null;
  try {
    unlock = lockState(resolvePath(PROJECT_ROOT, stateDir));
  } catch (fault) {
    throw new CannotStart(messageOf(fault));
  }
  if (unlock !== null) return unlock;
  const start = commandLine('dev');
  throw new CannotStart(
    `${stateDir} is in use by another ${start}.\n  Stop it, or use another folder: CORTEX_STATE_DIR=${stateDir}-2 ${start}`,
  );
}

/** The settings, with the model of a local server if none is configured. */
async function settingsWithModel(settings: SystemSettings, tell: CommandCall['tell']): Promise<Record<string, string>> {
  const vars: Record<string, string> = { ...settings.worker };
  if (['LLM_PROVIDER', 'LLM_BASE_URL', 'LLM_API_KEY'].some((name) => (vars[name] ?? '') !== '')) return vars;
  const found = await findLocalModel(vars['LLM_MODEL'] ?? null);
  if (found === null) return vars;
  const name = found.vars['LLM_MODEL'] ?? '';
  tell(pc.dim(`found a local ${found.server}; using its model ${name} (LLM_PROVIDER=demo for the demo)`));
  return { ...vars, ...found.vars };
}

/** @throws CannotStart, UsageError for a setting that is not a port, or EngineError `schema_too_old` */
async function prepare({ tell }: CommandCall): Promise<Prepared> {
  const settings = settingsBeforeStart();
  const ports = { PORT: portOf(settings.start, 'PORT'), RUNNER_PORT: portOf(settings.start, 'RUNNER_PORT') };
  const stateDir = settings.start.CORTEX_STATE_DIR ?? '.cortex';
  const vars = await settingsWithModel(settings, tell);
  const ownRunner = vars['RUNNER_URLS'] === undefined;
  const keys = checkedKeys(vars);
  requireState(stateDir);
  requireReadableState(stateDir, resolvePath(PROJECT_ROOT, stateDir));
  const unlock = lock(stateDir);
  const orphans = await endOrphans(resolvePath(PROJECT_ROOT, stateDir));
  if (orphans !== null) tell(pc.yellow(`${orphans[0]?.toUpperCase() ?? ''}${orphans.slice(1)}: ended.`));
  if (ownRunner && ports.PORT === ports.RUNNER_PORT) {
    throw new CannotStart(`PORT and RUNNER_PORT are both ${ports.PORT}; they must differ.`);
  }
  await requireFree('PORT', ports.PORT);
  if (ownRunner) await requireFree('RUNNER_PORT', ports.RUNNER_PORT);
  const now = new Date().toISOString().replaceAll(/[:.]/g, '-');
  for (const file of setAsideDamaged(resolvePath(PROJECT_ROOT, stateDir, 'worker'), now)) {
    tell(pc.red(`A database was damaged. It was renamed to ${stateDir}/worker/${file} and replaced with a new one.`));
  }
  return { settings, vars, keys, ports, stateDir, ownRunner, unlock };
}

/** Starts and supervises the services until a signal, or until one of them has failed too often. */
async function serve(prepared: Prepared, { tell, print, json, values }: CommandCall): Promise<ExitCode> {
  const { settings, vars, keys, ports, stateDir, ownRunner, unlock } = prepared;
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
  const stopWithStarter = async (): Promise<void> => {
    await starterGone();
    stopping = true;
    stop('stop');
  };
  void stopWithStarter();

  const say = (line: string, isGood: boolean): void => tell(isGood ? pc.green(line) : pc.red(line));
  const progress = (message: string): void => tell(pc.dim(message));
  const logLines = new LogLines(() => new Date(), true);
  const system = planSystem({
    port: ports.PORT,
    ...(settings.start.CORTEX_BUILT_WORKER === undefined ? {} : { builtWorker: settings.start.CORTEX_BUILT_WORKER }),
    runnerPort: ports.RUNNER_PORT,
    stateDir,
    vars,
    ownRunner,
    runnerEnv: settings.runner,
    inspect: isSet({ values }, 'inspect'),
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

  const starts = supervised.map(startPart);
  // Each part is watched as soon as it serves, independently of the others.
  const watches = supervised.map(async ({ part, options }, at) => {
    await starts[at];
    return { part, failure: await supervise(part, options) };
  });
  for (const watch of watches) watch.catch(() => undefined);
  const health = await Promise.race([Promise.all(starts).then(() => readHealth(system, isStopping)), aborted]).catch(
    async (fault: unknown) => {
      if (stopping) return 'stop' as const;
      stopping = true;
      await system.stop();
      throw new CannotStart(messageOf(fault));
    },
  );
  if (health === 'stop') {
    await system.stop();
    await Promise.allSettled(starts);
    await system.stop();
    return EXIT.ok;
  }

  const folders = projectFolders(settings.start.CORTEX_MANIFESTS).filter((folder) => existsSync(folder));
  const check = (): ProjectManifests => checkManifests(folders, vars, readCodeTools(PROJECT_ROOT, 'of the user'));
  const loaded = check();
  const { problems } = loaded;
  if (problems.length > 0) {
    const faulty = [
      ...(problems.length > loaded.codeProblems ? folders : []),
      ...(loaded.codeProblems > 0 ? [TOOLS] : []),
    ];
    const what = `${faulty.map((folder) => `${folder.replace(/\/$/, '')}/`).join(', ')} ${faulty.length > 1 ? 'have' : 'has'} errors`;
    tell(pc.red(`${what}: ${ruleOfErrors(loaded)}. Everything else is active.`));
  }
  const external = ownRunner
    ? null
    : {
        urls: parseRunnerUrls(vars['RUNNER_URLS']).map(({ url }) => url),
        hasSecret: vars['RUNNER_SECRET'] !== undefined,
      };
  const manifests = { folders, errors: problems.length };
  print(
    json
      ? JSON.stringify({ url: system.url, status: health.status, model: health.model })
      : startScreen({ url: system.url, health, keys, hidden, stateDir, manifests, external }),
  );
  logLines.started();
  if (isSet({ values }, 'open')) void openBrowser(system.url, (line) => say(line, false));
  const all = existsSync(TOOLS) ? [...folders, TOOLS] : folders;
  const watched = all.map((folder, index) =>
    watchManifests(
      folder,
      () => {
        // wrangler builds by itself after changes in the folders that its configuration names
        if (index > 0 && folder !== TOOLS) {
          const env = { ...process.env, CORTEX_KEEP_BUNDLE: '1' };
          spawnSync(process.execPath, [programPath('cli/main'), 'build'], { cwd: PROJECT_ROOT, env });
        }
        return check();
      },
      say,
    ),
  );
  const ended = await Promise.race([aborted, ...watches]);
  stopping = true;
  const failed = ended === 'stop' || ended.failure === null ? null : `The ${ended.part.name} ${ended.failure.what}`;
  if (failed !== null) say(`${failed}. It failed too often and is not restarted.`, false);
  for (const unwatch of watched) unwatch();
  tell(pc.dim('stopping …'));
  await system.stop();
  unlock();
  return failed === null ? EXIT.ok : EXIT.failed;
}

/** Waits until the Worker reports `healthy`, or for `readyMs`. */
async function readHealth(system: SystemPlan, isStopping: () => boolean): Promise<WorkerHealth> {
  for (const until = Date.now() + startLimits.readyMs; !isStopping(); await delay(startLimits.startPollMs)) {
    const answer = await system.askHealth();
    const isReady = statusOf(answer) === 'healthy' || Date.now() > until;
    if (answer.type === 'answer' && answer.ok && isReady) return answer.body as WorkerHealth;
  }
  throw new Error('stopped');
}
