/** The export of traces and metrics from a session's object (O1, O2). The collector is a port: `fetch` of the isolate. */
import { runInDurableObject } from 'cloudflare:test';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { limits } from '../../src/domain/limits.ts';
import { SessionObject } from '../../src/durable/objects/session-object.ts';
import { newSessionId } from '../../src/durable/session-ids.ts';
import { pointsIn, spansIn, treeOf } from '../support/otlp.ts';
import { here, SESSIONS } from './bindings.ts';
import { chatRecord, execute, newSession, post } from './client.ts';
import { notesIn } from './notes-in.ts';

const ENDPOINT = 'http://collector.example:4318';
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

  test('what the object writes is the same as with one, but for the cursor', async () => {
    collector();
    const rows: unknown[] = [];
    for (const settings of [{}, { OTEL_EXPORTER_OTLP_ENDPOINT: ENDPOINT }]) {
      await inObject(async (object, storage) => {
        await run(object);
        const tables = storage.sql
          .exec<{ name: string }>(
            `SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE '\\_cf%' ESCAPE '\\' ORDER BY name`,
          )
          .toArray()
          .map(({ name }) => name);
        expect(tables).toContain('events');
        rows.push(tables.map((name) => [name, storage.sql.exec(`SELECT COUNT(*) AS n FROM ${name}`).one()['n']]));
      }, settings);
    }
    expect(rows[0]).toEqual(rows[1]);
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

  test('after a refusal, the same spans are sent again with the same ids', async () => {
    const seen = collector(() => new Response('busy', { status: 503 }));
    await inObject(async (object, storage, id) => {
      await run(object);
      const ended = Date.now();
      await expect.poll(() => Date.now()).toBeGreaterThan(ended + limits.telemetryDelayMs);
      await object.alarm();
      const repeat = { failures: 1, done: ['metrics'] };
      await expect
        .poll(() => (notesIn(storage)['telemetry'] as { readonly failed?: object } | undefined)?.failed)
        .toMatchObject(repeat);
      // The host ends; another one continues, when it is due.
      const dueAt = Date.now();
      storage.sql.exec(`UPDATE session SET notes = json_set(notes, '$.telemetry.failed.dueAt', ?)`, dueAt);
      const ctx = Object.getOwnPropertyDescriptor(object, 'ctx')?.value as DurableObjectState;
      const again = new SessionObject(ctx, { ...here, OTEL_EXPORTER_OTLP_ENDPOINT: ENDPOINT });
      await again.alarm();
      await expect.poll(() => seen.traces).toHaveLength(2);
      expect(seen.traces[1]).toBe(seen.traces[0]);
      // the metrics were taken the first time
      expect(seen.metrics).toHaveLength(1);
      expect(spansIn(seen.traces)[0]?.attributes['gen_ai.conversation.id']).toBe(id);
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
      await run(object, { traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01' });
      await object.remove();
      expect(spansIn(seen.traces).find(({ name }) => name === 'invoke_agent assistant')).toMatchObject({
        traceId: '4bf92f3577b34da6a3ce929d0e0e4736',
        parentSpanId: '00f067aa0ba902b7',
      });
    });
  });

  test('a trace that the caller does not record is not exported; its metrics are', async () => {
    const seen = collector();
    await inObject(async (object) => {
      await run(object, { traceparent: '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00' });
      await object.remove();
      expect([seen.traces, seen.metrics.length]).toEqual([[], 1]);
    });
  });
});

describe('[O1] traceparent at the Worker', () => {
  const TRACE = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
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
