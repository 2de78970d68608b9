/** The Docker engine goes away and comes back while jobs run: they end as `lost`, and their remains are removed (R1). */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import fs from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';

import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import { connectEngine, LABEL } from '../../container-runner/sandbox/docker-engine.ts';
import { startRunner } from '../../container-runner/test/support/test-runner.ts';
import { eventually } from '../support/eventually.ts';
import { lacks } from '../support/programs.ts';

let stateDir: string;
let started: ChildProcess[];
beforeEach(async () => {
  stateDir = await fs.mkdtemp(path.join(os.tmpdir(), 'runner-engine-'));
  started = [];
});
afterEach(async () => {
  for (const child of started) child.kill('SIGKILL');
  await fs.rm(stateDir, { recursive: true, force: true });
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
