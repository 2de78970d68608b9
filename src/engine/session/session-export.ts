/** Everything of a session that is durable, as JSON Lines. */
import { encodeEvent } from '../../domain/event.ts';
import { limits } from '../../domain/limits.ts';
import { shownRecord } from '../../domain/session.ts';
import type { RunRecord, SessionRecord } from '../../domain/session.ts';
import type { Journal } from '../../journal/journal.ts';
import { exportedFiles } from './exported-files.ts';
import type { OutgoingText } from './outgoing-text.ts';
import type { SessionFiles } from './session-files.ts';
import { SeededCalls } from './seeded-calls.ts';
import type { VariablesSnapshot } from './session-variables.ts';
import type { SessionView } from './session-view.ts';

export interface ExportOptions {
  /** Bytes of files in it; further files have only the path of their download. */
  readonly bytesOfFiles?: number;
}

/** Counts characters that were read or sent; waits for other work when the turn is full. */
type Took = (chars: number) => Promise<void>;

/** What an export reads. */
interface ExportSource {
  readonly journal: Journal;
  readonly record: SessionRecord;
  readonly files: Pick<SessionFiles, 'read'>;
  /** Redacts what is not an event (C9). */
  readonly outgoing: OutgoingText;
  /** Later events are left out. */
  readonly until: number;
  /** Like `took`, without waiting. */
  readonly count: (chars: number) => void;
  readonly took: Took;
  /** What the reader may have; null: everything. A view has no files (T1). */
  readonly view: SessionView | null;
}

/** What changes while an export is read; its state at the beginning counts. */
interface Beginning {
  readonly going: ReadonlyMap<number, RunRecord>;
  readonly runCount: number;
  readonly files: AsyncIterable<string> | Iterable<string>;
}

/** The record, the seeded history, the runs, the files of messages and of the workspace, all events in order, and the variables. */
export function exportLines(
  source: ExportSource,
  variables: VariablesSnapshot,
  options: ExportOptions,
): AsyncGenerator<string> {
  const { journal, record, files: stored, took, view } = source;
  const { bytesOfFiles = limits.exportFileBytes } = options;
  // All other runs have ended.
  const going = new Map(journal.runs.open().map((run) => [run.run, run]));
  const files =
    view !== null
      ? []
      : exportedFiles(journal, record, bytesOfFiles, { bytesOf: (sha256) => stored.read(sha256), took });
  return lines(source, variables, { going, runCount: journal.runs.count, files });
}

async function* lines(
  { journal, record, outgoing, until, count, took, view }: ExportSource,
  variables: VariablesSnapshot,
  { going, runCount, files }: Beginning,
): AsyncGenerator<string> {
  yield `${JSON.stringify({ session: shownRecord(record) })}\n`;
  const { count: messages } = journal.seeded;
  const calls = new SeededCalls(journal.seeded);
  for (let id = 1; id <= messages; id += 1) {
    const { message, chars } = journal.seeded.get(id);
    const seen = view?.seeded(message, calls.nameOf(id, message)) ?? message;
    yield `${JSON.stringify({ seeded: outgoing.seeded(seen) })}\n`;
    await took(chars + limits.eventChars);
  }
  for (let number = 1; number <= runCount; number += 1) {
    const { runId, status, startedAt, endedAt, input } = going.get(number) ?? journal.runs.require(number);
    const shown = view === null ? input : view.input(input);
    const run = { run_id: runId, status, started_at: startedAt, ended_at: endedAt, input: outgoing.input(shown) };
    const line = JSON.stringify({ run });
    yield `${line}\n`;
    await took(line.length + limits.eventChars);
  }
  yield* files;
  for (let after = 0; after < until;) {
    const page = journal.page(after, until);
    for (const event of page) {
      const shown = view === null ? event : view.event(event);
      const line = shown === null ? '' : `${encodeEvent(shown)}\n`;
      if (line !== '') yield line;
      count(line.length + limits.eventChars);
    }
    after = page.at(-1)?.seq ?? Infinity;
    await took(0);
  }
  yield '{"variables":';
  yield* variablesJson(outgoingVariables(variables, outgoing), took);
  yield '}\n';
}

/** Names of variables are not text: requests use them. */
export function outgoingVariables(variables: VariablesSnapshot, outgoing: OutgoingText): VariablesSnapshot {
  return outgoing.isActive ? variables.map(([key, json]) => [key, () => outgoing.encoded(json())]) : variables;
}

/** The variables as one JSON object, in pieces. */
export async function* variablesJson(variables: VariablesSnapshot, took: Took): AsyncGenerator<string> {
  yield '{';
  for (const [index, [key, json]] of variables.entries()) {
    const text = `${index === 0 ? '' : ','}${JSON.stringify(key)}:${json()}`;
    yield text;
    await took(text.length);
  }
  yield '}';
}
