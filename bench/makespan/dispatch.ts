/** The time from the last character of a call to the request at the tool's server, for every actor. */
import { percentile } from '../report.ts';
import { tokensOf } from './generation.ts';
import type { Generation, Segment } from './generation.ts';
import { promptOf } from './model-server.ts';
import type { ModelServer } from './model-server.ts';
import { runOwn } from './own-system.ts';
import type { Peer } from './peers.ts';
import type { StagedSystem } from './staged-system.ts';
import { agentFor } from './staged-system.ts';
import type { ToolServer } from './tool-server.ts';
import { WIDE } from './workloads.ts';

const OWN_SAMPLES = 100;
const PEER_SAMPLES = 20;
/** Faster than in the workloads, to get many samples quickly; the latency does not depend on it. */
const PACE = { firstTokenMs: 40, tokensPerSecond: 250 } as const;

export interface DispatchFigures {
  readonly actor: string;
  readonly samples: number;
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
  /** From the last character of the call to the end of the generation. */
  readonly restMs: number;
}

export async function measureDispatch(options: {
  readonly model: ModelServer;
  readonly toolServer: ToolServer;
  readonly system: StagedSystem;
  readonly peers: readonly Peer[];
}): Promise<DispatchFigures[]> {
  const { model, toolServer, system, peers } = options;
  const figures: DispatchFigures[] = [];
  const measure = async (
    actor: string,
    samples: number,
    native: boolean,
    run: (prompt: string) => Promise<unknown>,
  ) => {
    console.error(`dispatch: ${actor}`);
    const latencies: number[] = [];
    // The first calls open connections and warm up the code.
    for (let n = -5; n < samples; n += 1) {
      const name = `d${figures.length}x${n + 5}`;
      const path = `/${name}`;
      let closedAt = Number.NaN;
      const call = native ? nativeCall(`${toolServer.url}${path}`) : protocolCall(`${toolServer.url}${path}`);
      model.register(name, {
        pace: PACE,
        next: (messages) =>
          messages.some(({ role }) => role === 'tool' || role === 'assistant')
            ? { segments: [plain(native ? 'Done.' : '<response final="true">Done.</response>')] }
            : withRest(call, native),
        closed: (_id, at) => (closedAt = at),
      });
      await run(promptOf(name));
      const seen = toolServer.seen(path);
      if (seen === null || seen.calls !== 1) throw new Error(`${actor}: the tool was called ${seen?.calls ?? 0} times`);
      if (n >= 0) latencies.push(seen.at - closedAt);
    }
    figures.push({
      actor,
      samples,
      p50: percentile(latencies, 0.5),
      p99: percentile(latencies, 0.99),
      max: Math.max(...latencies),
      restMs: (REST.length * 1_000) / PACE.tokensPerSecond,
    });
  };
  await measure('Cortex Edge', OWN_SAMPLES, false, async (prompt) => await runOwn(system.url, agentFor(WIDE), prompt));
  for (const peer of peers) {
    const run = async (prompt: string): Promise<unknown> =>
      await peer.run({ baseUrl: model.baseUrl, prompt, slots: WIDE });
    await measure(peer.title, PEER_SAMPLES, true, run);
  }
  return figures;
}

/** The rest of the model's output in the same generation. */
const REST =
  ' While this is on its way, a few more words about how the result is going to be used, and what it is to be compared with, so that the generation goes on.'.split(
    /(?= )/,
  );

function withRest(call: Segment, native: boolean): Generation {
  const rest: Segment = { type: 'text', pieces: REST, closes: null };
  return { segments: native ? [call, rest] : [call, plain('<thought>'), rest, plain('</thought>')] };
}

function plain(content: string): Segment {
  return { type: 'text', pieces: tokensOf(content), closes: null };
}

function protocolCall(url: string): Segment {
  const text = `<action name="web_fetch" id="a" mode="async">${JSON.stringify({ url })}</action>`;
  return { type: 'text', pieces: tokensOf(text), closes: 'a' };
}

function nativeCall(url: string): Segment {
  return {
    type: 'call',
    id: 'a',
    name: 'web_fetch',
    headTokens: 5,
    pieces: tokensOf(JSON.stringify({ url })),
    tailTokens: 4,
  };
}
