import { encodeEvent } from '../../../src/domain/event.ts';
import type { SessionEvent } from '../../../src/domain/event.ts';
import type { Observation } from '../observation.ts';
import { placeOf } from '../script.ts';
import { factsOf } from './invariant.ts';
import type { Invariant } from './invariant.ts';
import { receivedIn } from './received.ts';

const IDS = /\b(?:run_[0-9a-f]{32}_[0-9a-f]{12}|art_[0-9a-f]{12}|apr_\w+|call_[\w-]{20,})/g;

export const ownAnswers: Invariant = {
  name: 'own answers',
  holds:
    'A session that was made again under the same id has no answer, no id and nothing else of the earlier one; what arrives late for that one is refused.',
  *check(seen) {
    for (const { key } of factsOf(seen, 'earlier_answer')) yield `${key} is a key of the earlier session`;
    for (const { what, id, code } of factsOf(seen, 'late_answer')) {
      const isRefused = code === `unknown_${what}` || (seen.isDeleted && code === 'unknown_session');
      if (!isRefused) yield `the request for the ${what} ${id} of an earlier session was answered with ${code}`;
    }
    for (const { at, isAsked } of factsOf(seen, 'deleted')) {
      if (!isAsked) yield `at ${at} ms, this session was deleted instead of an earlier one`;
    }
    yield* earlierIds(seen);
    yield* otherMessages(seen);
  },
};

function* earlierIds(seen: Observation): Generator<string> {
  const earlier = new Set(seen.earlier.flatMap(eventsOf).flatMap(idsIn));
  if (earlier.size === 0) return;
  for (const event of eventsOf(seen)) {
    const id = idsIn(event).find((own) => earlier.has(own));
    if (id !== undefined) yield `event ${event.seq} (${event.type}) has the id ${id} of an earlier session`;
  }
}

/** The journal, and what readers got. */
function eventsOf({ events, readers }: Observation): SessionEvent[] {
  return [...events, ...readers.flatMap(({ frames }) => frames.map(({ event }) => event))];
}

function idsIn(event: SessionEvent): string[] {
  return Array.from(encodeEvent(event).matchAll(IDS), ([id]) => id);
}

/** What a session shows and does belongs to its own messages. */
function* otherMessages(seen: Observation): Generator<string> {
  if (!seen.isWhole) return;
  const own = new Set([...seen.messageOf.values(), ...receivedIn(seen.events).map(({ message }) => message)]);
  for (const { message, call, marks = [] } of factsOf(seen, 'model_called')) {
    const other = marks.find((mark) => mark.startsWith('m') && !own.has(Number(mark.slice(1))));
    if (other !== undefined) yield `call ${call} of message ${message} shows the message ${other}, which was not sent`;
  }
  for (const { seq, action_id: token = '' } of seen.events) {
    const place = placeOf(token);
    if (place !== null && !own.has(place.message)) yield `event ${seq} is about ${token}, whose message was not sent`;
  }
}
