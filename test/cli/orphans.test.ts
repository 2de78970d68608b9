/** Only the processes that an earlier start left running are ended. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { expect, test } from 'vitest';

import { endOrphans, findOrphans, recordServices } from '../../cli/system/orphans.ts';
import type { RecordedService } from '../../cli/system/orphans.ts';
import type { ProcessInfo } from '../../cli/system/processes.ts';
import { lacks } from '../support/programs.ts';
import { folderOfEach } from './scene.ts';

const info = (pid: number, group: number, more: Partial<ProcessInfo> = {}): ProcessInfo => {
  return { pid, group, startedAt: `boot ${pid}`, command: `program ${pid}`, ...more };
};
const RECORDED: RecordedService[] = [
  { name: 'worker', group: 10, members: [info(10, 10), info(11, 10), info(12, 12)] },
];

test.each<[string, ProcessInfo[], number[]]>([
  ['nothing runs any more', [info(1, 1)], []],
  ['all of it runs', [info(1, 1), info(10, 10), info(11, 10), info(12, 12)], [10, 11, 12]],
  ['its leader is gone, and it has got a further member', [info(11, 10), info(13, 10)], [11, 13]],
  ['the number of a member is another program now', [info(11, 10, { startedAt: 'later' })], []],
  ['the same, with the same start and another command', [info(11, 10, { command: 'vi' })], []],
  [
    'all members are gone, and another program leads a group of that number',
    [info(10, 10, { startedAt: 'later' }), info(14, 10)],
    [],
  ],
  ['a member that has left its group proves nothing about the group', [info(12, 12), info(14, 10)], [12]],
])('[S10] %s', (_name, running, expected) => {
  const found = findOrphans(RECORDED, running).flatMap(({ processes }) => processes.map(({ pid }) => pid));
  expect(found.toSorted((a, b) => a - b)).toEqual(expected);
});

let folder: string;
folderOfEach((made) => (folder = made));

test.each(['', '{', '[{"name":"x"}]', '[{"name":"x","group":1,"members":[{"pid":"1"}]}]'])(
  '[S10] a record with the content %j ends nothing',
  async (text) => {
    writeFileSync(join(folder, 'services.json'), text);
    expect(await endOrphans(folder)).toBeNull();
  },
);

test.skipIf(process.platform === 'win32' || lacks('sleep'))(
  '[S10] a real recorded process is ended with its children, even if it is stopped',
  async () => {
    const child = spawn('sh', ['-c', 'sleep 600 & sleep 600'], { detached: true, stdio: 'ignore' });
    await once(child, 'spawn');
    const ended = once(child, 'exit');
    recordServices(folder, [{ name: 'worker', pid: child.pid ?? 0 }]);
    expect(readFileSync(join(folder, 'services.json'), 'utf8')).toContain(String(child.pid));
    process.kill(-(child.pid ?? 0), 'SIGSTOP');
    expect(await endOrphans(folder)).toMatch(/^an earlier start was killed and left \d processes running \(worker\)$/);
    // If it has not stopped yet, the first signal ends it.
    expect(['SIGTERM', 'SIGKILL']).toContain((await ended)[1]);
    expect(await endOrphans(folder)).toBeNull();
  },
);
