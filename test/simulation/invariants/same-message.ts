import { endsWait, isBlockEnd, RUN_END_EVENTS } from '../../../src/domain/event.ts';
import type { SessionEvent } from '../../../src/domain/event.ts';
import type { ClientLog, ClientStream } from '../observation.ts';
import type { ClientProtocol, Reading } from '../protocols/client-protocol.ts';
import { CLIENT_PROTOCOLS } from '../protocols/protocols.ts';
import type { Invariant } from './invariant.ts';

export const sameMessage: Invariant = {
  name: 'same message',
  holds:
    'Whatever connections it took, a client of another protocol has the message that the stored run gives, and so has a page that is loaded again.',
  *check(seen) {
    if (!seen.isWhole) return;
    for (const client of seen.clients) {
      const { runId } = client;
      if (runId === null) continue;
      const protocol = CLIENT_PROTOCOLS[client.via.protocol];
      const all = seen.events.filter((event) => event.run_id === runId);
      const stored = untilEnd(all);
      if (isCutShort(stored)) continue;
      for (const [at, stream] of client.streams.entries()) {
        const what = differenceOf(protocol, stream, stored, runId);
        if (what !== null) yield `${client.name}, stream ${at} (${stream.asked}): ${what}`;
      }
      yield* differenceOfPage(protocol, client, all, runId);
    }
  },
};

/** The run's journal, without what its background actions write after its end. */
function untilEnd(all: readonly SessionEvent[]): readonly SessionEvent[] {
  const end = all.findIndex(({ type }) => RUN_END_EVENTS.has(type));
  return end === -1 ? all : all.slice(0, end + 1);
}

/** After a failed write, the host ends the run, with less text than it has sent, and without the answers that it could not write. */
function isCutShort(stored: readonly SessionEvent[]): boolean {
  const end = stored.at(-1);
  if (end?.type !== 'agent_failed') return false;
  return end.data.error.code === 'internal' || stored.some((event) => isBlockEnd(event) && event.data.cut === true);
}

/** A stream with an end gives what the run is stored with, up to its end or to one of its waits. */
function differenceOf(
  protocol: ClientProtocol,
  { end, reading }: ClientStream,
  stored: readonly SessionEvent[],
  runId: string,
): string | null {
  if (end !== 'ended' || reading.outcome === null || reading.outcome === 'lost') return null;
  const after = protocol.beginsAfter(reading);
  if (after === null) return null;
  const cuts = waitsOf(stored, after);
  const possible = [stored.length, ...cuts.toReversed()].map((cut) =>
    foldedOf(protocol, stored.slice(0, cut), runId, after),
  );
  const has = shownOf(protocol, reading, runId);
  const all = possible.map((one) => shownOf(protocol, one, runId));
  if (all.includes(has)) return null;
  const nearest = all[possible.findIndex(({ outcome }) => outcome === reading.outcome)] ?? all[0] ?? '';
  return `${excerpts(has, nearest)}`;
}

/** A page that was loaded after the run's end has what its background actions had done. */
function* differenceOfPage(
  protocol: ClientProtocol,
  { name, conversation }: ClientLog,
  all: readonly SessionEvent[],
  runId: string,
): Generator<string> {
  if (conversation === null || protocol.conversation === undefined) return;
  const found = protocol.conversation.find(conversation.text, runId);
  // Its list was read before the run had ended.
  if (found === null) return;
  const has = JSON.stringify(protocol.essence(found, runId));
  const atEnd = untilEnd(all).length;
  const possible = Array.from({ length: all.length - atEnd + 1 }, (_, more) =>
    JSON.stringify(protocol.essence(foldedOf(protocol, all.slice(0, atEnd + more), runId, 0).message, runId)),
  );
  if (!possible.includes(has)) yield `${name}, loaded again: ${excerpts(has, possible[0] ?? '')}`;
}

/** Where a stream may end because the run waits: background actions go on meanwhile. */
function waitsOf(stored: readonly SessionEvent[], after: number): number[] {
  const ends: number[] = [];
  let isWaiting = false;
  for (const [at, event] of stored.entries()) {
    if (event.type === 'agent_waiting') isWaiting = (event.seq ?? 0) > after;
    else if (endsWait(event)) isWaiting = false;
    if (isWaiting) ends.push(at + 1);
  }
  return ends;
}

/** What a client makes of the stored run. */
function foldedOf(
  { surface, options, read }: ClientProtocol,
  stored: readonly SessionEvent[],
  runId: string,
  after: number,
): Reading {
  const clientTools = ['client'];
  const sessionId = stored[0]?.session_id ?? '';
  const fold = surface.fold({ sessionId, runId, agent: 'assistant', startedAt: 0, after, clientTools, options });
  return read(stored.map((event) => fold.add(event)).join('') + fold.end('stopped'), null);
}

function shownOf({ essence }: ClientProtocol, { message, outcome }: Reading, runId: string): string {
  return `${outcome}: ${JSON.stringify(essence(message, runId))}`;
}

const EXCERPT_CHARS = 160;

/** Where two texts differ. */
function excerpts(has: string, whole: string): string {
  let at = 0;
  while (at < has.length && has[at] === whole[at]) at += 1;
  const from = Math.max(0, at - 60);
  return `it has …${has.slice(from, from + EXCERPT_CHARS)}…, and the stored run gives …${whole.slice(from, from + EXCERPT_CHARS)}…`;
}
