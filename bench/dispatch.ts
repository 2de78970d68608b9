/**
 * `npm run bench:dispatch`: measures through the whole system in workerd
 *  - the time from the last character of a closing tag to the call of the tool, and
 *  - the makespan of streamed plans compared with their lower bound.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { once } from 'node:events';
import { createServer, request } from 'node:http';
import type { IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import { readEvents } from '../cli/terminal/event-client.ts';
import type { SessionEvent } from '../src/domain/event.ts';
import { freePort } from '../cli/system/services.ts';
import { startSystem } from '../cli/system/system.ts';
import { percentile, table, writeSection } from './report.ts';

const SAMPLES = Number(process.env['BENCH_SAMPLES'] ?? 200);
const WARM_UP = 20;
/** A model's pace: 60 tokens per second, four characters per token, sent every 50 ms. */
const PACE = { chars: 12, ms: 50 } as const;

const hits: number[] = [];
const toolServer = createServer((_request, response) => {
  hits.push(performance.now());
  response.end('ok');
});
await new Promise<void>((resolve) => toolServer.listen(0, '127.0.0.1', resolve));
const toolPort = (toolServer.address() as AddressInfo).port;

const stateDir = mkdtempSync(join(tmpdir(), 'cortex-bench-'));
const system = await startSystem({
  port: await freePort(),
  runnerPort: await freePort(),
  stateDir,
  vars: { ALLOW_HOSTS: `127.0.0.1:${toolPort}` },
  ownRunner: true,
  progress: (message) => console.error(message),
});

try {
  const latency = await closingTagLatency();
  const makespans = await measureWorkloads();
  const body = [
    '### From the closing tag to the tool',
    '',
    "A client streams protocol text. The time is from just before the client writes the last `>` of `</action>` until the tool's",
    'HTTP server receives the call, by one clock. It includes client, Worker, Durable Object, parser, scheduler, a journal write',
    'to disk, and the outgoing request. For comparison, the last row is a complete request to the same Worker that needs no',
    'Durable Object; the other rows use a stream that is already open.',
    '',
    table(
      ['', 'p50', 'p99', 'max'],
      [
        row('last `>` written → tool server receives the call', latency.tool),
        row('last `>` written → client reads `action_started`', latency.started),
        row('`GET /agents` round trip (no object, no journal)', latency.health),
      ],
    ),
    '',
    '### Makespan of streamed plans',
    '',
    'The text arrives at 60 tokens per second. Bound: each action is released when its closing tag has been written, and ends at',
    'max(release, end of its dependencies) + its duration. Target: bound + 1% + 50 ms.',
    '',
    table(
      ['plan', 'actions', 'in sequence', 'bound', 'measured', 'over the bound', 'target met'],
      makespans.map((m) => [
        m.name,
        String(m.actions),
        ms(m.sequentialMs),
        ms(m.boundMs),
        ms(m.measuredMs),
        `${(m.measuredMs - m.boundMs).toFixed(0)} ms (${(((m.measuredMs - m.boundMs) / m.boundMs) * 100).toFixed(1)}%)`,
        m.measuredMs <= m.boundMs * 1.01 + 50 ? 'yes' : 'no',
      ]),
    ),
  ].join('\n');
  writeSection('Dispatch', 'npm run bench:dispatch', body);
  console.log(body);
} finally {
  await system.stop();
  toolServer.close();
  rmSync(stateDir, { recursive: true, force: true });
}

function row(name: string, samples: readonly number[]): string[] {
  const show = (value: number): string => `${value.toFixed(2)} ms`;
  return [name, show(percentile(samples, 0.5)), show(percentile(samples, 0.99)), show(Math.max(...samples))];
}

function ms(value: number): string {
  return `${Math.round(value)} ms`;
}

async function closingTagLatency(): Promise<{ tool: number[]; started: number[]; health: number[] }> {
  const tool: number[] = [];
  const started: number[] = [];
  const health: number[] = [];
  for (let n = -WARM_UP; n < SAMPLES; n += 1) {
    hits.length = 0;
    const action = JSON.stringify({ name: 'web_fetch', parameters: { url: `http://127.0.0.1:${toolPort}/` } });
    const text = `<thought>one call <action type="tool" id="a">${action}</action`;
    let closedAt = Number.NaN;
    let startedAt = Number.NaN;
    for await (const event of stream([
      { text, waitMs: 15 },
      { text: '>', mark: (at) => (closedAt = at), waitMs: 15 },
      { text: '</thought>' },
    ])) {
      if (event.type === 'action_started') startedAt = performance.now();
      if (event.type === 'action_failed') throw new Error(JSON.stringify(event.data));
    }
    const before = performance.now();
    await (await fetch(`${system.url}/agents`)).arrayBuffer();
    const after = performance.now();
    if (n < 0) continue;
    tool.push((hits[0] ?? Number.NaN) - closedAt);
    started.push(startedAt - closedAt);
    health.push(after - before);
  }
  return { tool, started, health };
}

