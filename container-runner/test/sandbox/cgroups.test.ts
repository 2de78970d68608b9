/** A runner removes the groups that a killed runner left, and no others (R1, R4). */
import fs from 'node:fs';
import path from 'node:path';

import { expect, onTestFinished, test } from 'vitest';

import { openCgroups } from '../../sandbox/cgroups.ts';

/** Beyond the greatest pid of Linux. */
const NO_PID = 4_194_305;
const ROOT = ['/sys/fs/cgroup/pids', '/sys/fs/cgroup'].find((root) => fs.existsSync(path.join(root, 'cgroup.procs')));

async function canOpen(): Promise<boolean> {
  const cgroups = openCgroups();
  await cgroups?.close();
  return cgroups !== null;
}

test.runIf(ROOT !== undefined && (await canOpen()))(
  '[R1] the groups of a runner that is gone are removed, and no others',
  async () => {
    const group = (name: string): string => {
      const directory = path.join(ROOT ?? '', name);
      fs.mkdirSync(directory);
      onTestFinished(() => {
        if (fs.existsSync(directory)) fs.rmdirSync(directory);
      });
      return directory;
    };
    const gone = group(`cortex-runner-${NO_PID}-1`);
    const running = group(`cortex-runner-${process.pid}-test`);
    // Only its first letters say that it is not a runner's.
    const other = group(`cortex-others-${NO_PID}-1`);
    await openCgroups()?.close();
    expect([gone, running, other].map((each) => fs.existsSync(each))).toEqual([false, true, true]);
  },
);
