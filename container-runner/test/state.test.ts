/** A damaged state folder, or a full or read-only disk (R1): the runner serves, or reports the reason. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import fs from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { DatabaseSync } from 'node:sqlite';

import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import { Ledger } from '../ledger/ledger.ts';
import { openLedger } from '../ledger/open-ledger.ts';
import { StateFolder } from '../state.ts';
import { FakeSandbox } from './support/fake-sandbox.ts';
import { withSnapshot } from './support/python-snapshot.ts';
import { MAIN, observed, type RunnerProcess } from './support/runner-process.ts';
import { job, SECRET, signed, startRunner, type TestRunner } from './support/test-runner.ts';
import { eventually } from '../../test/support/eventually.ts';
import { lacks } from '../../test/support/programs.ts';

const NOW = Date.UTC(2026, 6, 1, 12);
const SUFFIX = '.set-aside-2026-07-01T12-00-00-000Z';
const SET_ASIDE = /^jobs\.sqlite\.set-aside-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-\d{3}Z$/;

let stateDir: string;
let directory: string;
let runner: TestRunner | null;
beforeEach(async () => {
  stateDir = await fs.mkdtemp(path.join(os.tmpdir(), 'runner-state-'));
  directory = path.join(stateDir, 'runner');
  await fs.mkdir(directory);
  runner = null;
});
afterEach(async () => {
  await runner?.close();
  await fs.rm(stateDir, { recursive: true, force: true });
});

const at = (name: string): string => path.join(directory, name);
async function start(): Promise<TestRunner> {
  runner = await startRunner({ stateDir, sandboxes: [new FakeSandbox()] });
  return runner;
}
async function setAsideIn({ url }: TestRunner): Promise<string[]> {
  return ((await (await fetch(`${url}/health`)).json()) as { readonly set_aside: string[] }).set_aside;
}
function sql(text: string): void {
  const db = new DatabaseSync(at('jobs.sqlite'));
  db.exec(text);
  db.close();
}
/** A ledger with one job that has ended. */
function ledgerWithJob(): void {
  const ledger = new Ledger(at('jobs.sqlite'), Date.now);
  ledger.add({ id: 'old', session: 'ses_test', kind: 'python', requestHash: 'h' });
  ledger.start('old', 'ses_test', 'wasm');
  ledger.output('old', 'ses_test', 'stdout', 'kept\n');
  ledger.finish('old', 'ses_test', { end: 'exited', exitCode: 0, truncated: false });
  ledger.close();
}

const GARBAGE: Readonly<Record<string, () => Promise<void> | void>> = {
  'random bytes': () => fs.writeFile(at('jobs.sqlite'), randomBytes(70_000)),
  'a text': () => fs.writeFile(at('jobs.sqlite'), 'this is not a database\n'.repeat(100)),
  'a ledger with damaged pages': async () => {
    ledgerWithJob();
    const bytes = await fs.readFile(at('jobs.sqlite'));
    randomBytes(bytes.length - 4_096).copy(bytes, 4_096);
    await fs.writeFile(at('jobs.sqlite'), bytes);
  },
  'a ledger that was cut off': async () => {
    ledgerWithJob();
    await fs.truncate(at('jobs.sqlite'), 5_000);
  },
  'the database of another program': () => sql('CREATE TABLE jobs (x); PRAGMA user_version = 1'),
  'the database of another program without a version': () => sql('CREATE TABLE events (x)'),
  'a ledger that lost a table': () => {
    ledgerWithJob();
    sql('DROP TABLE tokens');
  },
  'a directory': () => fs.mkdir(at('jobs.sqlite')),
  ...(lacks('mkfifo') ? {} : { 'a named pipe': () => void spawnSync('mkfifo', [at('jobs.sqlite')]) }),
  'a link that leads in a circle': () => fs.symlink('jobs.sqlite', at('jobs.sqlite')),
  'a directory in the place of its log': async () => {
    ledgerWithJob();
    await fs.mkdir(at('jobs.sqlite-wal'));
  },
};

