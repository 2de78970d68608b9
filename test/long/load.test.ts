import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { PACKAGE_ROOT } from '../../cli/project/folders.ts';
import { lacks } from '../support/programs.ts';

// The benchmark reads the memory of processes with ps.
test.skipIf(lacks('ps'))(
  '[Z3] bench:load measures stages, memory and cold turns of both subjects, and ends by itself',
  async () => {
    const { stdout } = await promisify(execFile)(process.execPath, ['bench/load.ts', '--smoke'], { cwd: PACKAGE_ROOT });
    expect(stdout).not.toMatch(/NaN|Infinity|undefined|turns failed/);
    const rows = stdout.split('\n').filter((line) => line.startsWith('| '));
    const cells = rows.map((row) =>
      row
        .split('|')
        .slice(1, -1)
        .map((cell) => cell.trim()),
    );
    // Both subjects have answered turns of the same plan; only ours has calls.
    const stages = cells.filter(([sessions]) => sessions === '8');
    expect(stages).toHaveLength(2);
    expect(stages.map(([, turns]) => Number(turns) > 0)).toEqual([true, true]);
    expect(stages.map(([, , , , dispatch]) => dispatch !== '')).toEqual([true, false]);
    expect(cells.filter(([name]) => name === 'Cortex Edge').map((row) => row.length)).toEqual([6, 7]);
    expect(cells.filter(([name]) => name === 'bare object').map((row) => row.length)).toEqual([6, 7]);
  },
);
