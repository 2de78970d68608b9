/**
 * `npm run bench:mcp`: what tools of MCP servers cost: the time that our client adds to a call of the reference SDK's bare
 * client, and how long plans with such tools take, from the message to the end of the answer, next to the lower bound and to
 * tools without a server.
 *
 * BENCH_ROWS=<part of a name> runs only those plans and writes nothing.
 */
import { fork } from 'node:child_process';
import { join } from 'node:path';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { PACKAGE_ROOT } from '../cli/project/folders.ts';
import { mcpKit } from '../test/mcp/kit.ts';
import { idealNative, lowerBound } from './makespan/bounds.ts';
import { protocolGenerations } from './makespan/generation.ts';
import { promptOf, startModelServer } from './makespan/model-server.ts';
import { runOwn } from './makespan/own-system.ts';
import { startStagedSystem } from './makespan/staged-system.ts';
import type { StagedSystem } from './makespan/staged-system.ts';
import type { WorkAction, Workload } from './makespan/workloads.ts';
import { percentile, table, writeSection } from './report.ts';

const CALLS = 400;
/** Repeats of a plan at each pace, which is in tokens a second. */
const PACES = new Map([
  [300, 3],
  [5_000, 9],
]);
const THINK_MS = 50;
const OUTPUT = { form: 'compact', oneGeneration: true, equalTokens: false } as const;
const PROTOCOLS = ['2026-07-28', '2025-11-25'] as const;
const FIRST_TOKEN_MS = 100;

/** Who does the work of a plan. */
const AGENTS = ['built-in tools', ...PROTOCOLS.map((protocol) => `MCP ${protocol}`)] as const;

const only = process.env['BENCH_ROWS'] ?? '';
const child = fork(join(PACKAGE_ROOT, 'bench/mcp/server.ts'));
let runs = 0;

const ABOUT_PLANS = `### Plans

Milliseconds from the message to the end of the answer, through the whole system; in brackets, the ratio to the lower bound, in which every call starts with its last character or its last input. The model begins after ${FIRST_TOKEN_MS} ms and writes the plan and the answer in one generation. Each session is new, so that a server of 2025-11-25 gets its handshakes in the run: three requests for each connection, one connection for each call at a time.`;

try {
  const urls = await new Promise<readonly string[]>((resolve) =>
    child.once('message', (value) => resolve(value as string[])),
  );
  const calls = only === '' ? await callTable(urls) : null;
  await using model = await startModelServer();
  await using system = await startStagedSystem(
    { LLM_BASE_URL: model.baseUrl, LLM_MODEL: 'scripted', ALLOW_HOSTS: urls.map((url) => new URL(url).host).join(',') },
    Object.fromEntries(urls.map((url, at) => [`agents/${agentName(at + 1)}.yaml`, agentYaml(agentName(at + 1), url)])),
  );
  const sections: string[] = [];
  for (const [tokensPerSecond, repeats] of PACES) {
    console.error(`${tokensPerSecond} tokens a second`);
    sections.push(await planTable(system, model, tokensPerSecond, repeats));
  }
  const text = [calls, ABOUT_PLANS, ...sections].filter((section) => section !== null).join('\n\n');
  if (only === '') writeSection('MCP', 'npm run bench:mcp', text, 2);
  console.log(text);
} finally {
  child.kill();
}

/** The same call by the bare client and by ours, in turn. */
async function callTable(urls: readonly string[]): Promise<string> {
  const rows: string[][] = [];
  for (const [at, protocol] of PROTOCOLS.entries()) {
    const url = urls[at] ?? '';
    console.error(`calls: ${protocol}`);
    const client = new Client({ name: 'bench', version: '1.0.0' }, { versionNegotiation: { mode: 'auto' } });
    await client.connect(new StreamableHTTPClientTransport(new URL(url)));
    const kit = mcpKit(url);
    const [tool] = (await kit.define()).tools;
    if (tool === undefined) throw new Error('the server lists no tools');
    const parameters = { q: 'copper price' };
    const bare: number[] = [];
    const own: number[] = [];
    // The first calls open connections and warm up the code.
    for (let n = -50; n < CALLS; n += 1) {
      const bareMs = await timed(async () => {
        const { structuredContent } = await client.callTool({ name: tool.name, arguments: parameters });
        return structuredContent;
      });
      const ownMs = await timed(async () => {
        const outcome = await kit.callDefined(tool, parameters);
        return outcome.ok ? outcome.output : null;
      });
      if (n < 0) continue;
      bare.push(bareMs);
      own.push(ownMs);
    }
    await client.close();
    const [bareMs, ownMs] = [percentile(bare, 0.5), percentile(own, 0.5)];
    rows.push([
      protocol,
      bareMs.toFixed(2),
      ownMs.toFixed(2),
      (ownMs - bareMs).toFixed(2),
      (ownMs / bareMs).toFixed(2),
      percentile(bare, 0.99).toFixed(2),
      percentile(own, 0.99).toFixed(2),
    ]);
  }
  const head = ['protocol', 'bare client', 'ours', 'added', 'ratio', 'bare client, p99', 'ours, p99'];
  return `### One call\n\nA tool that answers at once, called ${CALLS} times by the bare client of the reference SDK and by ours, in turn; both in one process of Node, the server in another. Medians in milliseconds. Ours checks the address, limits bytes and time, and maps the result.\n\n${table(head, rows)}`;
}