describe('the ledger is', () => {
  test.each(Object.entries(GARBAGE))('[R1] %s: it is renamed, and a new one is used', async (_, make) => {
    await make();
    const open = (): readonly [Ledger, string[]] => {
      const state = new StateFolder(stateDir, { now: () => NOW, onSetAside: () => undefined });
      return [openLedger(state, Date.now), state.setAsideNames()];
    };
    const [first, names] = open();
    expect(names).toEqual([`jobs.sqlite${SUFFIX}`]);
    expect(existsSync(at(names[0] ?? ''))).toBe(true);
    expect(first.job('old')).toBeNull();
    first.add({ id: 'new', session: 'ses_test', kind: 'python', requestHash: 'h' });
    first.close();
    // the next start renames nothing
    const [again, later] = open();
    expect(again.job('new')).toMatchObject({ id: 'new' });
    expect(later).toEqual(names);
    again.close();
  });

  test('[R1] no ledger: the runner renames it, reports it at each start, and runs jobs', async () => {
    await fs.writeFile(at('jobs.sqlite'), randomBytes(70_000));
    const first = await start();
    expect((await first.put('new', job({ kind: 'python', code: '1' }))).status).toBe(202);
    expect((await first.ask('GET', '/jobs/old')).status).toBe(404);
    const names = await setAsideIn(first);
    expect(names).toEqual([expect.stringMatching(SET_ASIDE)]);
    await first.stop();
    const again = await start();
    expect((await again.ask('GET', '/jobs/new')).status).toBe(200);
    expect(await setAsideIn(again)).toEqual(names);
  });

  test('[R1] renamed with its log and its index, so that its data can be recovered', async () => {
    for (const suffix of ['', '-wal', '-shm']) await fs.writeFile(at(`jobs.sqlite${suffix}`), `garbage${suffix}`);
    const [name = ''] = await setAsideIn(await start());
    for (const suffix of ['', '-wal', '-shm']) {
      expect(await fs.readFile(at(`${name}${suffix}`), 'utf8')).toBe(`garbage${suffix}`);
    }
  });

  test('[R1] damaged twice at the same time: both files are kept', async () => {
    const state = new StateFolder(stateDir, { now: () => NOW, onSetAside: () => undefined });
    for (const text of ['first', 'second']) {
      await fs.writeFile(at('jobs.sqlite'), text);
      state.setAside('jobs.sqlite', 'test');
    }
    expect(state.setAsideNames()).toEqual([`jobs.sqlite${SUFFIX}-2`, `jobs.sqlite${SUFFIX}`]);
  });

  test('[R1] empty, or has a damaged log: nothing is renamed', async () => {
    await fs.writeFile(at('jobs.sqlite'), '');
    await fs.writeFile(at('jobs.sqlite-wal'), randomBytes(9_000));
    const first = await start();
    expect((await first.put('new', job({ kind: 'python', code: '1' }))).status).toBe(202);
    expect(await setAsideIn(first)).toEqual([]);
  });

  test('[R1] new: its event numbers are higher than all that a reader has received before', async () => {
    const state = new StateFolder(stateDir, { now: () => NOW, onSetAside: () => undefined });
    ledgerWithJob();
    const before = openLedger(state, Date.now);
    const [last = 0] = before
      .events('ses_test', 0)
      .map(({ seq }) => seq)
      .toReversed();
    before.close();
    state.setAside('jobs.sqlite', 'test');
    const after = openLedger(state, () => Date.now() + 60_000);
    after.add({ id: 'a', session: 'ses_test', kind: 'python', requestHash: 'h' });
    after.start('a', 'ses_test', 'wasm');
    expect(after.events('ses_test', last).map(({ job: id }) => id)).toEqual(['a']);
    after.close();
  });

  test('[J9] from a newer version: the start is refused with the file name and advice, and nothing changes', async () => {
    ledgerWithJob();
    sql('PRAGMA user_version = 4');
    await expect(start()).rejects.toThrow(/jobs\.sqlite was written by a newer version .*Start that version, or move/);
    expect((await fs.readdir(directory)).filter((name) => name.includes('set-aside'))).toEqual([]);
    sql('PRAGMA user_version = 3');
    expect((await (await start()).ask('GET', '/jobs/old')).status).toBe(200);
  });
});

test('[R1] a file with the name of the folder: the start is refused with its name', async () => {
  await fs.rm(directory, { recursive: true });
  await fs.writeFile(directory, '');
  await expect(start()).rejects.toThrow(/runner\/jobs\.sqlite cannot be used: its folder is not a directory/);
  await fs.rm(directory);
});

describe('a row of the ledger is damaged', () => {
  test.each(['no JSON', '[]', '{"text":7}', '{"text":"a"}\n\nevent: forged'])(
    '[R1] a payload of %j: the job and the stream are served',
    async (data) => {
      ledgerWithJob();
      sql(`UPDATE events SET data = '${data}'`);
      const { ask, watch } = await start();
      expect(await (await ask('GET', '/jobs/old')).json()).toMatchObject({ state: 'ended', stdout: '\uFFFD' });
      const events = await watch('ses_test', 0, ({ type }) => type === 'exited');
      expect(events.map(({ type, data: payload }) => [type, payload])).toEqual([
        ['started', { sandbox: 'unknown' }],
        ['stdout', { text: '\uFFFD' }],
        ['exited', { end: 'lost', exit_code: null, truncated: false }],
      ]);
    },
  );

  test('[R1] by unknown states, ends and types', async () => {
    ledgerWithJob();
    sql(`INSERT INTO jobs (id, session, kind, state, request_hash, created_at) VALUES ('odd', 's', '', 'dancing', '', 0);
      UPDATE jobs SET end = 'eaten', ended_at = NULL WHERE id = 'old'; UPDATE events SET type = 'song' WHERE type = 'stdout'`);
    const { ask } = await start();
    expect(await (await ask('GET', '/jobs/odd')).json()).toMatchObject({ state: 'ended', end: 'lost' });
    expect(await (await ask('GET', '/jobs/old')).json()).toMatchObject({ state: 'ended', end: 'lost', stdout: '' });
  });
});

