/**
 * Copies sessions and manifests of one API key to a folder.
 *
 * Owns: the files `sessions/<id>.jsonl`, `sessions.jsonl` (one line for each saved state of a session) and
 * `manifests.jsonl`. Does not own: which sessions exist; `GET /executions` lists them.
 *
 * Invariants
 * 1. `sessions/<id>.jsonl` is a complete export: it is written under another name and renamed when it has ended.
 * 2. A session is listed in `sessions.jsonl` only after its file is complete, so an interrupted export continues.
 * 3. A session that cannot be read does not stop the others.
 */
import { createWriteStream, existsSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { appendLine, makeNamedFolder, replaceFile } from '../project/real-path.ts';
import type { Connection } from '../terminal/connection.ts';
import { isSessionId } from '../terminal/session-id.ts';

/** Requests for the same thing, if the system is busy or the connection breaks. */
const ATTEMPTS = 5;
const RETRY_MS = 1_000;
const MAX_RETRY_MS = 60_000;
const PAGE_ROWS = 100;
/** Sessions between two lines of progress. */
const REPORT_EVERY = 100;

export interface ExportOptions {
  readonly folder: string;
  readonly wait: (ms: number) => Promise<void>;
  /** Receives a line of progress. */
  readonly report: (line: string) => void;
}

export interface ExportResult {
  readonly saved: number;
  readonly unchanged: number;
  /** Listed, but deleted or expired before they were read. */
  readonly gone: number;
  readonly failed: readonly { readonly id: string; readonly reason: string }[];
  readonly manifests: number;
}

/** A run as `GET /executions` lists it. */
interface ListedRun {
  readonly execution_id: string;
  readonly session_id: string;
  readonly agent: string;
  readonly status: string;
  readonly started_at: number;
  readonly ended_at: number | null;
}

/** @throws Error if the system cannot be reached, rejects the key, or cannot list its sessions */
export async function exportAll(connection: Connection, options: ExportOptions): Promise<ExportResult> {
  const { folder, report } = options;
  // what people wrote, and what the system answered: private
  for (const one of [folder, join(folder, 'sessions')]) makeNamedFolder(one);
  const client = new Client(connection, options.wait);
  const manifests = await saveManifests(client, join(folder, 'manifests.jsonl'));
  report(`${manifests} manifests saved`);

  const index = join(folder, 'sessions.jsonl');
  const known = savedStates(index);
  const seen = new Set<string>();
  const count = { saved: 0, unchanged: 0, gone: 0 };
  const failed: { id: string; reason: string }[] = [];
  for await (const run of listedRuns(client)) {
    const { session_id: id } = run;
    // the first run of a session in the list is its newest
    if (seen.has(id)) continue;
    seen.add(id);
    const state = `${run.execution_id} ${run.status} ${run.ended_at ?? ''}`;
    const file = join(folder, 'sessions', `${id}.jsonl`);
    if (run.ended_at !== null && known.get(id) === state && existsSync(file)) count.unchanged += 1;
    else {
      try {
        const bytes = await client.download(`/agent/session/${encodeURIComponent(id)}/export`, file);
        if (bytes === null) count.gone += 1;
        else {
          count.saved += 1;
          const { agent, status } = run;
          const line = { session_id: id, agent, status, state, bytes };
          appendLine(index, `${JSON.stringify(line)}\n`);
        }
      } catch (fault) {
        failed.push({ id, reason: fault instanceof Error ? fault.message : String(fault) });
      }
    }
    if (seen.size % REPORT_EVERY === 0) {
      report(`${seen.size} sessions, ${count.saved} saved; now at ${new Date(run.started_at).toISOString()}`);
    }
  }
  return { ...count, failed, manifests };
}

/** The last saved state of each session; a line that was cut by an interruption is ignored. */
function savedStates(index: string): Map<string, string> {
  const states = new Map<string, string>();
  if (!existsSync(index)) return states;
  const text = readFileSync(index, 'utf8');
  for (const line of text.split('\n')) {
    try {
      const { session_id: id, state } = JSON.parse(line) as { session_id: string; state: string };
      states.set(id, state);
    } catch {
      // the last line of an interrupted export, or the empty one at the end
    }
  }
  if (text !== '' && !text.endsWith('\n')) appendLine(index, '\n');
  return states;
}

/** All runs, newest first. Runs that start during the export are not listed. */
async function* listedRuns(client: Client): AsyncGenerator<ListedRun> {
  let before: string | null = null;
  do {
    const from: string = before === null ? '' : `&before=${encodeURIComponent(before)}`;
    const page = (await client.json(`/executions?limit=${PAGE_ROWS}${from}`)) as {
      readonly executions: readonly ListedRun[];
      readonly next: string | null;
    };
    for (const run of page.executions) {
      if (!isSessionId(run.session_id)) throw new Error(`"${run.session_id}" is not a session id`);
      yield run;
    }
    before = page.next;
  } while (before !== null);
}

/** Saves the manifests of the key, without the bundled ones, which are part of the project. */
async function saveManifests(client: Client, file: string): Promise<number> {
  const { manifests } = (await client.json('/manifests')) as {
    readonly manifests: readonly { readonly kind: string; readonly name: string; readonly common: boolean }[];
  };
  const own = manifests.filter(({ common }) => !common);
  const lines: string[] = [];
  for (const { kind, name } of own) {
    const path = `/manifests/${encodeURIComponent(kind)}/${encodeURIComponent(name)}`;
    lines.push(`${JSON.stringify(await client.json(path))}\n`);
  }
  replaceFile(file, lines.join(''), 0o600);
  return own.length;
}

/** Reads from the system, again after a pause if it is busy or the connection breaks. */
class Client {
  readonly #connection: Connection;
  readonly #wait: (ms: number) => Promise<void>;

  constructor(connection: Connection, wait: (ms: number) => Promise<void>) {
    this.#connection = connection;
    this.#wait = wait;
  }

  async json(path: string): Promise<unknown> {
    return await this.#again(path, async (response) => {
      if (response.status === 404) throw new Final(`GET ${path} answered 404`);
      return (await response.json()) as unknown;
    });
  }

  /** @returns the size in bytes, or null if there is nothing at this path */
  async download(path: string, file: string): Promise<number | null> {
    const part = `${file}.part`;
    try {
      return await this.#again(path, async (response) => {
        if (response.status === 404) return null;
        if (response.body === null) throw new Error(`GET ${path} has no body`);
        // Whatever an earlier attempt has left, or a link.
        rmSync(part, { force: true });
        const target = createWriteStream(part, { flags: 'wx', mode: 0o600 });
        const lines = new LineStarts();
        const body = Readable.fromWeb(response.body as Parameters<typeof Readable.fromWeb>[0]);
        await pipeline(body, (source: AsyncIterable<Uint8Array>) => lines.pass(source), target);
        if (!lines.isComplete) throw new Error(`GET ${path} ended before its last line`);
        renameSync(part, file);
        return target.bytesWritten;
      });
    } finally {
      rmSync(part, { force: true });
    }
  }

  /** @throws Error with the last reason; at once for an answer that will not change */
  async #again<T>(path: string, read: (response: Response) => Promise<T>): Promise<T> {
    const { url, key } = this.#connection;
    let reason = '';
    for (let attempt = 1; attempt <= ATTEMPTS; attempt += 1) {
      let pauseMs = RETRY_MS * 2 ** (attempt - 1);
      try {
        const response = await fetch(`${url}${path}`, {
          headers: key === null ? {} : { authorization: `Bearer ${key}` },
        });
        if (response.ok || response.status === 404) return await read(response);
        const text = (await response.text()).slice(0, 300);
        reason = `HTTP ${response.status}: ${text}`;
        if (response.status < 500 && response.status !== 429) throw new Final(reason);
        const after = Number(response.headers.get('retry-after') ?? Number.NaN) * 1_000;
        if (after > 0) pauseMs = Math.min(after, MAX_RETRY_MS);
      } catch (fault) {
        if (fault instanceof Final) throw fault;
        reason = fault instanceof Error ? fault.message : String(fault);
      }
      if (attempt < ATTEMPTS) await this.#wait(pauseMs);
    }
    throw new Error(`${reason} (${ATTEMPTS} attempts)`);
  }
}

/** Recognises whether an export is complete: its last line holds the variables of the session. */
class LineStarts {
  readonly #last = Buffer.from('{"variables"');
  #start: Buffer = Buffer.alloc(0);
  #ended = false;

  get isComplete(): boolean {
    return this.#ended && this.#start.equals(this.#last);
  }

  async *pass(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    for await (const chunk of source) {
      const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
      // the final line break ends the last line
      const open = bytes.subarray(0, bytes.length - 1).lastIndexOf(10);
      const continues = open === -1 && !this.#ended;
      const rest = bytes.subarray(open + 1, open + 1 + this.#last.length);
      this.#start = Buffer.concat([continues ? this.#start : Buffer.alloc(0), rest]).subarray(0, this.#last.length);
      this.#ended = bytes.at(-1) === 10;
      yield chunk;
    }
  }
}

/** An answer that another attempt does not change. */
class Final extends Error {}
