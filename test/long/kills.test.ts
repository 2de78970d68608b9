/** `npm start` and its parts under SIGKILL and SIGSTOP: remaining processes end, failed services restart (S10). */
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { LIGHT_SANDBOX } from '../../container-runner/test/support/levels.ts';
import type { ProcessRef } from '../../container-runner/test/support/processes.ts';
import { isAlive, signalAll } from '../../container-runner/test/support/processes.ts';
import { freePort } from '../../cli/system/services.ts';
import type { RunResult } from '../../src/view/result.ts';
import { cleanUp, exitOf, post, processesOf, start, stateFolder, stop, withCommand } from '../support/npm-start.ts';
import type { Started } from '../support/npm-start.ts';

const LATER = { timeout: 120_000, interval: 100 };
/** Up to two starts, each of which can be slow on a busy machine. */
const LONG = 300_000;
const BOOTSTRAP = [process.execPath, 'scripts/bootstrap.mjs', process.execPath, 'cli/main.ts', 'dev'] as const;
const PYTHON = '<action type="python" id="p">{"code": "print(6 * 7)"}</action><response final="true">$p</response>';

afterAll(cleanUp);

const execute = (system: Started, text: string): Promise<RunResult> =>
  post<RunResult>(`${system.url}/execute/direct`, { stream: false, protocol_text: text });

function kill(processes: readonly ProcessRef[], signal: NodeJS.Signals = 'SIGKILL'): void {
  expect(processes).not.toEqual([]);
  signalAll(processes, signal);
}

/** The system that the tests share: each test leaves one running, with the same ports and folder, for the next one. */
let env: Record<string, string>;
let current: { readonly system: Started; readonly command: Command } | null = null;
type Command = readonly string[] | undefined;

beforeAll(async () => {
  env = {
    ...LIGHT_SANDBOX,
    CORTEX_STATE_DIR: stateFolder(),
    PORT: String(await freePort()),
    RUNNER_PORT: String(await freePort()),
  };
});

async function begin(command?: Command): Promise<Started> {
  const system = await start(env, command);
  current = { system, command };
  return system;
}

/** The running system if `command` has started it, otherwise a new one. */
async function running(command?: Command): Promise<Started> {
  const { system } = current ?? {};
  if (system !== undefined && system.process.exitCode === null && !system.process.killed) {
    if (current?.command === command) return system;
    await stop(system);
  }
  return await begin(command);
}

describe('the starter is killed', () => {
  const NPM: Command = ['npm', 'start'];
  test.each<{ name: string; command: Command; whom: string | null; next: Command }>([
    { name: 'npm start itself', command: undefined, whom: null, next: BOOTSTRAP },
    { name: 'the script behind bootstrap', command: BOOTSTRAP, whom: 'node cli/main.ts dev', next: BOOTSTRAP },
    { name: 'bootstrap', command: BOOTSTRAP, whom: null, next: NPM },
    { name: 'npm', command: NPM, whom: null, next: undefined },
  ])(
    'SIGKILL of $name: all services end, and the next start uses the same ports and folder',
    async ({ command, whom, next }) => {
      const first = await running(command);
      const all = processesOf(first);
      if (whom === null) first.process.kill('SIGKILL');
      else kill(withCommand(all, whom).slice(-1));
      await expect.poll(() => all.filter(isAlive), LATER).toEqual([]);
      await exitOf(first);
      const second = await begin(next);
      expect(second.output()).not.toContain('left');
    },
    LONG,
  );

  test(
    'SIGKILL of every Node process including the guards: the next start reports and ends the remaining processes',
    async () => {
      const first = await running();
      const all = processesOf(first);
      const workerd = withCommand(all, '/workerd serve');
      expect(workerd).toHaveLength(1);
      const others = all.filter((other) => !workerd.includes(other));
      // They are frozen first: a guard that outlived the starter by a moment would end workerd.
      first.process.kill('SIGSTOP');
      kill(others, 'SIGSTOP');
      kill(others);
      first.process.kill('SIGKILL');
      expect(workerd.filter(isAlive)).toHaveLength(1);
      await exitOf(first);
      const second = await begin();
      expect(second.output()).toMatch(/An earlier start was killed and left \d+ processes running \(worker\): ended\./);
      expect(workerd.filter(isAlive)).toEqual([]);
    },
    LONG,
  );
});

describe('a service that dies or freezes is restarted', () => {
  test(
    'the runner: actions sent meanwhile wait for it',
    async () => {
      const system = await running();
      kill(withCommand(processesOf(system), 'container-runner/main.ts'));
      const result = await execute(system, PYTHON);
      expect(result).toMatchObject({ status: 'completed', response: '42' });
      await expect.poll(() => system.output(), LATER).toContain('The runner is running again');
    },
    LONG,
  );

  test(
    'the Worker, during an upload: active work continues, and the terminal reports the restart',
    async () => {
      const system = await running();
      const { session_id: id } = await post<{ session_id: string }>(`${system.url}/agent/assistant/session`, {});
      const upload = fetch(`${system.url}/execute/streaming_protocol`, {
        method: 'POST',
        headers: { 'content-type': 'text/plain' },
        body: new ReadableStream({
          async pull(controller) {
            await delay(20);
            controller.enqueue(new TextEncoder().encode('<thought>more</thought>'));
          },
        }),
        duplex: 'half',
      } as RequestInit).catch(() => null);
      const waiting = post<RunResult>(`${system.url}/agent/session/${id}/message`, {
        content: 'compute 2**200 in python and list the files in shell at the same time, then sum it up',
        stream: false,
      }).catch(() => null);
      await expect
        .poll(
          async () =>
            ((await (await fetch(`${system.url}/agent/session/${id}/runs`)).json()) as { runs: [] }).runs.length,
          LATER,
        )
        .toBe(1);
      kill(withCommand(processesOf(system), '/workerd serve'));
      await expect.poll(() => system.output(), LATER).toContain('The Worker is running again');
      await Promise.all([upload, waiting]);
      expect(system.output()).toMatch(/restart 1 of at most 5 within 10 minutes/);
      await expect
        .poll(
          async () =>
            ((await (await fetch(`${system.url}/agent/session/${id}/runs`)).json()) as { runs: { status: string }[] })
              .runs,
          LATER,
        )
        .toMatchObject([{ status: 'completed' }]);
    },
    LONG,
  );

  test(
    'a frozen Worker is detected within half a minute',
    async () => {
      const system = await running();
      const before = processesOf(system);
      const kept = await execute(system, '<response final="true">kept</response>');
      const stopped = withCommand(before, '/workerd serve');
      const said = system.output().length;
      kill(stopped, 'SIGSTOP');
      await expect.poll(() => system.output().slice(said), LATER).toContain('The Worker has not answered for 16 s');
      await expect.poll(() => system.output().slice(said), LATER).toContain('The Worker is running again');
      expect(stopped.filter(isAlive)).toEqual([]);
      const found = await (await fetch(`${system.url}/executions/${kept.run_id}`)).json();
      expect(found).toMatchObject({ status: 'completed', response: 'kept' });
      const [code] = await Promise.all([once(system.process, 'exit'), system.process.kill('SIGTERM')]);
      expect(code).toEqual([0, null]);
    },
    LONG,
  );
});
