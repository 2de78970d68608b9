/** Sandboxes reserved for a session: the next job uses the sandbox once; an unused one is released. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';

import { limits } from '../limits.ts';
import { Prewarmer } from '../prewarm.ts';
import { SandboxRegistry } from '../sandbox/registry.ts';
import { WarmPool } from '../sandbox/warm-pool.ts';
import { FakeSandbox } from './support/fake-sandbox.ts';
import { job, startRunner, type TestRunner } from './support/test-runner.ts';
import { eventually } from '../../test/support/eventually.ts';

describe('through the API', () => {
  let sandbox: FakeSandbox;
  let runner: TestRunner;
  beforeEach(async () => {
    sandbox = new FakeSandbox();
    runner = await startRunner({ sandboxes: [sandbox] });
  });
  afterEach(async () => {
    await runner.close();
  });
  const prewarm = (body: Record<string, unknown>): Promise<Response> => runner.ask('POST', '/prewarm', body);

  test('the next job of the session gets the reserved sandbox, and later jobs do not', async () => {
    const answer = await prewarm({ session: 'ses_test', kind: 'python' });
    expect(answer.status).toBe(202);
    expect(await answer.json()).toEqual({ held: true });
    await runner.put('a', job({ kind: 'python', code: '1' }));
    await runner.put('b', job({ kind: 'python', code: '2' }));
    await eventually(() => expect(sandbox.started.map(({ held }) => held)).toEqual([true, false]));
  });

  test('a sandbox reserved for one session or interpreter is not used by another', async () => {
    await prewarm({ session: 'ses_other', kind: 'python' });
    await prewarm({ session: 'ses_test', kind: 'tool', runtime: 'node' });
    await runner.put('a', job({ kind: 'python', code: '1' }));
    await eventually(() => expect(sandbox.started.map(({ held }) => held)).toEqual([false]));
  });

  test('for images, the last used image of the session is reserved, and none before its first use', async () => {
    const containers = new FakeSandbox('docker');
    const other = await startRunner({ sandboxes: [containers] });
    try {
      const hint = (session: string): Promise<Response> => other.ask('POST', '/prewarm', { session, kind: 'docker' });
      const run = (id: string, image: string): Promise<Response> =>
        other.put(id, job({ kind: 'docker', image, command: 'id' }));
      expect(await (await hint('ses_test')).json()).toEqual({ held: false });
      await run('a', 'busybox');
      await eventually(() => expect(containers.started.map(({ held }) => held)).toEqual([false]));
      expect(await (await hint('ses_test')).json()).toEqual({ held: true });
      expect(await (await hint('ses_other')).json()).toEqual({ held: false });
      await run('b', 'python');
      await run('c', 'busybox');
      await eventually(() => expect(containers.started.length).toBe(3));
      const held = containers.started.filter((program) => program.held);
      expect(held.map(({ launch }) => 'image' in launch && launch.image)).toEqual(['busybox']);
      expect(containers.heldImages).toEqual(['busybox']);
      await hint('ses_test');
    } finally {
      await other.close();
    }
    expect(containers.releases).toBe(1);
  });

  test('a tool needs its runtime', async () => {
    expect(await (await prewarm({ session: 's', kind: 'tool' })).json()).toEqual({ held: false });
    expect(sandbox.holds).toBe(0);
  });

  test.each([{}, { session: 's' }, { session: 's', kind: 'python', image: 'x' }, { session: '../x', kind: 'shell' }])(
    'the body %j is refused',
    async (body) => {
      expect((await prewarm(body)).status).toBe(400);
    },
  );

  test('stopping the runner releases reserved sandboxes', async () => {
    await prewarm({ session: 'ses_test', kind: 'python' });
    await runner.stop();
    expect(sandbox.releases).toBe(1);
    runner = await startRunner({ sandboxes: [sandbox], stateDir: runner.stateDir });
  });
});

describe('over time', () => {
  let sandbox: FakeSandbox;
  let prewarmer: Prewarmer;
  beforeEach(async () => {
    vi.useFakeTimers();
    sandbox = new FakeSandbox();
    prewarmer = new Prewarmer(await SandboxRegistry.open([sandbox], new Map(), null));
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  test('an unused reservation is released', async () => {
    expect(prewarmer.hold('s', 'shell', undefined)).toBe(true);
    await vi.advanceTimersByTimeAsync(limits.prewarmMs);
    expect(sandbox.releases).toBe(1);
    expect(prewarmer.held).toBe(0);
    expect(await prewarmer.take('s', sandbox, 'shell')).toBe(null);
  });

  test('a sandbox in use is not released', async () => {
    prewarmer.hold('s', 'shell', undefined);
    expect(await prewarmer.take('s', sandbox, 'shell')).not.toBe(null);
    await vi.advanceTimersByTimeAsync(limits.prewarmMs * 2);
    expect(sandbox.releases).toBe(0);
  });

  test('the total number of reservations is limited', () => {
    const granted = Array.from({ length: limits.prewarmed + 5 }, (_, at) =>
      prewarmer.hold(`s${at}`, 'shell', undefined),
    );
    expect(granted.filter(Boolean).length).toBe(limits.prewarmed);
    expect(sandbox.holds).toBe(limits.prewarmed);
  });

  test('a sandbox that cannot be created is not an error', async () => {
    sandbox.holdFails = true;
    prewarmer.hold('s', 'shell', undefined);
    expect(await prewarmer.take('s', sandbox, 'shell')).toBe(null);
  });
});

describe('the pool', () => {
  class Warm {
    disposed = false;
    readonly #listeners: (() => void)[] = [];
    onDeath(listener: () => void): void {
      this.#listeners.push(listener);
    }
    dispose(): void {
      this.disposed = true;
    }
    die(): void {
      for (const listener of this.#listeners) listener();
    }
  }

  test('an unused sandbox is returned; past the size of the pool it is ended', async () => {
    const waiting: ((warm: Warm) => void)[] = [];
    const pool = new WarmPool(
      1,
      () => new Promise<Warm>((resolve) => void waiting.push(resolve)),
      () => Promise.resolve(new Warm()),
    );
    const [first, second] = [await pool.take(), await pool.take()];
    pool.giveBack(first);
    pool.giveBack(second);
    expect([first.disposed, second.disposed]).toEqual([false, true]);
    expect(await pool.take()).toBe(first);
    for (const resolve of waiting) resolve(new Warm());
    await pool.close();
  });

  test('a sandbox that dies while it waits is replaced, and never used', async () => {
    const made: Warm[] = [];
    const pool = new WarmPool(1, () => {
      const warm = new Warm();
      made.push(warm);
      return Promise.resolve(warm);
    });
    pool.fill();
    await eventually(() => expect(pool.ready).toBe(1));
    made[0]?.die();
    await eventually(() => expect(pool.ready).toBe(1));
    expect(await pool.take()).toBe(made[1]);
    await pool.close();
  });

  test('after three deaths in a row the pool stops filling, and continues after a success', async () => {
    let made = 0;
    let broken = true;
    const pool = new WarmPool(1, () => {
      made += 1;
      return broken ? Promise.reject(new Error('no engine')) : Promise.resolve(new Warm());
    });
    pool.fill();
    await eventually(() => expect(made).toBe(3));
    await expect(pool.take()).rejects.toThrow('no engine');
    expect(made).toBe(4);
    broken = false;
    await pool.take();
    await eventually(() => expect(pool.ready).toBe(1));
    await pool.close();
  });
});
