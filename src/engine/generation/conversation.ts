/** The conversation so far, as shown to the model; read from the journal, its only source (L5). */
import { readContent } from '../../domain/content.ts';
import type { MessageContent } from '../../domain/content.ts';
import { forgetsResults } from '../../domain/internal-actions.ts';
import type { EventOf } from '../../domain/event.ts';
import type { Json, JsonObject } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import type { ResolvedAgent } from '../../domain/manifests/resolved.ts';
import type { RunRecord } from '../../domain/session.ts';
import type { StoredEvent } from '../../journal/event-rows.ts';
import type { Journal } from '../../journal/journal.ts';
import type { ActionReport, Cut, ChatTurn, MissingValue } from '../../protocol/prompt/chat-turn.ts';
import type { NativeCall } from '../../protocol/native/tool-calls.ts';
import { renderAction } from '../../protocol/prompt/examples.ts';
import { userTurn } from './message-files.ts';
import type { Blobs } from './message-files.ts';
import { earlierResult, withoutRuns } from './result-files.ts';
import { trainingExample } from '../../protocol/prompt/transcript.ts';
import { iterationOf, ordinalOf } from '../run/run-names.ts';
import { HistoryRoom } from './history-room.ts';

/**
 * The turns of a run and its ancestors, oldest first: the latest ones within `limits.history…` (C4).
 *
 * @param last 0: no run
 * @param blobs the bytes of their messages; read only for what a prompt shows
 */
export function readConversation(journal: Journal, last: number, blobs: Blobs | null = null): ChatTurn[] {
  const room = new HistoryRoom();
  const turns = [...latestRuns(journal, last, room)]
    .map(({ content, record }) =>
      foldTurn(
        journal,
        messagesOf(journal, { content, record }, blobs),
        journal.history.conversationOf(record),
        actionsOf(journal, record),
        record.status,
      ),
    )
    .reverse();
  return [...room.seeded(journal, blobs).turns, ...turns];
}

/** The turn of one run; null if the run was not started by a message, or does not fit into the room. */
export function readTurn(journal: Journal, record: RunRecord, room: HistoryRoom): ChatTurn | null {
  const content = readContent(record.input['content']);
  const events = (record.lastSeq ?? journal.lastSeq) - record.firstSeq + 1;
  if (content === null || !room.take(journal.history.conversationBytes(record), events)) return null;
  return foldTurn(
    journal,
    messagesOf(journal, { content, record }, null),
    journal.history.conversationOf(record),
    actionsOf(journal, record),
    record.status,
  );
}

/** The latest messages of a branch, with their runs, that fit into the limits together, newest first. */
function* latestRuns(
  journal: Journal,
  last: number,
  room: HistoryRoom,
): Generator<{ readonly record: RunRecord; readonly content: MessageContent; readonly bytes: number }> {
  for (const record of journal.runs.branch(last, limits.historyTurns).reverse()) {
    const bytes = journal.history.conversationBytes(record);
    if (!room.take(bytes, (record.lastSeq ?? journal.lastSeq) - record.firstSeq + 1)) return;
    const content = readContent(record.input['content']);
    if (content !== null) yield { record, content, bytes };
  }
}

/**
 * The completed runs of the head's branch as training examples, oldest first, one JSON text each. Includes the latest runs that
 * fit into `limits.history…` together; each has the earlier ones as context.
 *
 * @param redact removes secrets
 * @param took called with the number of characters read; yields to other work
 */
export async function* readTranscript(
  journal: Journal,
  resolved: ResolvedAgent,
  redact: (text: string) => string,
  took: (chars: number) => Promise<void>,
): AsyncGenerator<string> {
  const safe = (key: string, value: unknown): unknown =>
    key === 'content' && typeof value === 'string' ? redact(value) : value;
  const turns: { readonly status: RunRecord['status']; readonly turn: ChatTurn }[] = [];
  const room = new HistoryRoom();
  for (const { record, content, bytes } of latestRuns(journal, journal.runs.head, room)) {
    await took(bytes);
    const stored: StoredEvent[] = [];
    for (const event of journal.history.conversationOf(record)) {
      stored.push(event);
      await took(limits.eventChars);
    }
    turns.push({
      status: record.status,
      turn: foldTurn(
        journal,
        messagesOf(journal, { content, record }, null),
        stored,
        actionsOf(journal, record),
        record.status,
      ),
    });
  }
  // Context only: nothing in it was written by this agent.
  const seeded = room.seeded(journal, null);
  await took(seeded.bytes);
  const history: ChatTurn[] = [...seeded.turns];
  for (const { status, turn } of turns.reverse()) {
    const example = status === 'completed' ? trainingExample({ resolved, history, turn }) : null;
    history.push(turn);
    if (example === null) continue;
    const line = JSON.stringify(example, safe);
    yield line;
    // Counts the assembly, the redaction and the output.
    await took(line.length * 2);
  }
}

