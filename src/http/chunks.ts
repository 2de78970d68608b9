/**
 * The `chunks` of an answered message (docs/migration.md#http): the run as a flat list, for clients that read the text of
 * the answer from chunks.
 *
 * The journal is the only source. At most one generation is in memory.
 */
import type { EventData, EventOf, EventType, SessionEvent } from '../domain/event.ts';
import type { RunRecord } from '../domain/session.ts';
import type { SessionReading } from '../engine/session/session-reading.ts';

type Chunk =
  | { readonly type: 'thought' | 'content'; readonly data: string }
  | { readonly type: 'action'; readonly data: object }
  | { readonly type: 'done'; readonly data: { readonly message: string } }
  | { readonly type: 'error'; readonly data: { readonly error: string } };

type WaitsFor = EventData['agent_waiting']['reason'];

const EVENTS: readonly EventType[] = [
  'iteration_started',
  'thought_completed',
  'action_queued',
  'text_completed',
  'response_completed',
  'agent_waiting',
];

/** The document of a run (H7) with `chunks` as its last member, in pieces. */
export async function* withChunks(reading: SessionReading, run: RunRecord): AsyncGenerator<string> {
  let held = '';
  for await (const piece of reading.result(run)) {
    if (held !== '') yield held;
    held = piece;
  }
  // The last piece ends with the closing brace of the document.
  yield `${held.slice(0, -1)},"chunks":[`;
  let waitsFor: WaitsFor = 'approvals';
  const events = noting(reading.events(run, EVENTS), (event) => (waitsFor = event.data.reason));
  for await (const chunk of chunksOf(events)) yield `${JSON.stringify(chunk)},`;
  yield `${JSON.stringify(lastChunk(run, reading.failure(run), waitsFor))}]}`;
}

/** Passes the events on, and reports what the run waits for. */
async function* noting(
  events: AsyncIterable<SessionEvent>,
  note: (event: EventOf<'agent_waiting'>) => void,
): AsyncGenerator<SessionEvent> {
  for await (const event of events) {
    if (event.type === 'agent_waiting') note(event);
    else yield event;
  }
}

/** @param events of one run, oldest first */
async function* chunksOf(events: AsyncIterable<SessionEvent>): AsyncGenerator<Chunk> {
  let generation = new GenerationChunks();
  for await (const event of events) {
    if (event.type === 'iteration_started') {
      yield* generation.chunks;
      generation = new GenerationChunks();
    } else generation.add(event);
  }
  yield* generation.chunks;
}

class GenerationChunks {
  readonly #chunks: (Chunk & { readonly segment?: number })[] = [];
  /** Text outside of all tags: the answer of a generation that neither responds nor acts (P11). */
  readonly #bare: Chunk[] = [];
  #hasActed = false;

  add(event: SessionEvent): void {
    switch (event.type) {
      case 'thought_completed':
        return void this.#chunks.push({ type: 'thought', data: event.data.content });
      case 'text_completed':
        return void this.#bare.push({ type: 'content', data: event.data.content });
      case 'action_queued': {
        this.#hasActed = true;
        const { action_id: id = '', action_name: name = null, data } = event;
        const { type, mode } = data;
        return void this.#chunks.push({ type: 'action', data: { id, name, type, mode } });
      }
      case 'response_completed': {
        this.#hasActed = true;
        const { segment, content, completes } = event.data;
        const chunk = { type: 'content', data: content, segment } as const;
        const earlier =
          completes === undefined || completes === null
            ? -1
            : this.#chunks.findIndex(({ segment: known }) => known === completes);
        // A response that was written again takes the place of the first one (P13).
        if (earlier === -1) this.#chunks.push(chunk);
        else this.#chunks[earlier] = chunk;
        return;
      }
      default:
        return;
    }
  }

  get chunks(): Chunk[] {
    const answer = this.#hasActed ? [] : this.#bare;
    return [...this.#chunks.map(({ type, data }) => ({ type, data }) as Chunk), ...answer];
  }
}

function lastChunk({ status }: RunRecord, failure: { readonly message: string } | null, waitsFor: WaitsFor): Chunk {
  switch (status) {
    case 'completed':
      return { type: 'done', data: { message: 'Complete' } };
    case 'waiting':
      return { type: 'done', data: { message: `Waiting for ${waitsFor === 'approvals' ? waitsFor : 'client tools'}` } };
    default:
      return { type: 'error', data: { error: failure?.message ?? `The run is ${status}` } };
  }
}
