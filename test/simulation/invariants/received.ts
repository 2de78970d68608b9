/** Messages that runs have received (C5), as the journal tells it. */
import type { SessionEvent } from '../../../src/domain/event.ts';
import { markedIn } from '../world/marks.ts';
import { byRun } from './invariant.ts';

export interface ReceivedMessage {
  readonly run: number;
  readonly message: number;
  readonly seq: number;
  /** A generation of the run began after it, and shows it. Otherwise it becomes the message of another run. */
  readonly isTaken: boolean;
  /** The beginning of that generation, as a seq; Infinity if there is none. */
  readonly shownAt: number;
  /** The run waited for people or clients after it. */
  readonly hasWaited: boolean;
}

export function receivedIn(events: readonly SessionEvent[]): ReceivedMessage[] {
  return [...byRun(events)].flatMap(([run, ofRun]) =>
    ofRun.flatMap((event, at) => {
      if (event.type !== 'message_received') return [];
      const after = new Set(ofRun.slice(at).map(({ type }) => type));
      const waited = ofRun
        .slice(0, at)
        .findLast(({ type }) => type === 'agent_waiting' || type === 'iteration_started');
      const hasWaited = after.has('agent_waiting') || waited?.type === 'agent_waiting';
      const shownAt = ofRun.slice(at).find(({ type }) => type === 'iteration_started')?.seq ?? Infinity;
      const isTaken = shownAt < Infinity;
      return [{ run, message: markedIn(event.data.content) ?? -1, seq: event.seq ?? 0, isTaken, shownAt, hasWaited }];
    }),
  );
}
