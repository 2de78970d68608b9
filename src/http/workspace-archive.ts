/**
 * All files of a workspace as one ZIP file, made while it is sent (C7).
 *
 * Owns the order of the files and the format. Does not own the files: each is read when its turn comes.
 *
 * Invariants:
 *  1. One file is in memory at a time, and nothing is compressed before the reader asks for it.
 *  2. The archive has the files as of the request. If one of them can no longer be read, the stream ends with an error:
 *     a reader never gets a complete archive with a file less.
 */
import { Zip, ZipDeflate } from 'fflate';
import { EngineError } from '../domain/errors.ts';
import type { WorkspaceFile } from '../domain/workspace.ts';
import type { Slices } from '../domain/work.ts';
import { sniffMediaType } from '../policies/media-type.ts';

/** Bytes that are compressed in one turn. */
const PIECE_BYTES = 65_536;
/** The fixed cost of a file, and of each further piece, counted in bytes. */
const ENTRY_BYTES = 4_096;
/** What the dates of the format can say, epoch milliseconds: 1980 to 2099, in any time zone. */
const FIRST_DATE = Date.UTC(1980, 0, 2);
const LAST_DATE = Date.UTC(2099, 11, 30);
const MOST_SECONDS = 0x7f_ff_ff_ff;
const SNIFFED_BYTES = 64;
const UNIX = 3;
/** The modes of a regular file. */
const MODE = 0o100_644;
const EXECUTABLE_MODE = 0o100_755;
/** Of the compression. With more memory, it is not noticeably better, and each small file would take milliseconds. */
const FASTEST = { level: 1, mem: 0 } as const;
const STORED = { level: 0 } as const;

export interface ArchivePorts {
  /** The bytes of a file; null if it is gone. */
  readonly read: (sha256: string) => Promise<Uint8Array | null>;
  readonly slices: Slices;
  /** @throws EngineError if nothing more may be sent */
  readonly requireOpen: () => void;
}

/**
 * @param files in the order of the archive
 * @throws EngineError `unknown_file` if a file is gone; like `read` and `requireOpen`
 */
export async function* workspaceZip(
  files: readonly WorkspaceFile[],
  { read, slices, requireOpen }: ArchivePorts,
): AsyncGenerator<Uint8Array> {
  let made: Uint8Array[] = [];
  const zip = new Zip((fault, chunk) => {
    if (fault !== null) throw fault;
    made.push(chunk);
  });
  for (const file of files) {
    requireOpen();
    const bytes = await read(file.sha256);
    if (bytes === null) throw new EngineError('unknown_file', `"${file.path}" was changed or deleted meanwhile`);
    const entry = entryOf(file, bytes);
    zip.add(entry);
    for (let at = 0; at === 0 || at < bytes.length; at += PIECE_BYTES) {
      requireOpen();
      const piece = bytes.subarray(at, at + PIECE_BYTES);
      entry.push(piece, at + PIECE_BYTES >= bytes.length);
      slices.count(piece.length + ENTRY_BYTES);
      yield* made;
      made = [];
      if (slices.full) await slices.pause();
    }
  }
  requireOpen();
  zip.end();
  yield* made;
}

function entryOf({ path, modifiedAt, executable }: WorkspaceFile, bytes: Uint8Array): ZipDeflate {
  // Formats that are known by their first bytes are compressed already.
  const isCompressed = !/^text\/|octet-stream/.test(sniffMediaType(bytes.subarray(0, SNIFFED_BYTES)));
  const entry = new ZipDeflate(path, isCompressed ? STORED : FASTEST);
  const seconds = Math.floor(modifiedAt / 1_000);
  entry.mtime = Math.min(LAST_DATE, Math.max(FIRST_DATE, modifiedAt));
  // The date without a time zone is not exact. This field is: Info-ZIP's extended timestamp, in seconds.
  if (seconds <= MOST_SECONDS) {
    entry.extra = { 0x54_55: Uint8Array.of(1, seconds, seconds >> 8, seconds >> 16, seconds >> 24) };
  }
  entry.os = UNIX;
  entry.attrs = (executable ? EXECUTABLE_MODE : MODE) << 16;
  return entry;
}

/** Bytes as the body of a response: nothing is read ahead. */
export function bytesStream(pieces: AsyncGenerator<Uint8Array>): ReadableStream<Uint8Array> {
  return new ReadableStream(
    {
      async pull(controller) {
        const { done, value } = await pieces.next();
        if (done === true) controller.close();
        else controller.enqueue(value);
      },
      async cancel() {
        await pieces.return(undefined);
      },
    },
    { highWaterMark: 0 },
  );
}
