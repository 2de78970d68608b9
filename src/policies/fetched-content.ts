/**
 * Fetches the files that a message names by URL, and admits them like all others (C2).
 *
 * Owns how many are fetched at a time, the time for all of them, and where reading stops. Does not own which URLs are
 * allowed (X2; executors/outbound/file-fetch.ts), or who may fetch when (engine/session/pending-messages.ts).
 *
 * Invariants
 * 1. It writes nothing. All files are admitted, or none.
 * 2. The first failure ends all other transfers, as does the caller's signal.
 * 3. Of a body, at most one piece is read beyond what the part, and the rest of the message, may have.
 */
import { EngineError } from '../domain/errors.ts';
import { limits } from '../domain/limits.ts';
import type { Clock } from '../domain/ports/clock.ts';
import type { FetchedFile } from '../domain/ports/outbound.ts';
import { admitFile, checkTotal, fileTooLarge, isUrlPart, placeOf } from './message-content.ts';
import type { AdmittedContent, UnfetchedContent, UrlPart } from './message-content.ts';

export interface FetchPorts {
  readonly fetch: (url: string, signal: AbortSignal) => Promise<FetchedFile>;
  readonly clock: Clock;
  /** Counts bytes that have arrived; may wait until there is memory for them. */
  readonly received: (bytes: number) => Promise<void>;
}

interface Fetched {
  readonly bytes: Uint8Array;
  readonly contentType: string | null;
}

/**
 * @throws EngineError `url_refused`, `url_failed`, `url_timeout`, `content_too_large`, and those of `admitContent`; the
 *   path of the part is in the message. The signal's reason if it aborts
 */
export async function fetchContent(
  { parts, files, size }: UnfetchedContent,
  ports: FetchPorts,
  signal: AbortSignal,
): Promise<AdmittedContent> {
  const wanted = parts.flatMap((part, index) => (isUrlPart(part) ? [{ part, index }] : []));
  const fetched = new Map<number, Fetched>();
  const abort = new AbortController();
  const aborted = Promise.withResolvers<never>();
  const end = (reason: unknown): void => {
    abort.abort(reason);
    aborted.reject(abort.signal.reason);
  };
  const stop = (): void => end(signal.reason);
  const cancelTimer = ports.clock.schedule(limits.messageUrlsMs, () => {
    const late = wanted.find(({ index }) => !fetched.has(index))?.index ?? 0;
    end(
      new EngineError('url_timeout', `${placeOf(late)}: the files were not fetched within ${limits.messageUrlsMs} ms`),
    );
  });
  const total = { size };
  const queue = wanted.values();
  const work = async (): Promise<void> => {
    for (const { part, index } of queue) {
      abort.signal.throwIfAborted();
      fetched.set(index, await readFile(part, index, ports, total, abort.signal));
    }
  };
  signal.addEventListener('abort', stop, { once: true });
  try {
    signal.throwIfAborted();
    const workers = Array.from({ length: limits.messageUrlsAtOnce }, work);
    // A transfer that ignores its signal is not waited for.
    await Promise.race([Promise.all(workers), aborted.promise]);
  } catch (fault) {
    end(fault);
    // The first reason: what follows from it says less.
    throw abort.signal.reason;
  } finally {
    aborted.promise.catch(() => undefined);
    signal.removeEventListener('abort', stop);
    cancelTimer();
  }
  const all = new Map(files);
  const content = parts.map((part, index) => {
    if (!isUrlPart(part)) return part;
    const { bytes, contentType } = fetched.get(index) ?? NOTHING;
    const admitted = admitFile(part, index, bytes, nameOfUrl(part.url), contentType);
    all.set(admitted.sha256, bytes);
    return admitted;
  });
  return { content, files: all };
}

const NOTHING: Fetched = { bytes: new Uint8Array(0), contentType: null };

/** @param total of the message; increased while the file arrives */
async function readFile(
  { url }: UrlPart,
  index: number,
  { fetch, received }: FetchPorts,
  total: { size: number },
  signal: AbortSignal,
): Promise<Fetched> {
  const where = placeOf(index);
  try {
    const { contentType, body } = await fetch(url, signal);
    const pieces: Uint8Array[] = [];
    let size = 0;
    for await (const piece of body) {
      signal.throwIfAborted();
      size += piece.length;
      total.size += piece.length;
      if (size > limits.messagePartBytes) throw fileTooLarge(where);
      checkTotal(total.size, where);
      await received(piece.length);
      pieces.push(piece);
    }
    return { bytes: joined(pieces, size), contentType };
  } catch (fault) {
    if (!(fault instanceof EngineError) || fault.message.startsWith(where)) throw fault;
    throw new EngineError(fault.code, `${where}: ${fault.message}`, fault.details, fault.cause);
  }
}

function joined(pieces: readonly Uint8Array[], size: number): Uint8Array {
  const bytes = new Uint8Array(size);
  let at = 0;
  for (const piece of pieces) {
    bytes.set(piece, at);
    at += piece.length;
  }
  return bytes;
}

/** The last segment of a URL's path as the name of a file; null if nothing of it can be one. */
function nameOfUrl(url: string): string | null {
  if (!URL.canParse(url)) return null;
  const segment = new URL(url).pathname.split('/').at(-1) ?? '';
  const name = (decodedSegment(segment).split(/[/\\]/).at(-1) ?? '').toWellFormed().replace(/[\p{Cc}\p{Cf}]/gu, '');
  const cut = name
    .slice(0, limits.fileNameChars)
    .replace(/[\uD800-\uDBFF]$/, '')
    .trim();
  return /^\.*$/.test(cut) ? null : cut;
}

function decodedSegment(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}
