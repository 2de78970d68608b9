import type { SessionEvent } from '../../../src/domain/event.ts';
import { actionOf, factsOf, runOf } from './invariant.ts';
import type { Invariant } from './invariant.ts';

interface Answer {
  readonly question: string;
  readonly content: string;
}

export const answeredOnce: Invariant = {
  name: 'answered once',
  holds:
    'The answer to a question reaches the attempt that follows it, with its values and its state, and no other action; no attempt starts while a question is open or after a denial.',
  *check(seen) {
    const started = new Map<string, Answer | null>();
    yield* follow(seen.events, started);
    for (const { id, key, attempt, isRecorded, answer } of factsOf(seen, 'tool_called')) {
      const [run, iteration] = key.split('/').slice(-3);
      const place = `run ${run}, iteration ${iteration}, ${id}`;
      const expected = started.get(`${place} #${attempt}`);
      // The start of an attempt that may run twice can be lost with its host, and with what was decided before.
      if (!isRecorded || expected === undefined) continue;
      const given = textOf(answer);
      if (given !== textOf(expected)) {
        yield `attempt ${attempt} of ${place} had ${given}, and its question was answered with ${textOf(expected)}`;
      }
    }
  },
};

function textOf(answer: Answer | null): string {
  return answer === null ? 'no answer' : `${answer.content} for "${answer.question}"`;
}

/** @param started gets the answer that each attempt must have */
function* follow(events: readonly SessionEvent[], started: Map<string, Answer | null>): Generator<string> {
  const open = new Map<string, string>();
  const answers = new Map<string, Answer>();
  const denied = new Set<string>();
  for (const event of events) {
    const action = actionOf(event);
    switch (event.type) {
      case 'approval_requested':
        if (event.data.question === undefined) break;
        if (open.has(action)) yield `${action} has two open questions`;
        open.set(action, event.data.question.message);
        break;
      case 'approval_resolved': {
        const question = open.get(action);
        open.delete(action);
        if (!event.data.approved) denied.add(action);
        const { content } = event.data;
        if ((content !== undefined) !== (question !== undefined && event.data.approved)) {
          yield `the decision about ${action} in run ${runOf(event)} has the wrong values`;
        }
        if (question !== undefined && content !== undefined) {
          answers.set(action, { question, content: JSON.stringify(content) });
        }
        break;
      }
      case 'action_started': {
        const { attempt } = event.data;
        if (open.has(action)) yield `attempt ${attempt} of ${action} started before its question was answered`;
        if (denied.has(action)) yield `attempt ${attempt} of ${action} started after a denial`;
        started.set(`${action} #${attempt}`, answers.get(action) ?? null);
        break;
      }
      default:
    }
  }
}
