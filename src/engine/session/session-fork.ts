/**
 * A fork: another session with the runs of a branch, up to the end of one of them (C4).
 *
 * The session sends its rows page by page, and the other one writes each page before it asks for the next. The files of the
 * workspace come along as they are now, whatever the run is. What belongs to the session itself does not: relics, kept
 * outcomes, what was sent to the model, decisions that are still open.
 *
 * Invariants:
 *  1. Both sides hold one page, or one file.
 *  2. The other session exists completely or not at all: its record is written last.
 */
import { EngineError } from '../../domain/errors.ts';
import { limits } from '../../domain/limits.ts';
import type { ObjectStore } from '../../domain/ports/storage.ts';
import type { RunRecord, SessionRecord } from '../../domain/session.ts';
import type { WorkspaceFile } from '../../domain/workspace.ts';
import type { ForkRow } from '../../journal/fork-rows.ts';
import type { Journal } from '../../journal/journal.ts';
import { recordOf } from './run-setup.ts';
import { objectPrefix } from './session-files.ts';
import type { SessionFiles } from './session-files.ts';
import { sessionFull } from './session-full.ts';
import type { SessionScope } from './session-ports.ts';

export type ForkPage = readonly ForkRow[];

/**
 * The run at whose end a fork begins.
 *
 * @param run null: the session has no runs
 * @throws EngineError `invalid_request` for a session that is no conversation; `run_in_progress` if the run or one before it
 *   is not complete
 */
export function requireForkable(scope: SessionScope, run: RunRecord | null): void {
  const { kind, workflow } = recordOf(scope);
  if (kind !== 'chat' || workflow !== undefined) {
    throw new EngineError('invalid_request', 'Only a conversation can be forked');
  }
  const { runs } = scope.journal;
  const open = run === null ? undefined : runs.open().find((one) => runs.isAncestor(one.run, run.run));
  if (open === undefined) return;
  const message = `Run ${open.runId} is not complete; fork at a run before it, or when it and its background actions have ended`;
  throw new EngineError('run_in_progress', message, { run_id: open.runId });
}

interface ForkSource {
  readonly journal: Journal;
  readonly files: Pick<SessionFiles, 'read' | 'hold'>;
  /** Called with the number of characters that were read; yields to other work. */
  readonly took: (chars: number) => Promise<void>;
  /** @throws EngineError `unknown_session` once the session is being deleted: then nothing more is read */
  readonly requireOpen: () => void;
}

/** The pages of a fork, in order. @param last 0: the session has no runs */
export async function* forkPages(source: ForkSource, last: number): AsyncGenerator<ForkPage> {
  source.requireOpen();
  // Of this moment: the table may change while it is sent.
  const workspace = source.journal.workspace.list();
  const release = source.files.hold(new Set(workspace.map(({ sha256 }) => sha256)));
  try {
    yield* pages(source, last, workspace);
  } finally {
    release();
  }
}

/** @param workspace its files, which stay readable */
async function* pages(
  { journal, files, took, requireOpen }: ForkSource,
  last: number,
  workspace: readonly WorkspaceFile[],
): AsyncGenerator<ForkPage> {
  const hashes = new Set<string>();
  let page: ForkRow[] = [];
  let bytes = 0;
  for (const row of rowsOf(journal, last, workspace)) {
    const size = sizeOf(row);
    if (row.kind === 'run' || row.kind === 'seeded' || row.kind === 'steered') noteFiles(row.text, hashes);
    if (page.length > 0 && bytes + size > limits.forkPageBytes) {
      yield page;
      requireOpen();
      page = [];
      bytes = 0;
    }
    page.push(row);
    bytes += size;
    await took(size);
    requireOpen();
  }
  if (page.length > 0) yield page;
  const kept = new Set(workspace.map(({ sha256 }) => sha256));
  for (const sha256 of new Set([...hashes, ...kept])) {
    requireOpen();
    const file = journal.blobs.file(sha256);
    const isNeeded = kept.has(sha256) || file !== null;
    const content = isNeeded ? await files.read(sha256) : null;
    if (content === null) continue;
    await took(content.length);
    const holder = hashes.has(sha256) && file !== null ? 'message' : 'workspace';
    const { name = null, mediaType = null } = file ?? {};
    yield [{ kind: 'file', sha256, name, mediaType, bytes: content, holder }];
  }
}

function* rowsOf(journal: Journal, last: number, workspace: readonly WorkspaceFile[]): Generator<ForkRow> {
  yield* journal.forkReader.rows(journal.runs.branchNumbers(last));
  for (const file of workspace) yield { kind: 'workspace', file };
}

const encoder = new TextEncoder();

function sizeOf(row: ForkRow): number {
  if (row.kind === 'file') return row.bytes.length;
  if (row.kind === 'workspace') return row.file.path.length + limits.eventChars;
  const state = row.kind === 'event' ? (row.state?.length ?? 0) + (row.raw?.length ?? 0) : 0;
  return encoder.encode(row.text).length + state + limits.eventChars;
}

/** The files that a message refers to. */
function noteFiles(text: string, hashes: Set<string>): void {
  for (const [, hash = ''] of text.matchAll(/"sha256":"([0-9a-f]{64})"/g)) hashes.add(hash);
}

/** Receives a fork in an empty database. */
export class ForkTarget {
  readonly #journal: Journal;
  readonly #record: SessionRecord;
  readonly #objects: ObjectStore | null;
  readonly #writer: ReturnType<Journal['forkWriter']>;

  constructor(journal: Journal, record: SessionRecord, objects: ObjectStore | null) {
    this.#journal = journal;
    this.#record = record;
    this.#objects = objects;
    this.#writer = journal.forkWriter(record);
  }

  /** Resolves when the page is written. @throws EngineError `session_full` */
  async take(page: ForkPage): Promise<void> {
    if (this.#journal.full) throw new EngineError('session_full', sessionFull('cannot be forked'));
    const [first] = page;
    if (first?.kind === 'file') await this.#takeFile(first);
    else this.#writer.write(page);
    await this.#journal.sync();
  }

  /** All pages are written: the session exists from here on. @param also writes in the same transaction */
  async finish(also: () => void = () => undefined): Promise<void> {
    this.#journal.create(this.#record, () => {
      this.#forgetLostFiles();
      this.#writer.finish();
      this.#journal.variables.restore(this.#journal.runs.count);
      also();
    });
    await this.#journal.sync();
  }

  /** A path whose bytes were lost in the other session would be in the way of every action. */
  #forgetLostFiles(): void {
    const { workspace, blobs } = this.#journal;
    for (const { path, sha256 } of workspace.list()) if (!blobs.has(sha256)) workspace.delete(path);
  }

  async #takeFile({ sha256, name, mediaType, bytes, holder }: Extract<ForkRow, { kind: 'file' }>): Promise<void> {
    const { blobs } = this.#journal;
    const about = { name, mediaType };
    if (this.#objects === null || bytes.length < limits.objectFileLeastBytes) {
      return this.#journal.atomically(() => {
        if (holder === 'message') return blobs.put(sha256, bytes, about);
        blobs.stage(sha256, bytes, 0);
        blobs.refer(sha256, holder);
      });
    }
    // The row first: what is deleted with the session is found by it.
    blobs.announce(sha256, bytes.length, about, 0);
    await this.#journal.sync();
    await this.#objects.put(`${objectPrefix(this.#record)}${sha256}`, bytes, sha256);
    blobs.refer(sha256, holder);
  }
}
