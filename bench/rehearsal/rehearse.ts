/** Runs a task with a model of a given behaviour: the real engine and tools, a real endpoint over HTTP. */
import { limits } from '../../src/domain/limits.ts';
import type { RunResult } from '../../src/engine/run/run-result.ts';
import { createModel } from '../../src/llm/routing/select.ts';
import { readScript } from '../../cli/scripted-llm/script.ts';
import { startScriptedLlm } from '../../cli/scripted-llm/server.ts';
import type { SeenRequest } from '../../cli/scripted-llm/server.ts';
import { SHAPE_NAMES } from '../../cli/scripted-llm/shapes.ts';
import { VirtualClock } from '../../testing/virtual-clock.ts';
import { say, sessionKit } from '../../test/support/session-kit.ts';
import { BEHAVIOURS } from './behaviours.ts';
import type { Behaviour } from './behaviours.ts';
import { TASKS } from './tasks.ts';
import type { Task } from './tasks.ts';

export interface Rehearsal {
  readonly task: Task;
  readonly behaviour: Behaviour;
  /** The provider whose chunk format the endpoint uses. */
  readonly shape: (typeof SHAPE_NAMES)[number];
}

export interface RehearsalResult {
  readonly rehearsal: Rehearsal;
  readonly result: RunResult;
  readonly right: boolean;
  readonly iterations: number;
  readonly tokens: number;
}

/** Short waits pass at once; timeouts never fire. */
class HastyClock extends VirtualClock {
  override schedule(delayMs: number, callback: () => void): () => void {
    if (delayMs >= limits.actionTimeoutMs || delayMs === limits.usageGraceMs) return () => {};
    const timer = setImmediate(callback);
    return () => clearImmediate(timer);
  }
}

/** Eight tasks with careful models, in four ways twice each; the other thirty-two with sloppy ones, about twice per way. */
export const REHEARSALS: readonly Rehearsal[] = (() => {
  const careful = BEHAVIOURS.filter(({ sloppy }) => !sloppy);
  const sloppy = BEHAVIOURS.filter((behaviour) => behaviour.sloppy);
  return Array.from({ length: 40 }, (_, index): Rehearsal => {
    const [ways, place] = index < 8 ? [careful, index] : [sloppy, index - 8];
    // Shifted by one in each round, so that a behaviour is combined with other tasks.
    const task = TASKS[(place + Math.floor(place / TASKS.length)) % TASKS.length];
    const behaviour = ways[place % ways.length];
    const shape = SHAPE_NAMES[index % SHAPE_NAMES.length];
    if (task === undefined || behaviour === undefined || shape === undefined) throw new Error('the tables are empty');
    return { task, behaviour, shape };
  });
})();

export async function rehearse(rehearsal: Rehearsal): Promise<RehearsalResult> {
  const { task, behaviour, shape } = rehearsal;
  let generation = 0;
  await using server = await startScriptedLlm((request) => {
    generation += 1;
    const { text, calls, finish } = behaviour.say(task, generation, toldIn(request));
    const reply = {
      ...(text === undefined ? {} : { text }),
      ...(calls === undefined ? {} : { tool_calls: calls }),
      ...(finish === undefined ? {} : { finish }),
      usage: 'none',
    };
    return readScript(JSON.stringify({ shape, pace: { chars: 7 }, replies: [reply] }))(request);
  });
  const clock = new HastyClock();
  const { provider } = createModel(
    { provider: shape, baseUrl: server.baseUrl, apiKey: 'sk-rehearsal', model: 'rehearsed' },
    { clock, random: () => 0 },
  );
  const kit = await sessionKit({
    clock,
    stream: (request) => provider.stream(request),
    agent: (agent) => ({
      ...agent,
      protocol: { ...agent.protocol, ...(behaviour.bareText === undefined ? {} : { bareText: behaviour.bareText }) },
    }),
  });
  const result = await say(kit, task.ask);
  const { prompt_tokens: prompt, completion_tokens: completion } = result.usage;
  return {
    rehearsal,
    result,
    right: result.status === 'completed' && result.response.includes(task.expect),
    iterations: result.iterations,
    tokens: Number(prompt ?? 0) + Number(completion ?? 0),
  };
}

/** Everything since the last message of the assistant. */
function toldIn({ body }: SeenRequest): string {
  const messages = Array.isArray(body['messages']) ? (body['messages'] as { role: string; content: unknown }[]) : [];
  const spoke = messages.findLastIndex(({ role, content }) => role === 'assistant' && content !== 'Noted.');
  return messages
    .slice(spoke + 1)
    .map(({ content }) => String(content))
    .join('\n');
}
