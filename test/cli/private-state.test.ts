/** The state folder holds sessions and secrets: its modes are set and checked at each start (K10). */
import { chmodSync, chownSync, mkdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { StateFolder } from '../../container-runner/state.ts';
import { lockState } from '../../cli/system/state-lock.ts';
import { planSystem } from '../../cli/system/system.ts';
import { folderOfEach } from './scene.ts';

let root: string;
let state: string;
folderOfEach((made) => {
  root = made;
  state = join(root, 'state');
});

const modeOf = (path: string): string => (statSync(path).mode & 0o777).toString(8);
const plan = (): unknown =>
  planSystem({ port: 1, runnerPort: 2, stateDir: state, vars: {}, ownRunner: true, progress: () => undefined });

/** A folder as an earlier version, wrangler and a umask of 022 leave it. */
function leave(...files: readonly string[]): void {
  for (const file of files) {
    const path = join(state, file);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, 'x');
    chmodSync(path, 0o644);
    for (let at = dirname(path); at.startsWith(state); at = dirname(at)) chmodSync(at, 0o755);
  }
}

describe.skipIf(process.platform === 'win32')('[K10] an existing state folder', () => {
  const FILES = [
    'session-token.secret',
    'worker.env',
    'lives.json',
    'start.lock',
    'worker/v3/do/sessions/a.sqlite',
    'worker/v3/do/sessions/a.sqlite-wal',
    'temporary/kept/log',
    'runner/jobs.sqlite',
    'runner/files/one/two',
  ];

  test('becomes private with everything in it', () => {
    leave(...FILES);
    plan();
    expect(FILES.map((file) => modeOf(join(state, file)))).toEqual(FILES.map(() => '600'));
    const folders = ['', 'worker', 'worker/v3/do/sessions', 'temporary/kept', 'runner', 'runner/files/one'];
    expect(folders.map((folder) => modeOf(join(state, folder)))).toEqual(folders.map(() => '700'));
  });

  test('becomes private when only the runner starts', () => {
    leave('runner/jobs.sqlite', 'runner/files/one/two');
    new StateFolder(state, { now: Date.now, onSetAside: () => undefined }).create();
    expect([state, join(state, 'runner'), join(state, 'runner/files/one')].map(modeOf)).toEqual(['700', '700', '700']);
    expect(['jobs.sqlite', 'files/one/two'].map((file) => modeOf(join(state, 'runner', file)))).toEqual(['600', '600']);
  });

  test('has a private lock', () => {
    leave('other');
    lockState(state)?.();
    expect([modeOf(state), modeOf(join(state, 'start.lock'))]).toEqual(['700', '600']);
  });

  test.each([
    ['the state folder', ''],
    ['its folder of the Worker', 'worker'],
    ['its folder of the runner', 'runner'],
  ])('is an error if %s is a symbolic link', (_what, name) => {
    const target = join(root, 'elsewhere');
    mkdirSync(target);
    chmodSync(target, 0o755);
    if (name !== '') mkdirSync(state);
    symlinkSync(target, join(state, name).replace(/\/$/, ''));
    expect(plan).toThrow(/^The state folder .* is a symbolic link; use another folder with CORTEX_STATE_DIR/);
    expect(modeOf(target)).toBe('755');
  });

  test.skipIf(process.getuid?.() !== 0)('is an error if it belongs to another user', () => {
    leave('worker.env');
    chownSync(state, 4_321, 4_321);
    expect(plan).toThrow(/^The state folder .* belongs to another user \(4321, this is 0\)/);
    expect(() => lockState(state)).toThrow('belongs to another user');
    const runner = new StateFolder(state, { now: Date.now, onSetAside: () => undefined });
    expect(() => runner.create()).toThrow('belongs to another user');
    expect(modeOf(join(state, 'worker.env'))).toBe('644');
  });
});
