/**
 * `npm run bench:makespan`: the duration of an agent's work from the user's message to the end of the
 * answer: Cortex Edge as a whole in workerd, other frameworks from their packages, ideal systems and the
 * lower bound, with the same model and the same delays.
 *
 * BENCH_ROWS=<part of a name> runs only those rows and writes nothing.
 */
import { join } from 'node:path';
import { PACKAGE_ROOT } from '../cli/project/folders.ts';
import { idealNative, lowerBound, planThenWaves, sequentialReAct } from './makespan/bounds.ts';
import { measureDispatch } from './makespan/dispatch.ts';
import {
  actionText,
  nativeGeneration,
  nativeSegment,
  protocolGenerations,
  referencedIds,
  tokenCount,
  tokensOf,
} from './makespan/generation.ts';
import type { FanOutFigures } from './makespan/fan-out.ts';
import { measureFanOut } from './makespan/fan-out.ts';
import type { OutputForm } from './makespan/generation.ts';
import { promptOf, startModelServer } from './makespan/model-server.ts';
import type { ModelRun } from './makespan/model-server.ts';
import { runOwn } from './makespan/own-system.ts';
import { PEER_NAMES, installPeers, startPeer } from './makespan/peers.ts';
import type { Peer } from './makespan/peers.ts';
import { report } from './makespan/report.ts';
import type { Row } from './makespan/report.ts';
import { agentFor, startStagedSystem } from './makespan/staged-system.ts';
import { startToolServer } from './makespan/tool-server.ts';
import { WORKLOADS } from './makespan/workloads.ts';
import type { Workload } from './makespan/workloads.ts';
import { percentile } from './report.ts';

const OUTPUT_FORMS = {
  full: { form: 'full', oneGeneration: false, equalTokens: false },
  compact: { form: 'compact', oneGeneration: false, equalTokens: false },
  one: { form: 'compact', oneGeneration: true, equalTokens: false },
  equal: { form: 'compact', oneGeneration: false, equalTokens: true },
  equalOne: { form: 'compact', oneGeneration: true, equalTokens: true },
} as const satisfies Readonly<Record<string, OutputForm>>;

const only = process.env['BENCH_ROWS'] ?? '';
const startedAt = performance.now();
installPeers();
await using model = await startModelServer();
await using toolServer = await startToolServer();
const vars = { LLM_BASE_URL: model.baseUrl, LLM_MODEL: 'scripted', ALLOW_HOSTS: toolServer.host };
await using system = await startStagedSystem(vars);
const peers = PEER_NAMES.map((name) => startPeer(name));
let runs = 0;

try {
  await warmUp();
  const dispatch =
    only === '' || only === 'dispatch' ? await measureDispatch({ model, toolServer, system, peers }) : null;
  const fanOut = only === '' || only === 'fan-out' ? await fanOutFigures() : null;
  const rows: Row[] = [];
  for (const workload of WORKLOADS.filter(({ name }) => name.includes(only))) {
    console.error(`${Math.round((performance.now() - startedAt) / 1_000)} s: ${workload.name}`);
    rows.push(await measure(workload));
  }
  const minutes = (performance.now() - startedAt) / 60_000;
  const chart = only === '' ? join(PACKAGE_ROOT, 'docs/benchmarks-makespan.svg') : null;
  console.log(report({ rows, dispatch, fanOut, peers: peers.map(({ title }) => title), minutes, chart }));
} finally {
  for (const peer of peers) peer[Symbol.dispose]();
}

/** With a second system, which enforces the limits of the platform. */
async function fanOutFigures(): Promise<FanOutFigures[]> {
  console.error('fan-out');
  await using limited = await startStagedSystem({ ...vars, PLATFORM_LIMITS: 'paid' });
  const systems = { 'no limits': system, 'limits of the paid plan': limited };
  return await measureFanOut({ model, toolServer, systems });
}

/** Loads modules and compiles code for all actors before the measurement. */
async function warmUp(): Promise<void> {
  const [first] = WORKLOADS;
  if (first === undefined) return;
  const actions = first.actions.map((action) => ({ ...action, ms: 10 }));
  const quick = { ...first, actions, pace: { firstTokenMs: 5, tokensPerSecond: 1_000 }, repeats: 5 };
  for (const output of Object.values(OUTPUT_FORMS)) await ownMs(quick, output);
  for (const peer of peers) await peerMs(quick, peer);
}