async function timed(call: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  const result = await call();
  const ms = performance.now() - startedAt;
  if (JSON.stringify(result) !== '{"q":"copper price"}') throw new Error(`the result is ${JSON.stringify(result)}`);
  return ms;
}

async function planTable(
  system: StagedSystem,
  model: Awaited<ReturnType<typeof startModelServer>>,
  tokensPerSecond: number,
  repeats: number,
): Promise<string> {
  const rows: string[][] = [];
  for (const workload of workloads(tokensPerSecond, repeats).filter(({ name }) => name.includes(only))) {
    const bound = lowerBound(workload, OUTPUT);
    const samples = AGENTS.map((): number[] => []);
    for (let repeat = -1; repeat < workload.repeats; repeat += 1) {
      for (const [at, ms] of samples.entries()) {
        const taken = await planMs(system, model, workload, agentName(at));
        if (repeat >= 0) ms.push(taken);
      }
    }
    const cell = (ms: number): string => `${ms.toFixed(0)} (${(ms / bound).toFixed(2)})`;
    rows.push([
      workload.name,
      bound.toFixed(0),
      ...samples.map((ms) => cell(percentile(ms, 0.5))),
      cell(idealNative(workload)),
    ]);
  }
  const head = ['plan', 'lower bound', ...AGENTS, 'ideal native calls (computed)'];
  return `#### ${tokensPerSecond} tokens a second\n\nMedians of ${repeats} runs, in turn.\n\n${table(head, rows)}`;
}

async function planMs(
  system: StagedSystem,
  model: Awaited<ReturnType<typeof startModelServer>>,
  workload: Workload,
  agent: string,
): Promise<number> {
  runs += 1;
  const name = `mcp${runs}`;
  const generations = protocolGenerations(workload, OUTPUT);
  model.register(name, {
    pace: workload.pace,
    next: (messages) => generations[messages.filter(({ role }) => role === 'assistant').length] ?? { segments: [] },
  });
  const { ms, completed, answer } = await runOwn(system.url, agent, promptOf(name));
  if (completed !== workload.actions.length || !/: part .* kept for later/.test(answer)) {
    throw new Error(`${agent}, ${workload.name}: ${completed} calls, ${JSON.stringify(answer.slice(0, 200))}`);
  }
  return ms;
}

/** Twenty calls each. */
function workloads(tokensPerSecond: number, repeats: number): Workload[] {
  const call = (id: string, ms: number, ...after: string[]): WorkAction => ({
    id,
    tool: 'work',
    ms,
    after,
    q: `part ${id}`,
  });
  const plan = (name: string, actions: readonly WorkAction[]): Workload => ({
    name,
    actions,
    slots: 32,
    thinkingTokens: 0,
    pace: { firstTokenMs: FIRST_TOKEN_MS, tokensPerSecond },
    batch: 250,
    repeats,
    targetLead: 1,
    targetOver: 0.01,
  });
  const numbers = Array.from({ length: 20 }, (_, at) => at);
  const nine = numbers.slice(0, 9);
  return [
    plan(
      `20 parallel calls of ${THINK_MS} ms`,
      numbers.map((at) => call(`p${at}`, THINK_MS)),
    ),
    plan(`1, 9 and 9 calls of ${THINK_MS} ms, and a join`, [
      call('first', THINK_MS),
      ...nine.map((at) => call(`a${at}`, THINK_MS, 'first')),
      ...nine.map((at) => call(`b${at}`, THINK_MS, `a${at}`)),
      call('join', THINK_MS, ...nine.map((at) => `b${at}`)),
    ]),
    plan(
      `a chain of 20 calls of ${THINK_MS} ms`,
      numbers.map((at) => call(`c${at}`, THINK_MS, ...(at === 0 ? [] : [`c${at - 1}`]))),
    ),
    plan(
      'a chain of 20 calls of 0 ms',
      numbers.map((at) => call(`z${at}`, 0, ...(at === 0 ? [] : [`z${at - 1}`]))),
    ),
  ];
}

/** By its place in `AGENTS`. */
function agentName(at: number): string {
  return at === 0 ? 'bench_256' : `bench_mcp_${at}`;
}

function agentYaml(name: string, url: string): string {
  return `kind: Agent
version: "1.0"
name: ${name}
summary: Carries out the plans of the benchmark.
persona: You carry out plans.
mcp_servers:
  - { name: bench, url: "${url}", trust: true }
loop:
  max_parallel_actions: 32
`;
}
