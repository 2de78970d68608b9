/** `npm start`: the runner and the Worker on loopback, one screen that says what is active, a clean stop on Ctrl-C. */
import { resolve as resolvePath } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import pc from 'picocolors';
import { findLocalModel } from './local-model.ts';
import { checkManifests } from './manifest-files.ts';
import { watchManifests } from './manifest-watch.ts';
import { parseRunnerUrls } from '../src/executors/runner-list.ts';
import { portIsFree } from './services.ts';
import { lockState } from './state-lock.ts';
import { readVars, ROOT, startSystem } from './system.ts';
import type { System, WorkerHealth } from './system.ts';

function port(name: string, fallback: number): number {
  const text = process.env[name] ?? '';
  if (text === '') return fallback;
  const value = Number(text);
  if (Number.isInteger(value) && value > 0 && value < 65_536) return value;
  fail(`${name}=${text} is not a port (1-65535).`);
}

function fail(message: string): never {
  console.error(`${pc.red('Cannot start.')} ${message}`);
  process.exit(1);
}

async function requireFree(name: string, number: number): Promise<void> {
  if (await portIsFree(number)) return;
  fail(
    `Port ${number} is taken by another program.\n  Stop it, or choose another port: ${name}=${number + 100} npm start`,
  );
}

function screen(system: System, health: WorkerHealth, auth: string, state: string): string {
  const sandbox =
    health.runner === null ? 'no runner: python and shell actions fail' : describeSandbox(health.runner.sandbox);
  return [
    '',
    `${pc.bold('Cortex Edge')} ${health.version} is ready`,
    '',
    `  ${pc.dim('address')}   ${pc.cyan(system.url)}   ${pc.dim(`(health: ${system.url}/health)`)}`,
    `  ${pc.dim('model')}     ${health.model}`,
    `  ${pc.dim('sandbox')}   ${sandbox}`,
    `  ${pc.dim('auth')}      ${auth}`,
    `  ${pc.dim('state')}     ${state}`,
    `  ${pc.dim('manifests')} manifests/ ${pc.dim('(a change counts from the next message on)')}`,
    '',
    `  Try: curl -N ${system.url}/execute/direct -d '{"protocol_text":"<action type=\\"python\\" id=\\"x\\">{\\"code\\":\\"print(2**64)\\"}</action><response final=\\"true\\">$x</response>"}'`,
    `  ${pc.dim('Ctrl-C stops both services.')}`,
    '',
  ].join('\n');
}

interface LevelReport {
  readonly level: string;
  readonly missing: Readonly<Record<string, string>>;
}

/** What each interpreter gets, and why it is not the best. */
function describeSandbox(sandbox: unknown): string {
  if (typeof sandbox === 'string') return sandbox;
  if (typeof sandbox !== 'object' || sandbox === null) return 'unknown';
  const { level, active, levels } = sandbox as { level?: unknown; active?: unknown; levels?: readonly LevelReport[] };
  if (typeof level === 'string') return level;
  if (typeof active === 'object' && active !== null) {
    const kinds = Object.entries(active).map(([kind, name]) => `${kind}: ${name === null ? 'none' : String(name)}`);
    const best = levels?.[0];
    const reason = Object.values(best?.missing ?? {})[0];
    return `${kinds.join(', ')}${reason === undefined ? '' : pc.dim(`   (not ${best?.level}: ${reason})`)}`;
  }
  return JSON.stringify(sandbox);
}

/** Resolves when the Worker has not answered several times in a row: its process may live on without serving. */
async function watch(url: string): Promise<'silent'> {
  for (let failures = 0; failures < 4;) {
    await delay(5_000, undefined, { ref: false });
    const answered = await fetch(url, { signal: AbortSignal.timeout(10_000) }).then(
      (response) => response.ok,
      () => false,
    );
    failures = answered ? 0 : failures + 1;
  }
  return 'silent';
}

// Who reads along may go (`npm start | head`); the services must not be left without the one that stops them.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined);

const workerPort = port('PORT', 8787);
const runnerPort = port('RUNNER_PORT', 8790);
const stateDir = process.env['CORTEX_STATE_DIR'] || '.cortex';
const vars = readVars(process.env);
const configured = ['LLM_PROVIDER', 'LLM_BASE_URL', 'LLM_API_KEY'].some((name) => (vars[name] ?? '') !== '');
const found = configured ? null : await findLocalModel(vars['LLM_MODEL'] ?? null);
if (found !== null) {
  Object.assign(vars, found.vars);
  console.error(
    pc.dim(
      `found ${found.server} on this machine: using its model ${found.vars['LLM_MODEL'] ?? ''} (LLM_PROVIDER=demo for the demo)`,
    ),
  );
}
const ownRunner = vars['RUNNER_URLS'] === undefined;
const auth = vars['API_KEYS'] === undefined ? 'none: only this machine may call (set API_KEYS to open it)' : 'API keys';

try {
  parseRunnerUrls(vars['RUNNER_URLS']);
} catch (fault) {
  fail(fault instanceof Error ? fault.message : String(fault));
}
if (ownRunner && workerPort === runnerPort) fail(`PORT and RUNNER_PORT are both ${workerPort}; they must differ.`);
await requireFree('PORT', workerPort);
if (ownRunner) await requireFree('RUNNER_PORT', runnerPort);

/** Kept for as long as this process runs; what cannot be had at all is told by the services themselves. */
function lock(): (() => void) | null {
  try {
    return lockState(resolvePath(ROOT, stateDir));
  } catch {
    return () => undefined;
  }
}
const unlock = lock();
if (unlock === null) {
  fail(
    `${stateDir} is in use by another npm start.\n  Stop it, or choose another folder: CORTEX_STATE_DIR=${stateDir}-2 npm start`,
  );
}

let stopping = false;
const aborted = new Promise<'stop'>((resolve) => {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => {
      if (stopping) process.exit(1);
      stopping = true;
      resolve('stop');
    });
  }
});

const starting = startSystem({
  port: workerPort,
  runnerPort,
  stateDir,
  vars,
  ownRunner,
  progress: (message) => console.error(pc.dim(message)),
});
const system = await Promise.race([starting, aborted]).catch((fault: unknown) =>
  fail(fault instanceof Error ? fault.message : String(fault)),
);
if (system === 'stop') {
  await starting.then((late) => late.stop()).catch(() => undefined);
  process.exit(0);
}

const { problems } = checkManifests('manifests');
if (problems.length > 0) console.error(pc.red('manifests/ has errors, so what was bundled before runs.'));
console.log(screen(system, system.health, auth, stateDir));
const unwatch = watchManifests('manifests', checkManifests, (line, good) =>
  console.error(good ? pc.green(line) : pc.red(line)),
);
const silent = watch(`${system.url}/health`);
const ended = await Promise.race([
  aborted,
  silent,
  ...system.services.map((service) => service.exited.then((code) => ({ service, code }))),
]);
if (ended === 'silent') {
  console.error(pc.red('The Worker does not answer any more; its last lines:'));
  console.error(system.services.at(-1)?.tail.slice(-10).join('\n'));
} else if (ended !== 'stop') {
  console.error(pc.red(`The ${ended.service.name} has ended (${ended.code}); its last lines:`));
  console.error(ended.service.tail.slice(-10).join('\n'));
}
unwatch();
console.error(pc.dim('stopping …'));
await system.stop();
unlock();
process.exit(ended === 'stop' ? 0 : 1);
