/** The idle processes and containers of a runner. Everything else was left behind. */
import fs from 'node:fs';
import path from 'node:path';

import { expect, vi } from 'vitest';

import { connectEngine, LABEL } from '../../sandbox/docker-engine.ts';
import { descendantsOf } from '../../sandbox/process-tree.ts';
import type { SandboxLevel } from '../../sandbox/sandbox.ts';
import { dockerSocket } from './levels.ts';
import type { TestRunner } from './test-runner.ts';
import { eventually } from '../../../test/support/eventually.ts';

const SETTLE_MS = 60_000;

export interface IdleState {
  /** Command lines, sorted. */
  readonly processes: readonly string[];
  /** Commands of containers, sorted. */
  readonly containers: readonly string[];
}

/** The current ones: below this process, and in the engine with the label of the runner with this state. */
async function currentState(level: SandboxLevel, stateDir: string): Promise<IdleState> {
  return { processes: processesBelow(process.pid), containers: level === 'docker' ? await containersOf(stateDir) : [] };
}

/** Whether a runner holds its target number of sandboxes ready. */
export async function isReady({ url }: { readonly url: string }): Promise<boolean> {
  const health = (await (await fetch(`${url}/health`)).json()) as { readonly sandbox: { readonly filling: boolean } };
  return !health.sandbox.filling;
}

/** Waits until nothing changes any more. */
export async function waitUntilIdle(
  level: SandboxLevel,
  runner: Pick<TestRunner, 'url' | 'stateDir'>,
): Promise<IdleState> {
  return await waitUntilStill(level, runner.stateDir, () => isReady(runner));
}

/** The same for sandboxes without a runner. */
export async function waitUntilStill(
  level: SandboxLevel,
  stateDir: string,
  areReady: () => Promise<boolean>,
): Promise<IdleState> {
  let before = '';
  return await vi.waitUntil(
    async () => {
      const now = await currentState(level, stateDir);
      const text = JSON.stringify(now);
      const still = (await areReady()) && text === before;
      before = text;
      return still ? now : null;
    },
    { timeout: SETTLE_MS, interval: 500 },
  );
}

/** Fails if anything that started after `idle` was recorded still exists. */
export async function expectNothingLeft(level: SandboxLevel, stateDir: string, idle: IdleState): Promise<void> {
  await eventually(async () => expect(await currentState(level, stateDir)).toEqual(idle));
}

/** Processes of the embedded interpreters do not count: they are replaced one by one. */
function processesBelow(pid: number): string[] {
  return descendantsOf(pid)
    .map((child) => {
      try {
        return fs.readFileSync(`/proc/${child}/cmdline`, 'utf8').replaceAll('\0', ' ');
      } catch {
        return '';
      }
    })
    .filter((line) => line !== '' && !/esbuild|guest\/(python|shell)\.ts/.test(line))
    .toSorted();
}

async function containersOf(stateDir: string): Promise<string[]> {
  const owner = fs.readFileSync(path.join(stateDir, 'runner', 'instance'), 'utf8');
  const docker = await connectEngine(dockerSocket);
  const found = await docker.listContainers({ all: true, filters: { label: [`${LABEL}.runner=${owner}`] } });
  return found.map(({ Image: image, State: state }) => `${image} ${state}`).toSorted();
}
