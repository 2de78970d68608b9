/**
 * Routes for the files of workspaces (C7): send them to the cache, read them, remove those of a session. All need a signed
 * request. Files are streamed, so that concurrent transfers need little memory.
 */
import { createHash } from 'node:crypto';
import fs from 'node:fs';

import type { Context, Hono } from 'hono';
import { z } from 'zod';

import type { Authority, SignedRequest } from '../auth.ts';
import { parseBody, sessionId } from '../jobs/job.ts';
import { reasonOf } from '../ledger/ledger-error.ts';
import { limits } from '../limits.ts';
import { RunnerError } from '../problem.ts';
import type { FileCache } from './file-cache.ts';
import { FRAME_HEAD_BYTES, frameHead, FrameReader } from './frames.ts';
import { fileHash } from './request.ts';

const readRequest = z.strictObject({ hashes: z.array(fileHash).max(limits.workspaceFiles) });
const CHUNK_BYTES = 65_536;

/** What a request signs, next to its body. */
export function signedPart(c: Context): SignedRequest {
  const { pathname, search } = new URL(c.req.url);
  return { method: c.req.method, target: pathname + search, authorization: c.req.header('authorization') ?? null };
}

export class WorkspaceRoutes {
  readonly #cache: FileCache;
  readonly #authority: Authority;
  #transfers = 0;

  constructor(cache: FileCache, authority: Authority) {
    this.#cache = cache;
    this.#authority = authority;
  }

  /** The upload: its body has another limit, and its signature is checked here. Add it before these checks of the app. */
  addUpload(app: Hono): void {
    app.put('/workspaces/:session/files', async (c) => {
      const finish = await this.#authority.open(signedPart(c));
      const session = sessionOf(c);
      const end = this.#enter();
      const scratch = this.#cache.scratch();
      try {
        return c.json({ stored: await this.#store(c, session, scratch, finish) });
      } catch (fault) {
        if (c.req.raw.signal.aborted) throw new RunnerError('invalid_request', 'The body ended early');
        throw storageProblem(fault);
      } finally {
        fs.rmSync(scratch, { force: true });
        end();
      }
    });
  }

  /** The other routes; the app has checked the signature. */
  addOthers(app: Hono): void {
    app.post('/workspaces/:session/files/read', async (c) => {
      const session = sessionOf(c);
      const { hashes } = parseBody(await c.req.text(), readRequest);
      this.#cache.touch(session);
      const end = this.#enter();
      return new Response(streamOf(this.#read(session, hashes), end), {
        headers: { 'content-type': 'application/octet-stream', 'cache-control': 'no-store' },
      });
    });
    app.delete('/workspaces/:session', (c) => {
      this.#cache.remove(sessionOf(c));
      return c.body(null, 204);
    });
  }

  /** @throws RunnerError `busy` */
  #enter(): () => void {
    if (this.#transfers >= limits.workspaceTransfers) {
      throw new RunnerError('busy', `${this.#transfers} transfers of files are in progress`, {
        'retry-after': String(limits.retryAfterSeconds),
      });
    }
    this.#transfers += 1;
    let isOpen = true;
    return () => {
      if (isOpen) this.#transfers -= 1;
      isOpen = false;
    };
  }

  /**
   * Stores the files of a body: first the whole body in one file, so that nothing has an effect before the signature and
   * all hashes are checked.
   */
  async #store(c: Context, session: string, scratch: string, finish: (bodyHash: Uint8Array) => void): Promise<number> {
    const reader = new FrameReader();
    const hash = createHash('sha256');
    const tooLarge = (): RunnerError =>
      new RunnerError('body_too_large', `The body is larger than ${limits.workspaceBodyBytes} bytes`);
    if (Number(c.req.header('content-length') ?? 0) > limits.workspaceBodyBytes) throw tooLarge();
    const handle = await fs.promises.open(scratch, 'wx', 0o600);
    try {
      let bytes = 0;
      for await (const chunk of c.req.raw.body ?? []) {
        bytes += chunk.length;
        if (bytes > limits.workspaceBodyBytes) throw tooLarge();
        hash.update(chunk);
        reader.feed(chunk);
        await handle.appendFile(chunk);
      }
    } finally {
      await handle.close();
    }
    finish(hash.digest());
    const issue = reader.end();
    if (issue !== null) throw new RunnerError('invalid_request', issue);
    for (const { sha256, start, size } of reader.frames) {
      const bytes = size === 0 ? nothing() : fs.createReadStream(scratch, { start, end: start + size - 1 });
      const stored = await this.#cache.put(session, bytes, size);
      if (stored?.sha256 !== sha256) throw new Error('A stored file has changed on disk');
    }
    return reader.frames.length;
  }

  /** Frames up to `limits.workspaceTransferBytes`, at least one. */
  async *#read(session: string, hashes: readonly string[]): AsyncGenerator<Uint8Array> {
    let sent = 0;
    for (const sha256 of hashes) {
      const file = await this.#cache.open(session, sha256);
      try {
        const length = FRAME_HEAD_BYTES + (file?.size ?? 0);
        if (sent > 0 && sent + length > limits.workspaceTransferBytes) return;
        sent += length;
        yield frameHead(sha256, file?.size ?? null);
        if (file === null) continue;
        for (let left = file.size; left > 0;) {
          const { bytesRead, buffer } = await file.handle.read(Buffer.alloc(Math.min(left, CHUNK_BYTES)));
          if (bytesRead === 0) throw new Error('A cached file became shorter while it was sent');
          left -= bytesRead;
          yield buffer.subarray(0, bytesRead);
        }
      } finally {
        await file?.handle.close();
      }
    }
  }
}

/** Reads at the speed of the client. @param end called once, however the stream ends */
function streamOf(chunks: AsyncGenerator<Uint8Array>, end: () => void): ReadableStream<Uint8Array> {
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const next = await chunks.next();
        if (next.done !== true) {
          controller.enqueue(next.value);
          return;
        }
        end();
        controller.close();
      } catch (fault) {
        // closes the connection: the client sees that the answer is not complete
        end();
        controller.error(fault);
      }
    },
    async cancel() {
      end();
      await chunks.return(undefined);
    },
  });
}

async function* nothing(): AsyncGenerator<Uint8Array> {
  // a file without bytes
}

function sessionOf(c: Context): string {
  const session = sessionId.safeParse(c.req.param('session'));
  if (!session.success) throw new RunnerError('invalid_request', 'session: expected a session id');
  return session.data;
}

function storageProblem(fault: unknown): unknown {
  const reason = reasonOf(fault);
  if (reason === null) return fault;
  const headers = { 'retry-after': String(limits.ledgerRetrySeconds) };
  return new RunnerError('storage', `The files could not be stored: ${reason}`, headers);
}
