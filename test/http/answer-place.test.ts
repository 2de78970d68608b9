/** Where the stream begins that follows an answer (E1 to E3). */
import { expect, test } from 'vitest';
import type { SessionEvent } from '../../src/domain/event.ts';
import { placeBefore } from '../../src/http/surfaces/answer-place.ts';

/** `?a`: a is asked. `!a`: a is settled. `W`: the run waits. `E`: it ends. The place in the text is the seq, from 1. */
async function* eventsOf(text: string): AsyncGenerator<SessionEvent> {
  for (const [at, word] of text.split(' ').entries()) {
    const id = word.slice(1);
    const isCall = id === 'c';
    const about = isCall ? { call_id: id } : { approval_id: id };
    const [type, data] = {
      '?': [isCall ? 'client_tool_called' : 'approval_requested', about],
      '!': [isCall ? 'client_tool_settled' : 'approval_resolved', about],
      W: ['agent_waiting', {}],
      E: ['agent_completed', {}],
    }[word.slice(0, 1)] as [string, object];
    yield { seq: at + 1, type, data } as unknown as SessionEvent;
  }
}

test.each([
  ['an answer', '?a W !a E', 'a', 2],
  ['two answers', '?a ?c W !a !c E', 'ac', 3],
  ['two answers with a wait in between', '?a ?c W !a W !c E', 'ac', 3],
  ['an answer that came after the other one was given', '?a ?c W !a W !c E', 'c', 3],
  ['the second answer of a run', '?a W !a ?c W !c E', 'c', 5],
  ['the second answer, with the first one again', '?a W !a ?c W !c E', 'ac', 5],
  ['an answer that came too late', '?a W ?b W !b E', 'a', 2],
  ['two answers, one of which was given before the run waited', '?a ?c !a W !c E', 'ac', 4],
  ['an answer before the run waits', '?a !a E', 'a', 0],
  ['an answer before the run waits again', '?a W !a ?b !b E', 'b', 2],
  ['an answer to a background action that asks while the run waits', '?a W ?b !a !b E', 'ab', 3],
  ['an answer to a background action that asks while a run waits, which is cancelled then', '?a W ?b E', 'ab', 3],
  ['an answer to a background action that asks in the next wait', '?a ?d W !d ?b W !b E', 'ab', 6],
  ['an answer to a background action of an ended run', '?a E', 'a', 2],
  ['an answer to a background action that asks after the end', '?a W !a E', 'b', 4],
])('%s: %s', async (_, text, ids, place) => {
  expect(await placeBefore(eventsOf(text), { ids: ids.split(''), since: null, endsAtWait: false })).toBe(place);
});

test('a client that says what it has continues there', async () => {
  const text = '?a W !a ?b W !b ?c W !c E';
  for (const [since, place] of [
    [0, 2],
    [2, 5],
    [5, 8],
    [8, 10],
  ] as const) {
    expect(await placeBefore(eventsOf(text), { ids: ['c'], since, endsAtWait: false })).toBe(place);
  }
});

test.each([
  ['others have answered while the run waited for this one', '?a ?x W !x W !a E', 'a', 5],
  ['both, of which one was answered before', '?a ?c W !a W !c E', 'ac', 5],
  ['one of two', '?a ?c W !a W !c E', 'a', 3],
])(
  'where an answer ends at each wait, the next one begins after the last of them: %s: %s',
  async (_, text, ids, place) => {
    expect(await placeBefore(eventsOf(text), { ids: ids.split(''), since: null, endsAtWait: true })).toBe(place);
  },
);
