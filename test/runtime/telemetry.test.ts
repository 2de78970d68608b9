/** Traces, metrics and the platform's log, from real objects (O1, O2, X5). */
import { runInDurableObject } from 'cloudflare:test';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { limits } from '../../src/domain/limits.ts';
import { SessionObject } from '../../src/durable/objects/session-object.ts';
import { newSessionId } from '../../src/durable/session-ids.ts';
import { pointsIn, spansIn, treeOf } from '../support/otlp.ts';
import { here, SCHEDULES, SESSIONS } from './bindings.ts';
import { notesIn } from './objects.ts';
import { fetchWith } from './keyed.ts';
import { chatRecord, execute, newSession, post } from './client.ts';

const ENDPOINT = 'http://collector.example:4318';
const TRACE = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
const PROGRAM =
  '<action type="tool" mode="async" id="a" name="echo">{"parameters": {"n": 1}}</action><response final="true">$a.n</response>';

/** Requests to the collector; each is answered by the next function, or taken. */
function collector(...answers: (() => Response | Promise<Response>)[]): {
  readonly traces: string[];
  readonly metrics: string[];
} {
  const seen = { traces: [] as string[], metrics: [] as string[] };
  vi.stubGlobal('fetch', async (url: string, init: RequestInit) => {
    if (!url.startsWith(ENDPOINT)) throw new Error(`not the collector: ${url}`);
    const list = url.endsWith('/v1/traces') ? seen.traces : seen.metrics;
    list.push(String(init.body));
    return (await answers.shift()?.()) ?? Response.json({});
  });
  return seen;
}

afterEach(() => void vi.unstubAllGlobals());

/** Runs the program in an object whose environment has an endpoint. */
async function inObject(
  use: (object: SessionObject, storage: DurableObjectStorage, id: string) => Promise<void>,
  settings: object = { OTEL_EXPORTER_OTLP_ENDPOINT: ENDPOINT },
): Promise<void> {
  const id = await newSessionId(here);
  await runInDurableObject(SESSIONS.getByName(id), async (_object, state) => {
    const object = new SessionObject(state, { ...here, ...settings });
    await object.create(chatRecord(id), {});
    await use(object, state.storage, id);
  });
}

async function run(object: SessionObject, headers: Record<string, string> = {}): Promise<void> {
  const body = JSON.stringify({ protocol_text: PROGRAM, stream: false });
  const request = new Request('http://session/-/execute', {
    method: 'POST',
    body,
    headers: { 'content-type': 'application/json', ...headers },
  });
  const response = await object.fetch(request);
  expect(await response.json()).toMatchObject({ status: 'completed', response: '1' });
}

describe('[O1] without an endpoint', () => {
  test('a run stores no row and sends no request', async () => {
    const fetched = vi.fn<typeof fetch>();
    vi.stubGlobal('fetch', fetched);
    const { session_id: id } = await execute(PROGRAM);
    const stored = await runInDurableObject(SESSIONS.getByName(id), (_object, { storage }) => notesIn(storage));
    expect(stored).not.toHaveProperty('telemetry');
    expect(fetched.mock.calls).toEqual([]);
  });
});

describe('[O1] with an endpoint', () => {
  test('the alarm exports the run within ten seconds of its end, once', async () => {
    const seen = collector();
    await inObject(async (object, storage) => {
      await run(object);
      const ended = Date.now();
      await expect.poll(() => storage.getAlarm()).toBeLessThanOrEqual(ended + 10_000);
      await expect.poll(() => Date.now()).toBeGreaterThan(ended + limits.telemetryDelayMs);
      await object.alarm();
      await expect.poll(() => seen.metrics).toHaveLength(1);
      expect(treeOf(spansIn(seen.traces))).toEqual(['invoke_agent assistant', '  execute_tool echo']);
      const duration = pointsIn(seen.metrics).find(({ metric }) => metric === 'cortex.run.duration');
      expect(duration).toMatchObject({ count: 1, attributes: { 'cortex.run.status': 'completed' } });
      await expect
        .poll(() => (notesIn(storage)['telemetry'] as { readonly seq: number } | undefined)?.seq)
        .toBeGreaterThan(3);
      await object.alarm();
      await object.alarm();
      expect([seen.traces.length, seen.metrics.length]).toEqual([1, 1]);
    });
  });

  test('a session that is deleted at once is exported before', async () => {
    const seen = collector();
    await inObject(async (object, storage) => {
      await run(object);
      await object.remove();
      expect(treeOf(spansIn(seen.traces))).toEqual(['invoke_agent assistant', '  execute_tool echo']);
      expect([storage.kv.get('telemetry'), notesIn(storage)]).toEqual([undefined, {}]);
    });
  });

  test('the trace of the caller is continued', async () => {
    const seen = collector();
    await inObject(async (object) => {
      await run(object, { traceparent: TRACE });
      await object.remove();
      expect(spansIn(seen.traces).find(({ name }) => name === 'invoke_agent assistant')).toMatchObject({
        traceId: '4bf92f3577b34da6a3ce929d0e0e4736',
        parentSpanId: '00f067aa0ba902b7',
      });
    });
  });
});

describe('[O1] traceparent at the Worker', () => {
  const traceOf = (session: string): Promise<unknown> =>
    runInDurableObject(SESSIONS.getByName(session), (_object, { storage }) => {
      const { input } = storage.sql.exec(`SELECT input FROM runs WHERE run = 1`).one();
      return (JSON.parse(String(input)) as { trace?: string }).trace;
    });

  test('is taken from callers with a key, not from tokens', async () => {
    const own = await newSession();
    const message = { content: 'hello', stream: false };
    await (await post(`/agent/session/${own}/message`, message, { traceparent: TRACE })).text();
    expect(await traceOf(own)).toBe(TRACE);

    const other = await newSession();
    const { token } = await (
      await post(`/agent/session/${other}/tokens`, { scopes: ['read', 'message'] })
    ).json<{ token: string }>();
    const headers = { traceparent: TRACE, authorization: `Bearer ${token}` };
    const response = await post(`/agent/session/${other}/message`, message, headers);
    expect(response.status).toBe(200);
    await response.text();
    expect(await traceOf(other)).toBeUndefined();
  });
});

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
    expect((await fetchWith(env, '/health')).status).toBe(200);
  }
  expect(entries('setting_invalid').map(({ level, message }) => [level, message])).toEqual([
    [
      'warn',
      expect.stringContaining('ALLOW_HOSTS must be a list of host or host:port, found "http://127.0.0.1:24100"'),
    ],
    ['warn', 'DEBUG_PROMPTS must be 1 or 0, found "maybe"'],
  ]);
});