test('[R1] the file with this runner’s id is damaged: it is renamed', async () => {
  const { identityOf } = await import('../sandbox/docker.ts');
  const named: string[] = [];
  const state = new StateFolder(stateDir, { now: () => NOW, onSetAside: (name) => named.push(name) });
  await fs.writeFile(at('instance'), '\0garbage');
  const identity = await identityOf(state);
  expect(identity).toMatch(/^[\w-]{36}$/);
  expect(await identityOf(state)).toBe(identity);
  await fs.rm(at('instance'));
  await fs.mkdir(at('instance'));
  expect(await identityOf(state)).not.toBe(identity);
  expect(named).toEqual([`instance${SUFFIX}`, `instance${SUFFIX}-2`]);
});

test('[R1] an incomplete snapshot of the interpreter is renamed, and python runs', async () => {
  withSnapshot(stateDir);
  const snapshot = (await fs.readdir(directory)).find((name) => name.endsWith('.snapshot')) ?? '';
  await fs.truncate(at(snapshot), 100_000);
  runner = await startRunner({ stateDir, sandbox: 'wasm', warm: 0 });
  expect(await runner.run({ kind: 'python', code: 'print(6 * 7)' })).toMatchObject({ end: 'exited', stdout: '42\n' });
  expect(await setAsideIn(runner)).toEqual([expect.stringMatching(`^${snapshot}.set-aside-`)]);
});

/** A separate disk needs a mount, which a namespace permits. */
const UNSHARE = process.getuid?.() === 0 ? ['--mount'] : ['--user', '--map-root-user', '--mount'];
const canMount =
  process.platform === 'linux' &&
  spawnSync('unshare', [...UNSHARE, 'mount', '-t', 'tmpfs', 'none', '/mnt']).status === 0;

describe.skipIf(!canMount && process.env['CI'] !== 'true')('the disk is', () => {
  const SLOW = 90_000;
  let child: ChildProcess | null = null;
  afterEach(() => void child?.kill('SIGKILL'));

  /** The runner with its state on a disk of the given size; `go` = a file whose deletion frees space. */
  function launch(options: string, after = ''): RunnerProcess {
    const script = `mount -t tmpfs -o ${options} none "$CORTEX_STATE_DIR" && ${after}exec "$@"`;
    const started = spawn('unshare', [...UNSHARE, 'sh', '-c', script, 'sh', process.execPath, MAIN], {
      env: {
        PATH: process.env['PATH'] ?? '',
        CORTEX_STATE_DIR: stateDir,
        RUNNER_PORT: '0',
        RUNNER_SECRET: SECRET,
        RUNNER_SANDBOX: 'process',
        RUNNER_ALLOW_PROCESS: '1',
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    child = started;
    return observed(started);
  }

  test('[R1] read-only: the start is refused with the file name and advice', { timeout: SLOW }, async () => {
    const service = launch('size=4m', 'mount -o remount,ro "$CORTEX_STATE_DIR" && ');
    expect(await service.ended).toBe(1);
    expect(service.err()).toMatch(
      /^container-runner: The ledger .*jobs.sqlite cannot be used: the disk is read-only.*CORTEX_STATE_DIR/m,
    );
    expect(service.err()).not.toContain('    at ');
  });

  test(
    '[R1] full: jobs are refused with the reason, running jobs end, and the runner keeps serving',
    { timeout: SLOW },
    async () => {
      const service = launch('size=4m');
      const { url } = await service.ready();
      const ask = async (method: string, target: string, body = ''): Promise<Response> =>
        await fetch(await signed(url, method, target, body));
      const code = 'head -c 900000 /dev/urandom | base64 -w 0 | head -c 900000';
      const statuses: number[] = [];
      for (let number = 0; number < 30; number += 1) {
        const response = await ask('PUT', `/jobs/${number}`, JSON.stringify({ kind: 'shell', session: 's', code }));
        statuses.push(response.status);
        if (response.status === 503) {
          expect(response.headers.get('retry-after')).toBe('5');
          expect(await response.json()).toMatchObject({
            code: 'storage',
            detail: expect.stringMatching(/^The ledger jobs\.sqlite failed: no space is left on the disk$/),
          });
          break;
        }
        await eventually(async () => {
          const health = (await (await fetch(`${url}/health`)).json()) as { jobs: { running: number } };
          expect(health.jobs.running).toBe(0);
        });
      }
      expect(statuses.at(-1)).toBe(503);
      expect(await (await fetch(`${url}/health`)).json()).toMatchObject({ status: 'healthy', jobs: { running: 0 } });
      // known jobs can still be read and killed
      expect((await ask('GET', '/jobs/0')).status).toBe(200);
      const again = await signed(url, 'GET', '/jobs/0', '');
      expect((await fetch(again.clone())).status).toBe(200);
      expect((await fetch(again)).status).toBe(401);
      child?.kill('SIGTERM');
      expect(await service.ended).toBe(0);
    },
  );
});