/**
 * What the user has said in a run: its message, and those that came during the run and that it has shown (C5). A run that waits
 * and is superseded passes on the others.
 */
function messagesOf(
  journal: Journal,
  { content, record }: { readonly content: MessageContent; readonly record: RunRecord },
  blobs: Blobs | null,
): Pick<ChatTurn, 'user' | 'files' | 'received'> {
  const received = journal.steered.shown(record.run).map(({ iteration, input }) => ({
    before: iteration,
    ...userTurn(readContent(input['content']) ?? '', blobs),
  }));
  return { ...userTurn(content, blobs), ...(received.length === 0 ? {} : { received }) };
}

/** The turns without the results found before the model last cleared its context (I). */
export function withoutCleared(turns: readonly ChatTurn[]): readonly ChatTurn[] {
  const clears = ({ results }: ChatTurn['generations'][number]): boolean =>
    results.some(({ name, status }) => forgetsResults({ type: 'internal', name }) && status === 'completed');
  // What a seeded history calls has no effect, whatever its name is.
  const last = turns.findLastIndex(({ generations, isSeeded = false }) => !isSeeded && generations.some(clears));
  if (last < 0) return turns;
  return turns.map((turn, index) => {
    const from = index < last ? Infinity : index > last ? 0 : turn.generations.findLastIndex(clears);
    const generations = turn.generations.map((generation, at) =>
      at >= from ? generation : { ...generation, results: generation.results.map(cleared) },
    );
    return { ...turn, generations };
  });
}

function cleared({ files: _files, ...report }: ActionReport): ActionReport {
  return report.status === 'completed' ? { ...report, output: '[cleared]' } : report;
}

/** Reads the actions that a run declared after an event. */
type ActionsAfter = (seq: number) => Iterable<EventOf<'action_queued'>>;

function actionsOf(journal: Journal, record: RunRecord): ActionsAfter {
  return (seq) => journal.history.declaredAfter(record, seq);
}

/** A part of an interrupted generation, as the model wrote it; `at` is the seq of the event that opened it. */
interface WrittenPart {
  readonly iteration: number;
  readonly at: number;
  readonly text: string;
}

/** @param declared read only if the run ended without completing its last generation */
/** The next message ends a run that waits (J8, C3); its end is not in the journal yet when the message's turn is read. */
const SUPERSEDED =
  'This run waited for an approval, or for the result of a client tool, and the next message cancelled it: what needed the approval did not run, and there will be no result. Do not resume it unless you are asked to.';

function foldTurn(
  journal: Pick<Journal, 'rawEvent' | 'incarnation'>,
  message: Pick<ChatTurn, 'user' | 'files' | 'received'>,
  stored: Iterable<StoredEvent>,
  declared: ActionsAfter,
  status: RunRecord['status'],
): ChatTurn {
  const generations: ChatTurn['generations'][number][] = [];
  let results: ActionReport[] = [];
  /** Blocks since the last completed generation, all that remains of an interrupted one; and where that was completed. */
  let blocks: WrittenPart[] = [];
  let completed = { iteration: -1, seq: 0 };
  const answer = new LastAnswer();
  let note: string | null = status === 'waiting' ? SUPERSEDED : 'This run did not end.';
  for (const { event, state } of stored) {
    const report = (status: ActionReport['status'], rest: Partial<ActionReport>): void => {
      const key = typeof state?.['key'] === 'string' ? state['key'] : null;
      // A background action may end in a later generation, in which another action has its position.
      const isOwn = key !== null && iterationOf(key) > completed.iteration;
      const ordinal = key === null ? {} : { ordinal: isOwn ? ordinalOf(key) : null };
      results.push({
        id: event.action_id ?? '',
        name: event.action_name ?? null,
        status,
        ms: null,
        ...ordinal,
        ...rest,
      });
    };
    switch (event.type) {
      case 'action_completed':
        report('completed', {
          // Of a long output, only the beginning of the data is read.
          ms: event.data.ms ?? (typeof state?.['ms'] === 'number' ? state['ms'] : null),
          ...earlierResult(journal, event.seq ?? 0, { output: event.data.output, state }),
          ...(state?.['skill'] === true ? { isSkill: true } : {}),
          ...(typeof state?.['output_key'] === 'string' ? { outputKey: state['output_key'] } : {}),
        });
        break;
      case 'action_failed':
        report('failed', { ms: event.data.ms ?? null, note: errorLine(event.data.error) });
        break;
      case 'action_skipped':
        report('skipped', {
          note: [event.data.reason, event.data.because].filter((part) => part !== null).join(': '),
        });
        break;
      case 'action_cancelled':
        report('cancelled', { note: event.data.reason });
        break;
      case 'action_rejected':
        report('rejected', { note: errorLine(event.data) });
        break;
      case 'iteration_completed':
        generations.push({
          text: String(state?.['text'] ?? ''),
          calls: callsOf(state?.['calls']),
          results,
          ...cutOf(state?.['cut']),
          ...missingOf(state?.['missing']),
          ...(state?.['rejected'] === true ? { rejected: true } : {}),
        });
        results = [];
        blocks = [];
        completed = { iteration: event.data.iteration, seq: event.seq ?? 0 };
        answer.reach(event.data.iteration);
        break;
      case 'thought_completed':
        blocks.push({
          iteration: event.iteration,
          at: event.data.segment,
          text: `<thought>${event.data.content}</thought>`,
        });
        break;
      case 'text_completed':
        blocks.push({ iteration: event.iteration, at: event.data.segment, text: event.data.content });
        answer.add(event, state);
        break;
      case 'response_completed': {
        const { segment, content, final } = event.data;
        const marked = final === null ? '' : ` final="${final}"`;
        const written = state?.['written'];
        // Of a long one, only the beginning is stored as it was written.
        const isWhole = typeof written === 'string' && written.length < limits.summaryReadChars;
        const text = isWhole ? written : withoutRuns(content);
        blocks.push({ iteration: event.iteration, at: segment, text: `<response${marked}>${text}</response>` });
        answer.add(event, state);
        break;
      }
      case 'agent_completed':
        note = null;
        break;
      case 'agent_cancelled':
        note = 'This run was cancelled before it was done. Do not resume it unless you are asked to.';
        break;
      case 'agent_failed':
        note = `This run failed (${errorLine(event.data.error)}). Do not resume it unless you are asked to.`;
        break;
      default:
        break;
    }
  }
  if (note === null) return { ...message, generations, answer: answer.text };
  // Actions that were running at the end are also shown, otherwise the next message would start them again.
  const parts = inOrder([
    ...blocks.filter(({ iteration }) => iteration > completed.iteration),
    ...Array.from(declared(completed.seq), writtenAction),
  ]);
  if (results.length > 0 || parts !== '' || generations.length === 0) {
    generations.push({ text: parts === '' ? '[no answer]' : parts, calls: [], results });
  }
  return { ...message, generations, note };
}

