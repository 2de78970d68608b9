/** The runner is killed, or the engine restarts: jobs end as `lost`, and their remains are removed (R1). */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import fs from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';

import type Docker from 'dockerode';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';

import { connectEngine, LABEL } from '../../sandbox/docker-engine.ts';
import { dockerSocket, reasonToSkip } from '../support/levels.ts';
import type { ProcessRef } from '../support/processes.ts';
import { isAlive, treeOf } from '../support/processes.ts';
import { launchRunner } from '../support/runner-process.ts';
import { signed, startRunner } from '../support/test-runner.ts';
import { eventually } from '../../../test/support/eventually.ts';
import { lacks } from '../../../test/support/programs.ts';

vi.setConfig({ testTimeout: 300_000 });

let stateDir: string;
let started: ChildProcess[];
beforeEach(async () => {
  stateDir = await fs.mkdtemp(path.join(os.tmpdir(), 'runner-crash-'));
  started = [];
});
afterEach(async () => {
  for (const child of started) child.kill('SIGKILL');
  await fs.rm(stateDir, { recursive: true, force: true });
});

async function launch(sandbox: string): Promise<{ readonly child: ChildProcess; readonly url: string }> {
  const { child, ready } = launchRunner(stateDir, {
    RUNNER_SANDBOX: sandbox,
    ...(sandbox === 'process' ? { RUNNER_ALLOW_PROCESS: '1' } : {}),
    ...(dockerSocket === null ? {} : { RUNNER_DOCKER: dockerSocket }),
  });
  started.push(child);
  return { child, url: (await ready()).url };
}

async function recordOf(url: string, id: string): Promise<{ readonly stdout: string }> {
  return (await (await fetch(await signed(url, 'GET', `/jobs/${id}`, ''))).json()) as { readonly stdout: string };
}

async function begin(url: string, id: string): Promise<void> {
  const body = JSON.stringify({
    kind: 'shell',
    session: 's',
    code: 'echo in; sleep 605',
    limits: { timeout_ms: 600_000 },
  });
  expect((await fetch(await signed(url, 'PUT', `/jobs/${id}`, body))).status).toBe(202);
  await eventually(async () => expect((await recordOf(url, id)).stdout).toBe('in\n'));
}

/** The processes of the job that `begin` started. */
async function jobOf({ pid = 0 }: ChildProcess): Promise<ProcessRef[]> {
  const found = (): ProcessRef[] => treeOf(pid).filter(({ command }) => command.includes('sleep 605'));
  // the output arrives before the shell has started the next command
  await eventually(() => expect(found()).not.toEqual([]));
  return found();
}

async function containersOf(docker: Docker): Promise<number> {
  const owner = readFileSync(path.join(stateDir, 'runner', 'instance'), 'utf8');
  return (await docker.listContainers({ all: true, filters: { label: [`${LABEL}.runner=${owner}`] } })).length;
}

describe('the runner is killed while a job runs', () => {
  const skipBubblewrap = reasonToSkip('bubblewrap');
  test.skipIf(skipBubblewrap !== null)('[R1] bubblewrap: its processes end, and the job is lost', async () => {
    const first = await launch('bubblewrap');
    await begin(first.url, 'a');
    const job = await jobOf(first.child);
    const tree = treeOf(first.child.pid ?? 0);
    first.child.kill('SIGKILL');
    await eventually(() => expect(job.filter(isAlive)).toEqual([]));
    const second = await launch('bubblewrap');
    // a sandbox that was just starting can wait forever: the next runner ends it
    await eventually(() => expect(tree.filter(isAlive)).toEqual([]));
    expect(await recordOf(second.url, 'a')).toMatchObject({
      state: 'ended',
      end: 'lost',
      exit_code: null,
      stdout: 'in\n',
    });
  });

  test.skipIf(process.platform !== 'linux' || lacks('sleep'))(
    '[R1] process: the next runner ends the program, and the job is lost',
    async () => {
      const first = await launch('process');
      await begin(first.url, 'a');
      const job = await jobOf(first.child);
      first.child.kill('SIGKILL');
      const second = await launch('process');
      await eventually(() => expect(job.filter(isAlive)).toEqual([]));
      expect(await recordOf(second.url, 'a')).toMatchObject({ state: 'ended', end: 'lost', stdout: 'in\n' });
    },
  );

  const skipDocker = reasonToSkip('docker');
  test.skipIf(skipDocker !== null)(
    '[R1] docker: the next runner removes the container, and the job is lost',
    async () => {
      const docker = await connectEngine(dockerSocket);
      const first = await launch('docker');
      await begin(first.url, 'a');
      // containers that the runner is still creating must not be counted
      await eventually(async () => expect(await containersOf(docker)).toBe(4));
      first.child.kill('SIGKILL');
      const second = await launch('docker');
      expect(await recordOf(second.url, 'a')).toMatchObject({ state: 'ended', end: 'lost', stdout: 'in\n' });
      const hello = JSON.stringify({ kind: 'shell', session: 's', code: 'echo hello' });
      await fetch(await signed(second.url, 'PUT', '/jobs/b', hello));
      await eventually(async () => expect((await recordOf(second.url, 'b')).stdout).toBe('hello\n'));
      second.child.kill('SIGTERM');
      await eventually(async () => expect(await containersOf(docker)).toBe(0));
    },
  );
});

