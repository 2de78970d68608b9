/** A runner kills what a killed runner left, and nothing else (R1). */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';

import { afterEach, describe, expect, test } from 'vitest';

import { killAbandoned, ownerMark } from '../../sandbox/abandoned.ts';

const started: ChildProcess[] = [];
afterEach(() => {
  for (const child of started.splice(0)) child.kill('SIGKILL');
});

async function sleeper(env: Readonly<Record<string, string>>): Promise<ChildProcess> {
  const child = spawn(process.execPath, ['-e', 'setInterval(() => undefined, 60_000)'], { env, stdio: 'ignore' });
  started.push(child);
  await once(child, 'spawn');
  return child;
}

const [[name = '', mark = ''] = []] = Object.entries(ownerMark());
const [namespace = '', pid = '', start = ''] = mark.split('/');

describe.skipIf(process.platform !== 'linux')('[R1] what a killed runner left', () => {
  test('a process of a runner that is gone is killed, also if its pid is in use again', async () => {
    const gone = await sleeper({ [name]: `${namespace}/${pid}/${Number(start) - 1}` });
    const ended = once(gone, 'exit');
    expect(killAbandoned()).toBeGreaterThan(0);
    expect(await ended).toEqual([null, 'SIGKILL']);
  });

  test.each([
    ['of a runner that runs', mark],
    ['of another pid namespace', `pid:[1]/${pid}/1`],
    ['of no runner', null],
  ])('a process %s goes on', async (_whose, value) => {
    const child = await sleeper(value === null ? {} : { [name]: value });
    killAbandoned();
    const probe = await sleeper({ [name]: `${namespace}/${pid}/1` });
    const ended = once(probe, 'exit');
    killAbandoned();
    await ended;
    expect([child.exitCode, child.signalCode]).toEqual([null, null]);
  });
});