function inOrder(parts: readonly WrittenPart[]): string {
  return parts
    .toSorted((one, other) => one.at - other.at)
    .map(({ text }) => text)
    .join('\n');
}

function writtenAction({
  seq,
  iteration,
  action_id: id,
  action_name: name,
  data,
}: EventOf<'action_queued'>): WrittenPart {
  const { type, mode, parameters, depends_on: dependsOn, output_key: outputKey } = data;
  const shown = {
    type,
    mode,
    parameters,
    ...(id === undefined ? {} : { id }),
    ...(name === undefined || name === type ? {} : { name }),
    ...(dependsOn.length === 0 ? {} : { dependsOn }),
    ...(outputKey === null ? {} : { outputKey }),
  };
  return { iteration, at: seq ?? 0, text: renderAction(shown, 'full') };
}

/** The last generation's answer to the user: its last response with references as written, else its bare text. */
class LastAnswer {
  #iteration = 0;
  #response: { readonly segment: number; readonly text: string } | null = null;
  #bare: string[] = [];

  add(event: EventOf<'response_completed' | 'text_completed'>, state: JsonObject | null): void {
    this.reach(event.iteration ?? 0);
    // A response of an earlier generation that waited for a value.
    if (event.iteration !== this.#iteration) return;
    // Its references are written the same way in the response that it replaces.
    if ('completes' in event.data) return;
    const { content, segment } = event.data;
    if (event.type === 'text_completed') this.#bare.push(content);
    // A part of a response is not the answer beside a whole one (P15).
    else if (event.data.cut === true && this.#response !== null) return;
    // A response that waited may complete after a later one.
    else if (segment > (this.#response?.segment ?? 0)) {
      this.#response = { segment, text: typeof state?.['written'] === 'string' ? state['written'] : content };
    }
  }

  /** The turn has reached this generation, unless it is already further. */
  reach(iteration: number): void {
    if (iteration <= this.#iteration) return;
    this.#iteration = iteration;
    this.#response = null;
    this.#bare = [];
  }

  get text(): string {
    return this.#response?.text ?? this.#bare.join(' ');
  }
}

function cutOf(stored: Json | undefined): { cut?: Cut } {
  return typeof stored === 'string' ? { cut: stored as Cut } : {};
}

/** In the form stored by `iteration_completed`. */
function missingOf(stored: unknown): { missing?: readonly MissingValue[] } {
  return Array.isArray(stored) ? { missing: stored as MissingValue[] } : {};
}

/** In the form stored by `iteration_completed`. */
function callsOf(stored: unknown): readonly NativeCall[] {
  return Array.isArray(stored) ? (stored as NativeCall[]) : [];
}

function errorLine({ code, message }: { readonly code: string; readonly message: string }): string {
  return `${code}: ${message}`;
}