const isRoot = process.platform === 'linux' && process.getuid?.() === 0;
const skipEngine = lacks('dockerd', 'unshare', 'pgrep') || (process.env['CI'] !== 'true' && !isRoot);

describe('the engine goes away while a job runs', () => {
  test.skipIf(skipEngine)(
    '[R1] the job is lost at once, its container is removed when the engine is back, and jobs run again',
    async () => {
      const directory = await fs.mkdtemp('/run/cortex-crash-');
      const data = await fs.mkdtemp(path.join(os.tmpdir(), 'cortex-crash-'));
      const socket = path.join(directory, 'docker.sock');
      let engine = await startEngine(directory, data, socket);
      // The new engine has no images and builds only the small one.
      const baseImages = { python3: 'none', node: 'none', pip: 'none' };
      const runner = await startRunner({ sandbox: 'docker', dockerSocket: socket, warm: 1, stateDir, baseImages });
      try {
        await runner.put('a', {
          session: 'ses',
          kind: 'shell',
          code: 'echo in; sleep 606',
          limits: { timeout_ms: 600_000 },
        });
        await runner.watch('ses', 0, ({ type }) => type === 'stdout');
        engine.kill('SIGKILL');
        const events = await runner.watch('ses', 0, ({ type }) => type === 'exited');
        expect(events.at(-1)?.data).toMatchObject({ end: 'lost', exit_code: null });
        expect((await runner.ask('GET', '/jobs/a')).status).toBe(200);

        engine = await startEngine(directory, data, socket);
        const docker = await connectEngine(socket);
        await eventually(async () => {
          const left = await docker.listContainers({
            all: true,
            filters: { label: [LABEL], status: ['exited', 'dead'] },
          });
          expect(left).toEqual([]);
        });
        expect(await runner.run({ kind: 'shell', code: 'echo hello' })).toMatchObject({
          exitCode: 0,
          stdout: 'hello\n',
        });
      } finally {
        await runner.stop();
        await stopped(engine);
        // the engine's container service survives a kill of the engine
        for (const pid of leftOf(directory)) process.kill(pid, 'SIGKILL');
        spawnSync('sh', [
          '-c',
          `grep -o '${data}[^ ]*' /proc/mounts | xargs -r umount -l; rm -rf '${data}' '${directory}'`,
        ]);
      }
    },
  );
});

/**
 * An engine for this test only, in its own network namespace: an engine without a bridge removes the bridge of the
 * machine's other engine.
 */
async function startEngine(directory: string, data: string, socket: string): Promise<ChildProcess> {
  // pid files of a killed engine: another process can have the pid now, or none
  for (const name of ['docker.pid', 'exec/containerd/containerd.pid']) {
    await fs.rm(path.join(directory, name), { force: true });
  }
  const args = [
    `--host=unix://${socket}`,
    `--data-root=${data}`,
    `--exec-root=${path.join(directory, 'exec')}`,
    `--pidfile=${path.join(directory, 'docker.pid')}`,
    '--bridge=none',
    '--iptables=false',
    '--ip6tables=false',
  ];
  const engine = spawn('unshare', ['--net', 'dockerd', ...args], { stdio: 'ignore', detached: true });
  started.push(engine);
  await eventually(async () => await connectEngine(socket));
  return engine;
}

async function stopped(engine: ChildProcess): Promise<void> {
  if (engine.exitCode !== null || engine.signalCode !== null) return;
  const gone = new Promise((resolve) => {
    engine.once('exit', resolve);
  });
  engine.kill('SIGTERM');
  await gone;
}

/** Processes that this engine started and that survived it, found by the directory in their command line. */
function leftOf(directory: string): number[] {
  if (!existsSync('/proc/self')) return [];
  return spawnSync('pgrep', ['-f', directory])
    .stdout.toString()
    .split('\n')
    .filter((line) => line !== '')
    .map(Number);
}
