/** What `npm run bench:cost` has the systems do, each in the form of a session of ours and of a bare object. */
import { readEvents } from '../../cli/terminal/event-client.ts';
import { tokensOf } from '../makespan/generation.ts';
import type { ModelServer } from '../makespan/model-server.ts';
import { promptOf } from '../makespan/model-server.ts';
import { runOwn } from '../makespan/own-system.ts';
import { contestants } from '../sessions/contestants.ts';
import type { Contestant } from '../sessions/contestants.ts';
import type { Plan } from './plan.ts';

/** One row: the work of one run. */
export interface Work {
  readonly name: string;
  /** What the CPU time is divided by. */
  readonly unit: string;
  readonly units: number;
  /** Runs at a time in a sample. */
  readonly atOnce: number;
  /** Shortest possible duration in milliseconds; null if the duration is not of interest. */
  readonly boundMs: number | null;
  /** @returns the duration in milliseconds. @throws Error if the work was not done */
  readonly own: (url: string) => Promise<number>;
  readonly bare: (url: string) => Promise<number>;
}

const JSON_BODY = { 'content-type': 'application/json' };
const SLOTS = 16;
const FAST = 20_000;

interface Call {
  readonly id: string;
  readonly tool: 'work' | 'call';
  readonly ms: number;
  readonly after: string | null;
}

/** @param toolHost of the HTTP tool */
export function allWork(model: ModelServer, toolHost: string): Work[] {
  const echo = Array.from({ length: 100 }, (_, n): Call => ({ id: `e${n}`, tool: 'work', ms: 0, after: null }));
  const wide = Array.from({ length: 100 }, (_, n): Call => ({ id: `h${n}`, tool: 'call', ms: 50, after: null }));
  const chain = Array.from({ length: 20 }, (_, n): Call => ({
    id: `c${n}`,
    tool: 'call',
    ms: 5,
    after: n === 0 ? null : `c${n - 1}`,
  }));
  const bare = { toolHost, slots: SLOTS };
  return [
    answer(model, '1,000 tokens, each in a chunk', 400, 8),
    answer(model, '1,000 tokens at 20,000/s', FAST, 2),
    {
      name: '100 calls of `echo`, posted',
      unit: 'action',
      units: echo.length,
      atOnce: 2,
      boundMs: null,
      own: (url) => posted(url, echo),
      bare: (url) => direct(url, { ...bare, calls: [], prompt: null }),
    },
    {
      name: '100 HTTP calls of 50 ms at 16 slots, posted',
      unit: 'action',
      units: wide.length,
      atOnce: 1,
      boundMs: makespan(wide, null),
      own: (url) => posted(url, wide),
      bare: (url) => direct(url, { ...bare, calls: wide, prompt: null }),
    },
    {
      name: '100 HTTP calls of 50 ms at 16 slots, streamed at 20,000 tokens/s',
      unit: 'action',
      units: wide.length,
      atOnce: 1,
      boundMs: makespan(wide, FAST),
      own: (url) => streamed(url, model, wide),
      bare: (url) => direct(url, { ...bare, calls: [], prompt: register(model, wide), expected: wide.length }),
    },
    {
      name: 'chain of 20 HTTP calls of 5 ms, posted',
      unit: 'action',
      units: chain.length,
      atOnce: 1,
      boundMs: makespan(chain, null),
      own: (url) => posted(url, chain),
      bare: (url) => direct(url, { toolHost, slots: 1, calls: chain, prompt: null }),
    },
  ];
}

let runs = 0;

