import type { SessionEvent } from '../../../src/domain/event.ts';
import { limits } from '../../../src/domain/limits.ts';
import { IDEMPOTENT_CONCURRENCY } from '../history.ts';
import type { Observation } from '../observation.ts';
import { scriptOf } from '../script.ts';
import { byRun, endsAction, factsOf, rerunsOf } from './invariant.ts';
import type { Invariant } from './invariant.ts';

/** Actions that use no slot (S5). */
const WITHOUT_SLOT: ReadonlySet<string> = new Set(['agent', 'workflow', 'internal']);

export const withinLimits: Invariant = {
  name: 'within limits',
  holds: 'No run has more running actions, attempts, questions, actions, iterations or model calls than it may.',
  *check(seen) {
    const { agent, messages } = seen.history;
    const reruns = rerunsOf(seen.events);
    for (const [run, events] of byRun(seen.events)) {
      const running = new Map<string, string>();
      const types = new Map<string, string>();
      // Attempts that end with a question do not count.
      const questions = new Map<string, number>();
      let accepted = 0;
      let iterations = 0;
      for (const event of events) {
        const id = event.action_id ?? '';
        if (event.type === 'iteration_started') iterations += 1;
        if (event.type === 'action_queued') {
          accepted += 1;
          types.set(id, event.data.type);
        }
        if (endsAction(event) || event.type === 'action_retrying') running.delete(id);
        if (event.type === 'approval_requested' && event.data.question !== undefined) {
          running.delete(id);
          questions.set(id, (questions.get(id) ?? 0) + 1);
          if ((questions.get(id) ?? 0) > limits.questionsPerAction) {
            yield `run ${run}: ${questions.get(id)} questions of ${id} (allowed: ${limits.questionsPerAction})`;
          }
        }
        if (event.type !== 'action_started') continue;
        // The client executes it (C3).
        if (event.action_name === 'client') continue;
        running.set(id, event.action_name ?? '');
        const most = reruns.has(run) ? limits.retryAttempts : mostAttempts(messages, id);
        const attempts = event.data.attempt - (questions.get(id) ?? 0);
        if (attempts > most) yield `run ${run}: attempt ${attempts} of ${id} (allowed: ${most})`;
        const slots = [...running.keys()].filter(
          (other) => !WITHOUT_SLOT.has(types.get(other) ?? '') && !isLeaving(events, other, event.timestamp),
        ).length;
        if (slots > agent.maxParallelActions)
          yield `run ${run}: ${slots} actions run in ${agent.maxParallelActions} slots`;
        const narrow = [...running.values()].filter((name) => name === 'idempotent').length;
        if (narrow > IDEMPOTENT_CONCURRENCY)
          yield `run ${run}: ${narrow} of one tool run (allowed: ${IDEMPOTENT_CONCURRENCY})`;
      }
      yield* withinTime(seen, run, events);
      if (accepted > agent.maxActions) yield `run ${run}: ${accepted} actions (allowed: ${agent.maxActions})`;
      // One more is the last one, which only answers; it is repeated if a crash interrupts it.
      const recoveries = events.filter(
        (event) => event.type === 'warning' && event.data.code === 'run_recovered',
      ).length;
      if (iterations > agent.maxIterations + 1 + recoveries)
        yield `run ${run}: ${iterations} iterations (allowed: ${agent.maxIterations})`;
    }
    for (const [message, calls] of Map.groupBy(factsOf(seen, 'model_called'), (fact) => fact.message)) {
      if (calls.length > agent.modelCalls) {
        yield `message ${message}: ${calls.length} model calls (allowed: ${agent.modelCalls})`;
      }
    }
    for (const { message, queued } of factsOf(seen, 'message_answered')) {
      if ((queued ?? 0) > limits.queuedMessages && messages[message]?.type === 'message') {
        yield `message ${message} is the ${queued}th in the queue (allowed: ${limits.queuedMessages})`;
      }
    }
  },
};

/**
 * Whether the target of a started action asks a question at this moment that the full session cannot keep: the action has given
 * its slot back, and fails next. Otherwise a full session ends no action that has started (J6, J8).
 */
function isLeaving(events: readonly SessionEvent[], id: string, at: number): boolean {
  return events.some(
    (event) =>
      event.type === 'action_failed' &&
      event.action_id === id &&
      event.timestamp === at &&
      event.data.error.code === 'session_full',
  );
}

function mostAttempts(messages: Parameters<typeof scriptOf>[0], token: string): number {
  const script = scriptOf(messages, token);
  return script?.retries ?? limits.retryAttempts;
}

/** The time budget holds. Crashes, people and slow disks add time that is not the run's. */
function* withinTime({ history }: Observation, run: number, events: readonly SessionEvent[]): Generator<string> {
  const isWithClient = events.some(({ type }) => type === 'client_tool_called' || type === 'approval_requested');
  if (history.faults.length > 0 || history.agent.supervised || isWithClient) return;
  const [first] = events;
  const end = events.find(({ type }) => /^agent_(completed|failed|cancelled)$/.test(type));
  if (first?.type !== 'agent_started' || end === undefined) return;
  const tookMs = end.timestamp - first.timestamp;
  const mostMs = history.agent.seconds * 1_000 + limits.lastGenerationMs;
  if (tookMs > mostMs) yield `run ${run} took ${tookMs} ms (allowed: ${mostMs})`;
}
