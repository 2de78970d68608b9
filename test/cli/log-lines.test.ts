/** What `npm start` prints for entries of the Worker's log (X5). */
import { stripVTControlCharacters } from 'node:util';
import { describe, expect, test } from 'vitest';
import { LogLines } from '../../cli/system/log-lines.ts';
import { LOG_EVENTS } from '../../src/domain/log.ts';
import type { LogEvent, LogFields } from '../../src/domain/log.ts';
import { logEntry } from '../../src/policies/log-entry.ts';

const now = (): Date => new Date(2026, 0, 2, 3, 4, 5);
const plain = (line: string | null | undefined): string | null | undefined =>
  line == null ? line : stripVTControlCharacters(line);

/** The entry as `wrangler dev` prints it. */
function printed(event: LogEvent, fields: LogFields, count = 1): string {
  const entry = logEntry(event, fields, (text) => text, { admit: () => count });
  const label = entry?.level === 'error' ? '\u001b[31m✘ \u001b[41;31m[\u001b[41;97mERROR\u001b[41;31m]\u001b[0m ' : '';
  return `${label}\u001b[1m${entry?.line ?? ''}\u001b[0m`;
}

describe('[X5] a line for each entry', () => {
  test.each<[LogEvent, LogFields, number, string]>([
    [
      'run_failed',
      { session_id: 's', agent: 'desk', run_id: 'run_1', code: 'model_unavailable', message: 'no "answer" {}' },
      1,
      'run failed: agent desk, run_1: model_unavailable: no "answer" {}',
    ],
    ['schedule_failed', { workflow: 'nightly', message: 'm' }, 3, 'schedule failed: workflow nightly: m (3 times)'],
    ['setting_invalid', { message: 'm' }, 1, 'invalid setting: m'],
    ['work_quarantined', { message: 'run r is quarantined: m' }, 1, 'run r is quarantined: m'],
    ['request_failed', { method: 'GET', path: '/x', code: 'c', message: 'm' }, 1, 'request failed: GET /x: c: m'],
    ['internal_error', { session_id: 'ses_1', message: 'm' }, 1, 'internal error: ses_1: m'],
    ['webhook_refused', { message: 'a\u001b[2J\nb' }, 1, 'webhook refused: a\\u{1b}[2J\\u{a}b'],
  ])('%s', (event, fields, count, text) => {
    expect(plain(new LogLines(now).read(printed(event, fields, count)))).toBe(`03:04:05 ${text}`);
  });

  test.each(Object.keys(LOG_EVENTS) as LogEvent[])('every event has one: %s', (event) => {
    const lines = new LogLines(now);
    const fields = { runner: 'http://r', message: 'what happened', fault: new Error('x') };
    lines.read(printed('runner_unreachable', fields));
    const line = plain(lines.read(printed(event, fields)));
    expect(line).toMatch(/^03:04:05 .*what happened/);
    expect(line).not.toContain('\n');
  });

  test.each([
    '',
    'GET /health 200',
    '{"level":50,"msg":"of the runner"}',
    '{"level":"error","event":"other"}',
    '{"level":"',
  ])('other output is not an entry: %s', (line) => {
    expect(new LogLines(now).read(line)).toBeUndefined();
  });
});

test('[X5] a runner that has not answered yet is not shown during the start, nor that it answers', () => {
  const lines = new LogLines(now, true);
  const runner = { runner: 'http://r', message: 'm' };
  expect(lines.read(printed('runner_unreachable', runner))).toBeNull();
  expect(plain(lines.read(printed('run_failed', { message: 'm' })))).toContain('run failed');
  lines.started();
  expect(lines.read(printed('runner_reachable', runner))).toBeNull();
  expect(plain(lines.read(printed('runner_unreachable', runner)))).toContain('runner unreachable: http://r');
  expect(plain(lines.read(printed('runner_reachable', runner)))).toContain('runner reachable: http://r');
});
