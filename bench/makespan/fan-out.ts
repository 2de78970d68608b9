/**
 * A wide fan-out of HTTP calls, with and without the platform's limits: the time of a run relative to its lower bound. Without
 * helper invocations, six connections of a session's object would wait at once; that time is computed.
 */
import { percentile } from '../report.ts';
import { finishTimes, timeline } from './bounds.ts';
import { tokensOf } from './generation.ts';
import type { Generation, Segment } from './generation.ts';
import { promptOf } from './model-server.ts';
import type { ModelServer } from './model-server.ts';
import { runOwn } from './own-system.ts';
import { agentFor } from './staged-system.ts';
import type { StagedSystem } from './staged-system.ts';
import type { ToolServer } from './tool-server.ts';
import { WIDE } from './workloads.ts';

const CALLS = 64;
const CALL_MS = 5_000;
/** The generation is shorter than a call, so that all calls wait at once. */
const PACE = { firstTokenMs: 600, tokensPerSecond: 1_000 } as const;
const REPEATS = 3;

export interface FanOutFigures {
  readonly actor: string;
  readonly runs: number;
  readonly medianMs: number;
  readonly boundMs: number;
}

/** The systems take turns. @param systems by their names in the table */
export async function measureFanOut(options: {
  readonly model: ModelServer;
  readonly toolServer: ToolServer;
  readonly systems: Readonly<Record<string, StagedSystem>>;
}): Promise<FanOutFigures[]> {
  const { model, toolServer, systems } = options;
  const names = Object.keys(systems);
  const samples = new Map<string, number[]>(names.map((name) => [name, []]));
  let runs = 0;
  // The first round opens connections and warms up the code.
  for (let round = -1; round < REPEATS; round += 1) {
    for (const [name, { url }] of Object.entries(systems)) {
      const run = `f${(runs += 1)}`;
      const generation = fanOut(toolServer.url, run);
      model.register(run, { pace: PACE, next: () => generation });
      const { ms, completed } = await runOwn(url, agentFor(WIDE), promptOf(run));
      if (completed !== CALLS) throw new Error(`${name}: ${completed} of ${CALLS} calls completed`);
      if (round >= 0) samples.get(name)?.push(ms);
    }
  }
  const generation = fanOut(toolServer.url, 'f');
  const bound = boundOf(generation, CALLS);
  const measured = names.map((actor) => {
    const times = samples.get(actor) ?? [];
    return { actor, runs: times.length, medianMs: percentile(times, 0.5), boundMs: bound };
  });
  return [...measured, { actor: 'six connections*', runs: 0, medianMs: boundOf(generation, 6), boundMs: bound }];
}

function fanOut(toolUrl: string, run: string): Generation {
  const segments = Array.from({ length: CALLS }, (_, at): Segment => {
    const parameters = JSON.stringify({ url: `${toolUrl}/${run}/${at}?ms=${CALL_MS}` });
    const text = `<action name="web_fetch" id="c${at}" mode="async">${parameters}</action>\n`;
    return { type: 'text', pieces: tokensOf(text), closes: `c${at}` };
  });
  const answer = '<response final="true">Done.</response>';
  return { segments: [...segments, { type: 'text', pieces: tokensOf(answer), closes: null }] };
}

/** If each call starts when its closing tag arrives, as soon as one of the slots is free. */
function boundOf(generation: Generation, slots: number): number {
  const { endMs, releases } = timeline(generation, PACE, 0);
  const calls = [...releases.keys()].map((id) => ({ id, tool: 'work' as const, ms: CALL_MS, after: [], q: '' }));
  return Math.max(endMs, ...finishTimes(calls, releases, slots).values());
}