async function measure(workload: Workload): Promise<Row> {
  const own: Partial<Record<keyof typeof OUTPUT_FORMS, { ms: number; boundMs: number }>> = {};
  const peerTimes: number[] = [];
  const ourTurn = async (...names: (keyof typeof OUTPUT_FORMS)[]): Promise<void> => {
    for (const name of names) {
      own[name] = { ms: await ownMs(workload, OUTPUT_FORMS[name]), boundMs: lowerBound(workload, OUTPUT_FORMS[name]) };
    }
  };
  const peersTurn = async (): Promise<void> => {
    for (const peer of peers) peerTimes.push(await peerMs(workload, peer));
  };
  const lanes = [() => ourTurn('full', 'compact', 'one'), () => ourTurn('equal', 'equalOne'), peersTurn];
  // At a model's pace the actors use little CPU and run concurrently; at 50 times the pace they run one by one.
  if (workload.pace.tokensPerSecond > 100) for (const lane of lanes) await lane();
  else await Promise.all(lanes.map((lane) => lane()));
  const byId = new Map(workload.actions.map((action) => [action.id, action]));
  const referred = referencedIds(workload, false);
  const mean = (count: (action: Workload['actions'][number]) => number): number =>
    workload.actions.reduce((sum, action) => sum + count(action), 0) / workload.actions.length;
  return {
    workload,
    reactMs: sequentialReAct(workload),
    nativeMs: idealNative(workload),
    wavesMs: planThenWaves(workload, false),
    equalWavesMs: planThenWaves(workload, true),
    peersMs: peerTimes,
    own: own as Row['own'],
    tokens: {
      full: mean((action) => tokensOf(actionText(action, 'full', referred)).length),
      compact: mean((action) => tokensOf(actionText(action, 'compact', referred)).length),
      native: mean((action) => tokenCount(nativeSegment(action, byId))),
    },
  };
}

async function ownMs(workload: Workload, output: OutputForm): Promise<number> {
  const generations = protocolGenerations(workload, output);
  const agent = agentFor(workload.slots);
  return await median(workload.repeats, async () => {
    const prompt = register({
      pace: workload.pace,
      next: (messages) => {
        const said = messages.filter(({ role }) => role === 'assistant').length;
        return generations[said] ?? { segments: [] };
      },
    });
    const { ms, completed, answer } = await runOwn(system.url, agent, prompt);
    check(workload, 'Cortex Edge', completed, answer);
    return ms;
  });
}

async function peerMs(workload: Workload, peer: Peer): Promise<number> {
  return await median(workload.repeats, async () => {
    const prompt = register({
      pace: workload.pace,
      next: (messages) => nativeGeneration(workload, answered(messages)),
    });
    const { ms, toolCalls, answer } = await peer.run({ baseUrl: model.baseUrl, prompt, slots: workload.slots });
    check(workload, peer.title, toolCalls, answer);
    return ms;
  });
}

/** The actions whose results are in the conversation. */
function answered(messages: Parameters<ModelRun['next']>[0]): Set<string> {
  const results = messages.filter(({ role }) => role === 'tool');
  return new Set(results.map(({ tool_call_id: id }) => String(id).replace('call_', '')));
}

function register(run: ModelRun): string {
  runs += 1;
  model.register(`m${runs}`, run);
  return promptOf(`m${runs}`);
}

/** A time counts only if the work was done: every tool once, and an answer with their results. */
function check(workload: Workload, actor: string, toolCalls: number, answer: string): void {
  const expected = workload.actions.length;
  if (toolCalls !== expected) throw new Error(`${actor}, ${workload.name}: ${toolCalls} tool calls, not ${expected}`);
  const last = workload.actions.at(-1)?.q ?? '';
  if (!answer.includes('kept for later') || (expected < 5 && !answer.includes(last))) {
    throw new Error(`${actor}, ${workload.name}: the answer is ${JSON.stringify(answer.slice(0, 200))}`);
  }
}

async function median(times: number, measureOnce: () => Promise<number>): Promise<number> {
  const samples: number[] = [];
  for (let n = 0; n < times; n += 1) samples.push(await measureOnce());
  return percentile(samples, 0.5);
}
