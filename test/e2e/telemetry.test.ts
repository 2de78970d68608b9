/**
 * Traces and metrics of the whole system, in a real collector (O1, O2): one tree for a run with sub-agents, a workflow,
 * retries, an approval and a program on the runner, also across a crash and failures of the collector.
 */
import { createServer } from 'node:http';
import type { IncomingHttpHeaders, Server } from 'node:http';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { LIGHT_SANDBOX } from '../../container-runner/test/support/levels.ts';
import { freePort } from '../../cli/system/services.ts';
import { answer, startScriptedLlm } from '../../cli/scripted-llm/server.ts';
import type { ScriptedLlm } from '../../cli/scripted-llm/server.ts';
import { startSystem } from '../../cli/system/system.ts';
import type { System } from '../../cli/system/system.ts';
import { METRICS } from '../../src/telemetry/metrics.ts';
import { pointsIn } from '../support/otlp.ts';
import { startCollector, startSink } from '../support/collector.ts';
import type { CollectedSpan, Collector, Sink } from '../support/collector.ts';

const LATER = { timeout: 60_000, interval: 200 };
const TRACE_ID = '4bf92f3577b34da6a3ce929d0e0e4736';
const CALLER = '00f067aa0ba902b7';

const manifest = (kind: string, name: string, more: object): string =>
  JSON.stringify({ kind, version: '1.0', name, summary: `The ${name}.`, ...more });

const action = (type: string, id: string, body: object, attributes = ''): string =>
  `<action type="${type}" mode="async" id="${id}"${attributes}>${JSON.stringify(body)}</action>`;

/** What the model of the desk says: everything that a trace must show. */
const PROGRAM = [
  action('agent', 'h', { name: 'helper', parameters: { message: 'help' } }),
  action('workflow', 'w', { name: 'closing', parameters: {} }),
  action('tool', 'f', { name: 'flaky', parameters: {}, retry: 2 }),
  action('python', 'p', { parameters: { code: 'import os\nprint(os.environ.get("TRACEPARENT", "none"))' } }),
  action('tool', 'm', { name: 'echo', parameters: { text: 'sent', after: '$f' } }),
  '<response final="true">$h | $w.word | $f.n | $m.text</response>',
].join('\n');
const HELPER = `${action('tool', 'c', { name: 'calculator', parameters: { expression: '6 * 7' } })}<response final="true">$c</response>`;

let collector: Collector;
let sink: Sink;
let llm: ScriptedLlm;
let flaky: Server;
let system: System;
/** Headers of the requests of the tool, which fails the first time. */
const called: IncomingHttpHeaders[] = [];
const stateDir = mkdtempSync(join(tmpdir(), 'cortex-telemetry-'));

beforeAll(async () => {
  collector = await startCollector();
  sink = await startSink(collector.url);
  llm = await startScriptedLlm(({ body }) => {
    const [{ content = '' } = {}] = body['messages'] as { readonly content?: string }[];
    return answer(String(content).includes('You are helper') ? HELPER : PROGRAM, 40);
  });
  flaky = createServer((request, response) => {
    called.push(request.headers);
    response.writeHead(called.length % 2 === 1 ? 503 : 200, { 'content-type': 'application/json' }).end('{"n": 7}');
  }).listen(0, '127.0.0.1');
  await once(flaky, 'listening');
  const host = `127.0.0.1:${(flaky.address() as AddressInfo).port}`;
  system = await startSystem({
    port: await freePort(),
    runnerPort: await freePort(),
    stateDir,
    vars: {
      LLM_BASE_URL: llm.baseUrl,
      LLM_API_KEY: 'sk-test',
      LLM_MODEL: 'scripted',
      ALLOW_HOSTS: host,
      POLICIES: JSON.stringify([{ when: 'action.name == "echo" && "text" in parameters', do: 'ask' }]),
      OTEL_EXPORTER_OTLP_ENDPOINT: sink.url,
      OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test',
    },
    ownRunner: true,
    // Not through the sink: it counts what the Worker sends.
    runnerEnv: { ...LIGHT_SANDBOX, OTEL_EXPORTER_OTLP_ENDPOINT: collector.url },
    progress: () => undefined,
  });
  const files = {
    'agents/desk.yaml': manifest('Agent', 'desk', {
      persona: 'You are desk.',
      import: { tools: ['flaky', 'echo'], agents: ['helper'], workflows: ['closing'] },
      capabilities: ['python'],
    }),
    'agents/helper.yaml': manifest('Agent', 'helper', {
      persona: 'You are helper.',
      import: { tools: ['calculator'] },
    }),
    'tools/flaky.yaml': manifest('Tool', 'flaky', {
      effects: 'idempotent',
      parameters: { type: 'object' },
      implementation: { type: 'http', method: 'GET', url: `http://${host}/` },
    }),
    'workflows/closing.yaml': manifest('Workflow', 'closing', {
      inputs: { type: 'object' },
      import: { tools: ['echo'] },
      steps: [{ name: 'say', type: 'tool', target: 'echo', parameters: { word: 'closed' } }],
      outputs: { word: 'steps.say.word' },
    }),
  };
  const uploaded = await send('PUT', '/manifests', { files });
  expect([uploaded.status, await uploaded.json()]).toMatchObject([200, { problems: [] }]);
}, 240_000);