interface Step {
  readonly text: string;
  readonly waitMs?: number;
  /** Called just before the text is written to the connection. */
  readonly mark?: (at: number) => void;
}

/** Posts protocol text in pieces and reads the events at the same time. */
async function* stream(steps: readonly Step[]): AsyncGenerator<SessionEvent> {
  const sending = request(`${system.url}/execute/streaming_protocol`, {
    method: 'POST',
    headers: { 'content-type': 'text/plain' },
  });
  sending.setNoDelay(true);
  const answered = once(sending, 'response') as Promise<[IncomingMessage]>;
  const send = async (): Promise<void> => {
    for (const step of steps) {
      step.mark?.(performance.now());
      sending.write(step.text);
      if (step.waitMs !== undefined) await delay(step.waitMs);
    }
    sending.end();
  };
  const sent = send();
  const [response] = await answered;
  yield* readEvents(new Response(Readable.toWeb(response) as ReadableStream, { status: response.statusCode ?? 500 }));
  await sent;
}

interface Action {
  readonly id: string;
  readonly ms: number;
  readonly after: readonly string[];
}

interface Makespan {
  readonly name: string;
  readonly actions: number;
  readonly sequentialMs: number;
  readonly boundMs: number;
  readonly measuredMs: number;
}

function workloads(): Readonly<Record<string, readonly Action[]>> {
  const of = (id: string, duration: number, ...after: string[]): Action => ({ id, ms: duration, after });
  return {
    'two parallel searches': [of('a', 1_200), of('b', 900)],
    'chain of three': [of('a', 800), of('b', 800, 'a'), of('c', 800, 'b')],
    diamond: [of('a', 500), of('b', 1_500, 'a'), of('c', 700, 'a'), of('d', 300, 'b', 'c')],
    'skewed chains (2,16,2) (16,2,2) (2,2,16) ×100 ms': ['x', 'y', 'z'].flatMap((chain, index) =>
      [0, 1, 2].map((step) => {
        const slow = [1, 0, 2][index] === step;
        return of(`${chain}${step}`, slow ? 1_600 : 200, ...(step === 0 ? [] : [`${chain}${step - 1}`]));
      }),
    ),
    'research assistant, ten actions, 1/40': [
      of('wiki', 750),
      of('arxiv', 750),
      of('news', 500),
      of('facts', 375, 'wiki'),
      of('summary', 1_500, 'arxiv'),
      of('report', 3_000, 'facts', 'summary', 'news'),
      of('cache', 250, 'report'),
      of('quality', 500, 'report'),
      of('citations', 375, 'report'),
      of('final', 250, 'quality', 'citations'),
    ],
  };
}

async function measureWorkloads(): Promise<Makespan[]> {
  const measured: Makespan[] = [];
  for (const [name, actions] of Object.entries(workloads())) {
    const runs: { boundMs: number; measuredMs: number }[] = [];
    for (let repeat = 0; repeat < 3; repeat += 1) runs.push(await measureMakespan(actions));
    const median = runs.toSorted((a, b) => a.measuredMs - a.boundMs - (b.measuredMs - b.boundMs))[1];
    if (median === undefined) continue;
    const sequentialMs = actions.reduce((sum, action) => sum + action.ms, 0);
    measured.push({ name, actions: actions.length, sequentialMs, ...median });
  }
  return measured;
}

async function measureMakespan(actions: readonly Action[]): Promise<{ boundMs: number; measuredMs: number }> {
  const steps: Step[] = [];
  const releasedAt = new Map<string, number>();
  let firstAt = Number.NaN;
  for (const action of actions) {
    const body = JSON.stringify({ name: 'echo', parameters: { delay_ms: action.ms }, depends_on: action.after });
    const text = `<action type="tool" mode="async" id="${action.id}">${body}</action>\n`;
    for (let at = 0; at < text.length; at += PACE.chars) {
      const last = at + PACE.chars >= text.length;
      const mark = (now: number): void => {
        if (Number.isNaN(firstAt)) firstAt = now;
        if (last) releasedAt.set(action.id, now);
      };
      steps.push({ text: text.slice(at, at + PACE.chars), waitMs: PACE.ms, mark });
    }
  }
  let lastEndAt = Number.NaN;
  for await (const event of stream(steps)) {
    if (event.type === 'action_completed') lastEndAt = performance.now();
  }
  const finish = new Map<string, number>();
  for (const action of actions) {
    const ready = Math.max(releasedAt.get(action.id) ?? 0, ...action.after.map((id) => finish.get(id) ?? 0));
    finish.set(action.id, ready + action.ms);
  }
  return { boundMs: Math.max(...finish.values()) - firstAt, measuredMs: lastEndAt - firstAt };
}
