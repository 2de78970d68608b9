import { spawnSync } from 'node:child_process';
import { describe, expect, test } from 'vitest';
import { lacks } from '../../support/programs.ts';

const script = 'manifests/tools/system_status/system_status.py';
const missing = lacks('python3');

describe.skipIf(missing)('system_status (skipped only without python3)', () => {
  test('[R3] it prints one JSON object, with null for values that cannot be measured', () => {
    const { stdout, stderr, status } = spawnSync('python3', [script, '{}'], { encoding: 'utf8' });
    expect({ stderr, status }).toEqual({ stderr: '', status: 0 });
    const measured = JSON.parse(stdout) as Record<string, unknown>;
    expect(Object.keys(measured)).toEqual(['processors', 'load', 'memory', 'disk', 'uptime_seconds']);
    expect(measured['processors']).toBeGreaterThan(0);
  });
});
