/** Liveness and readiness of the system (H1). */
import { expect, test } from 'vitest';

import type { JsonObject } from '../../src/domain/json.ts';
import { limits } from '../../src/domain/limits.ts';
import { describeAbsence } from '../../src/executors/runner/wait.ts';
import { healthDocument, healthStatus, runnerState } from '../../src/http/health.ts';
import type { SystemStatus } from '../../src/http/health.ts';

const UP: SystemStatus = { executors: [], model: 'm', runner: { status: 'healthy', sandbox: {} } };
const missing = (runner: JsonObject | null, workedBefore = false, upMs = 0): SystemStatus => ({
  ...UP,
  runner,
  missing: [{ part: 'runner', state: runnerState(runner), reason: describeAbsence(runner), workedBefore, upMs }],
});

test.each<[string, SystemStatus, string, unknown]>([
  ['a runner that takes jobs', UP, 'healthy', undefined],
  ['no runner configured', { ...UP, runner: null }, 'healthy', undefined],
  ['a runner that has not answered yet', missing(null), 'starting', 'the runner does not answer'],
  [
    'a runner that has never answered',
    missing(null, false, limits.healthStartMs),
    'degraded',
    'the runner does not answer',
  ],
  ['a runner that no longer answers', missing(null, true), 'degraded', 'the runner does not answer'],
  ['a runner that drains', missing({ status: 'draining' }, true), 'degraded', 'the runner is draining'],
  [
    'a runner that builds its images',
    missing({
      status: 'starting',
      starting: {
        elapsed_ms: 12_000,
        images: [
          { name: 'node', state: 'waiting', elapsed_ms: 9 },
          { name: 'python3', state: 'building', elapsed_ms: 9_000 },
          { name: 'shell', state: 'ready', elapsed_ms: 400 },
        ],
      },
    }),
    'starting',
    'the runner is starting and builds the image python3 (2 of 3)',
  ],
])('[H1] %s: %s', (_name, status, expected, reason) => {
  expect(healthStatus(status)).toBe(expected);
  const document = healthDocument('1', status, true);
  expect(document).toMatchObject({ status: expected, service: 'cortex-edge', version: '1', executors: [] });
  expect(document['missing']).toEqual(reason === undefined ? undefined : [{ part: 'runner', reason }]);
});

test.each<[string, SystemStatus, unknown]>([
  ['a runner that takes jobs', UP, { runner: 'healthy' }],
  ['no runner configured', { ...UP, runner: null }, {}],
  ['a runner that does not answer', missing(null, true), { runner: 'unreachable' }],
  ['a runner that drains', missing({ status: 'draining' }, true), { runner: 'draining' }],
  ['a runner that builds its images', missing({ status: 'starting' }), { runner: 'starting' }],
  ['a runner with another state', missing({ status: 'http://10.0.0.1 broke' }), { runner: 'unavailable' }],
])('[H1] the parts of %s, for callers without a key too', (_name, status, parts) => {
  expect(healthDocument('1', status, false)['parts']).toEqual(parts);
});

test('[R1] the runner’s renamed state files are listed, if there are any', () => {
  const told = (setAside: string[]): unknown =>
    healthDocument('1', { ...UP, runner: { status: 'healthy', set_aside: setAside } }, true)['runner'];
  expect(told(['jobs.sqlite.bad-1'])).toMatchObject({ set_aside: ['jobs.sqlite.bad-1'] });
  expect(told([])).not.toHaveProperty('set_aside');
});

test('[S10] renamed databases are listed for callers with a key', () => {
  const status = { ...UP, setAside: ['v3/a.sqlite.set-aside-1'] };
  expect(healthDocument('1', status, true)).toMatchObject({ set_aside: ['v3/a.sqlite.set-aside-1'] });
  expect(healthDocument('1', status, false)).not.toHaveProperty('set_aside');
  expect(healthDocument('1', UP, true)).not.toHaveProperty('set_aside');
});
