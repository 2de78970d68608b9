/** The platform's log, written by real objects (X5). */
import { createExecutionContext, runInDurableObject } from 'cloudflare:test';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { edge } from '../../src/durable/edge.ts';
import { here, SCHEDULES } from './bindings.ts';

const lines: string[] = [];

beforeEach(() => {
  lines.length = 0;
  for (const method of ['log', 'warn', 'error'] as const) {
    vi.spyOn(console, method).mockImplementation((line: unknown) => void lines.push(String(line)));
  }
});
afterEach(() => vi.restoreAllMocks());

const entries = (event: string): Record<string, unknown>[] =>
  lines.flatMap((line) => {
    const entry = line.startsWith('{') ? (JSON.parse(line) as Record<string, unknown>) : {};
    return entry['event'] === event ? [entry] : [];
  });

/** Runs the alarm of a schedule whose workflow is missing. */
async function alarms(name: string, times: number, broken: boolean): Promise<void> {
  const target = SCHEDULES.getByName(name);
  await target.keep([], null);
  await runInDurableObject(target, async (object, { storage }) => {
    const due = { workflow: 'gone', cron: '0 3 * * *', timezone: 'UTC', inputs: {}, nextAt: Date.now() };
    storage.sql.exec(`INSERT INTO schedules (workflow, data) VALUES (?, ?)`, due.workflow, JSON.stringify(due));
    if (broken) Object.defineProperty(object, 'env', { value: { ...here, SESSIONS: null } });
    for (let time = 0; time < times; time += 1) await object.alarm();
  });
}

test('[X5] a failed run of a schedule is one entry, with its session and its error', async () => {
  await alarms('test-log-run', 1, false);
  await expect.poll(() => entries('run_failed')).toHaveLength(1);
  expect(entries('run_failed')[0]).toEqual({
    level: 'error',
    event: 'run_failed',
    session_id: expect.stringMatching(/^ses_/) as string,
    workflow: 'gone',
    kind: 'execution',
    run_id: expect.stringMatching(/^run_\w+_1$/) as string,
    code: 'unknown_workflow',
    message: 'No workflow is called "gone"',
  });
});

test('[X5] a schedule that cannot start is logged at its first attempt, and not again within a minute', async () => {
  await alarms('test-log-start', 2, true);
  expect(entries('schedule_failed')).toEqual([
    {
      level: 'error',
      event: 'schedule_failed',
      workflow: 'gone',
      message: expect.any(String) as string,
      stack: expect.any(String) as string,
    },
  ]);
});

test('[H8] settings without an effect are logged once, and the Worker serves', async () => {
  const env = { ...here, ALLOW_HOSTS: 'db.internal, http://127.0.0.1:24100', DEBUG_PROMPTS: 'maybe' };
  for (let time = 0; time < 2; time += 1) {
    const request = new Request('http://127.0.0.1/health') as Parameters<NonNullable<typeof edge.fetch>>[0];
    const answered = await edge.fetch?.(request, env, createExecutionContext());
    expect(answered?.status).toBe(200);
  }
  expect(entries('setting_invalid').map(({ level, message }) => [level, message])).toEqual([
    [
      'warn',
      expect.stringContaining('ALLOW_HOSTS must be a list of host or host:port, found "http://127.0.0.1:24100"'),
    ],
    ['warn', 'DEBUG_PROMPTS must be 1 or 0, found "maybe"'],
  ]);
});