afterAll(async () => {
  await system.stop();
  flaky.close();
  await llm[Symbol.asyncDispose]();
  await sink[Symbol.asyncDispose]();
  await collector[Symbol.asyncDispose]();
  rmSync(stateDir, { recursive: true, force: true });
});

function send(method: string, path: string, body?: object, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(`${system.url}${path}`, {
    method,
    headers: { 'content-type': 'application/json', ...headers },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
}

async function newSession(): Promise<string> {
  const response = await send('POST', '/agent/desk/session', {});
  return ((await response.json()) as { readonly session_id: string }).session_id;
}

async function spansOf(traceId: string): Promise<readonly CollectedSpan[]> {
  return (await collector.traces()).filter((trace) => trace.traceId === traceId).flatMap(({ spans }) => spans);
}

/** Approves what waits. */
async function approve(session: string): Promise<void> {
  const open = async (): Promise<readonly { readonly approval_id: string }[]> =>
    ((await (await send('GET', `/agent/session/${session}/approvals`)).json()) as { approvals: [] }).approvals;
  await expect.poll(open, LATER).toHaveLength(1);
  const [{ approval_id: id = '' } = {}] = await open();
  expect((await send('POST', `/agent/session/${session}/approvals/${id}`, { approve: true })).status).toBe(200);
}

async function ended(session: string): Promise<void> {
  const last = async (): Promise<unknown> => {
    const { runs } = (await (await send('GET', `/agent/session/${session}/runs`)).json()) as {
      readonly runs: readonly { readonly status: string }[];
    };
    return runs.at(-1)?.status;
  };
  await expect.poll(last, LATER).toBe('completed');
}

/** Name, parent's name and status of each span, by the order of the names. */
function shape(spans: readonly CollectedSpan[]): string[] {
  const nameOf = new Map(spans.map(({ spanId, name }) => [spanId, name]));
  return spans
    .map(({ name, parentSpanId = '', status }) => {
      const parent = parentSpanId === CALLER ? 'the caller' : (nameOf.get(parentSpanId) ?? `none (${parentSpanId})`);
      return `${name} < ${parent}${status.code === 'ERROR' ? ' failed' : ''}`;
    })
    .toSorted();
}

/** Spans of the Worker, without those of the runner. */
const ofWorker = (spans: readonly CollectedSpan[]): CollectedSpan[] =>
  spans.filter(({ attributes }) => 'gen_ai.operation.name' in attributes || 'cortex.approval.id' in attributes);

const TREE = [
  'approval echo < invoke_agent desk',
  'chat scripted < invoke_agent desk',
  'chat scripted < invoke_agent helper',
  'execute_tool calculator < invoke_agent helper',
  'execute_tool echo < invoke_agent desk',
  'execute_tool echo < invoke_workflow closing',
  'execute_tool flaky < invoke_agent desk',
  'execute_tool flaky < invoke_agent desk failed',
  'execute_tool python < invoke_agent desk',
  'invoke_agent desk < the caller',
  'invoke_agent helper < invoke_agent desk',
  'invoke_agent helper < invoke_agent helper',
  'invoke_workflow closing < invoke_agent desk',
  'invoke_workflow closing < invoke_workflow closing',
];

describe('[O1] one run, one tree', () => {
  test('with a sub-agent, a workflow, a retry, an approval and a program, in the trace of the caller', async () => {
    const session = await newSession();
    const sent = await send(
      'POST',
      `/agent/session/${session}/message`,
      { content: 'close the day', stream: false },
      { traceparent: `00-${TRACE_ID}-${CALLER}-01` },
    );
    expect(await sent.json()).toMatchObject({ status: 'waiting' });
    await approve(session);
    await ended(session);
    const doneAt = Date.now();
    await expect.poll(async () => shape(ofWorker(await spansOf(TRACE_ID))), LATER).toEqual(TREE);
    expect(Date.now() - doneAt).toBeLessThan(20_000);

    const spans = await spansOf(TRACE_ID);
    const find = (name: string, status = 'UNSET'): CollectedSpan | undefined =>
      ofWorker(spans).find((span) => span.name === name && (span.status.code === 'ERROR') === (status === 'ERROR'));
    // What was called has the spans of the calls.
    const header = (span: CollectedSpan | undefined): string => `00-${TRACE_ID}-${span?.spanId}-01`;
    expect(called.map(({ traceparent }) => traceparent)).toEqual([
      header(find('execute_tool flaky', 'ERROR')),
      header(find('execute_tool flaky')),
    ]);
    const chats = ofWorker(spans).filter(({ name }) => name === 'chat scripted');
    expect(llm.requests.map(({ headers }) => headers['traceparent']).toSorted()).toEqual(chats.map(header).toSorted());
    // The runner exports the spans of the job as children of the attempt, and the program got the one of its run.
    const python = find('execute_tool python');
    const child = async (name: string, of: CollectedSpan | undefined): Promise<CollectedSpan | undefined> =>
      (await spansOf(TRACE_ID)).find((span) => span.name === name && span.parentSpanId === of?.spanId);
    const ran = async (): Promise<CollectedSpan | undefined> => await child('run', await child('job python', python));
    await expect.poll(async () => (await ran())?.traceId, LATER).toBe(TRACE_ID);
    expect((await child('job python', python))?.attributes['gen_ai.conversation.id']).toBe(session);
    const document = await (await send('GET', `/agent/session/${session}/export`)).text();
    expect(document).toContain(header(await ran()));
    // A child begins after its parent, and the root contains everything that was awaited.
    const byId = new Map(spans.map((span) => [span.spanId, span]));
    const pairs = ofWorker(spans).map(({ parentSpanId = '', startTime }) => ({
      startTime,
      parent: byId.get(parentSpanId),
    }));
    expect(pairs.filter(({ parent }) => parent === undefined).length).toBeLessThanOrEqual(1);
    for (const { startTime, parent } of pairs) expect(startTime).toBeGreaterThanOrEqual(parent?.startTime ?? 0);
    // Each span once, although nothing prevents a repeat.
    expect(new Set(spans.map(({ spanId }) => spanId)).size).toBe(spans.length);
  });

  test('metrics have the names, units and attributes of the table, and agree with the trace', async () => {
    const points = pointsIn(sink.metrics);
    for (const { metric, attributes } of points) {
      const known = Object.entries(METRICS).find(([name]) => name === metric)?.[1];
      expect(known?.attributes).toEqual(expect.arrayContaining(Object.keys(attributes)));
    }
    const count = (metric: string, attributes: object): number =>
      points
        .filter((point) => point.metric === metric && isWithin(attributes, point.attributes))
        .reduce((sum, point) => sum + point.count, 0);
    expect(count('cortex.run.duration', { 'gen_ai.agent.name': 'desk', 'cortex.run.status': 'completed' })).toBe(1);
    expect(count('cortex.run.duration', { 'cortex.run.kind': 'workflow' })).toBe(1);
    expect(count('cortex.action.duration', { 'error.type': 'http_error' })).toBe(1);
    expect(count('cortex.approval.duration', { 'cortex.approval.decision': 'approved' })).toBe(1);
    expect(count('gen_ai.client.token.usage', { 'gen_ai.token.type': 'output' })).toBe(2);
  });
});

function isWithin(part: object, whole: object): boolean {
  return Object.entries(part).every(([key, value]) => Object.entries(whole).some(([k, v]) => k === key && v === value));
}

describe('[O1] failures', () => {
  test('a collector that refuses and stalls, and a crash of the Worker: the tree is complete, with the same ids', async () => {
    sink.mode = 'refuse';
    const traceId = TRACE_ID.replaceAll('4', '5');
    const session = await newSession();
    await send(
      'POST',
      `/agent/session/${session}/message`,
      { content: 'close the day', stream: false },
      { traceparent: `00-${traceId}-${CALLER}-01` },
    );
    await expect.poll(() => sink.seen.filter(([mode]) => mode === 'refuse').length, LATER).toBeGreaterThan(0);
    sink.mode = 'stall';
    await approve(session);
    await ended(session);
    // The host ends while an export waits for the collector, or before it.
    const worker = system.parts.find(({ name }) => name === 'Worker');
    await worker?.stop(0);
    sink.mode = 'forward';
    await worker?.start();
    await expect.poll(async () => shape(ofWorker(await spansOf(traceId))), LATER).toEqual(TREE);
    const spans = await spansOf(traceId);
    expect(new Set(spans.map(({ spanId }) => spanId)).size).toBe(spans.length);
  }, 200_000);

  test('what the collector drops is reported, and not sent again', async () => {
    sink.mode = 'partial';
    const before = sink.seen.length;
    const response = await send('POST', '/execute/direct', {
      protocol_text: '<response final="true">hello</response>',
      stream: false,
    });
    expect(await response.json()).toMatchObject({ status: 'completed' });
    await expect.poll(() => sink.seen.length - before, LATER).toBeGreaterThanOrEqual(2);
    sink.mode = 'forward';
    const sentOnce = sink.seen.length;
    const other = await send('POST', '/execute/direct', {
      protocol_text: '<response final="true">hello again</response>',
      stream: false,
    });
    await other.text();
    await expect.poll(() => sink.seen.length, LATER).toBe(sentOnce + 2);
  });
});