function answer(model: ModelServer, name: string, tokensPerSecond: number, atOnce: number): Work {
  const pieces = Array.from({ length: 1_000 }, (_, n) => `word${n} `);
  const all = contestants('word999 ');
  const named = (wanted: string): Contestant | undefined => all.find((one) => one.name === wanted);
  const key = `answer${tokensPerSecond}`;
  model.register(key, {
    pace: { firstTokenMs: 5, tokensPerSecond },
    next: () => ({ segments: [{ type: 'text', pieces, closes: null }] }),
  });
  const turn = async (url: string, of: Contestant | undefined): Promise<number> => {
    if (of?.turn == null) throw new Error('no such contestant');
    return (await of.turn(url, await of.create(url), promptOf(key))).totalMs;
  };
  return {
    name,
    unit: 'answer',
    units: 1,
    atOnce,
    boundMs: null,
    own: (url) => turn(url, named('Cortex Edge')),
    bare: (url) => turn(url, named('bare object')),
  };
}

function text(calls: readonly Call[]): string {
  const actions = calls.map(({ id, tool, ms, after }) => {
    const of = after === null ? {} : { of: `$${after}` };
    const parameters = tool === 'work' ? { q: id, ...of } : { ms, call: id, ...of };
    return `<action type="tool" mode="async" name="${tool}" id="${id}">${JSON.stringify(parameters)}</action>`;
  });
  return `${actions.join('\n')}\n<response final="true">Done, kept for later.</response>`;
}

async function posted(url: string, calls: readonly Call[]): Promise<number> {
  const startedAt = performance.now();
  const response = await fetch(`${url}/execute/streaming_protocol`, {
    method: 'POST',
    headers: JSON_BODY,
    body: JSON.stringify({ agent: 'bench_16', protocol_text: text(calls) }),
  });
  let completed = 0;
  let last = '';
  for await (const event of readEvents(response)) {
    last = event.type;
    if (event.type === 'action_completed') completed += 1;
  }
  if (completed !== calls.length || last !== 'agent_completed') {
    throw new Error(`${completed} of ${calls.length} actions completed; the run ended with ${last}`);
  }
  return performance.now() - startedAt;
}

async function streamed(url: string, model: ModelServer, calls: readonly Call[]): Promise<number> {
  const { ms, completed } = await runOwn(url, 'bench_16', register(model, calls));
  if (completed !== calls.length) throw new Error(`${completed} of ${calls.length} actions completed`);
  return ms;
}

/** @returns the message with which a system asks the model for these calls */
function register(model: ModelServer, calls: readonly Call[]): string {
  runs += 1;
  const name = `cost${runs}`;
  const pieces = tokensOf(text(calls));
  model.register(name, {
    pace: { firstTokenMs: 0, tokensPerSecond: FAST },
    next: () => ({ segments: [{ type: 'text', pieces, closes: null }] }),
  });
  return promptOf(name);
}

async function direct(
  url: string,
  {
    toolHost,
    slots,
    calls,
    prompt,
    expected = calls.length,
  }: Pick<Plan, 'slots' | 'prompt'> & { toolHost: string; calls: readonly Call[]; expected?: number },
): Promise<number> {
  const startedAt = performance.now();
  const given = calls.map(({ id, ms }) => ({ call: id, ms }));
  const response = await fetch(`${url}/execute`, {
    method: 'POST',
    headers: JSON_BODY,
    body: JSON.stringify({ host: toolHost, calls: given, slots, prompt } satisfies Plan),
  });
  const { completed } = (await response.json()) as { completed: number };
  if (completed !== expected) throw new Error(`${completed} of ${expected} calls completed`);
  return performance.now() - startedAt;
}

/** The shortest duration: each call starts when it has been written, its input is there, and a slot is free. */
function makespan(calls: readonly Call[], tokensPerSecond: number | null): number {
  const perCall =
    tokensPerSecond === null ? 0 : (tokensOf(text(calls)).length / calls.length / tokensPerSecond) * 1_000;
  const ends = new Map<string, number>();
  const slots = Array.from({ length: SLOTS }, () => 0);
  for (const [n, { id, ms, after }] of calls.entries()) {
    slots.sort((a, b) => a - b);
    const startMs = Math.max((n + 1) * perCall, slots[0] ?? 0, after === null ? 0 : (ends.get(after) ?? 0));
    slots[0] = startMs + ms;
    ends.set(id, startMs + ms);
  }
  return Math.max(...ends.values());
}
