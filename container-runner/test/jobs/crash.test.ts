/** The runner is killed: jobs end as `lost`, and their remains are removed (R1). */
import type { ChildProcess } from 'node:child_process';
import { readFileSync } from 'node:fs';
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
import { signed } from '../support/test-runner.ts';
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

async function launch(sandbox: string, warm = 1): Promise<{ readonly child: ChildProcess; readonly url: string }> {
  const { child, ready } = launchRunner(stateDir, {
    RUNNER_SANDBOX: sandbox,
    RUNNER_WARM: String(warm),
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
      const second = await launch('docker', 0);
      expect(await recordOf(second.url, 'a')).toMatchObject({ state: 'ended', end: 'lost', stdout: 'in\n' });
      const hello = JSON.stringify({ kind: 'shell', session: 's', code: 'echo hello' });
      await fetch(await signed(second.url, 'PUT', '/jobs/b', hello));
      await eventually(async () => expect((await recordOf(second.url, 'b')).stdout).toBe('hello\n'));
      second.child.kill('SIGTERM');
      await eventually(async () => expect(await containersOf(docker)).toBe(0));
    },
  );
});
