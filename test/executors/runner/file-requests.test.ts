/** Requests for the files of a job: a runner that is busy, away or too eager (C7, R7). */
import { describe, expect, test } from 'vitest';
import { limits } from '../../../src/domain/limits.ts';
import { FileRequests, missingFilesOf } from '../../../src/executors/runner/file-requests.ts';
import { VirtualClock } from '../../../testing/virtual-clock.ts';
import { settle } from '../../support/session-kit.ts';
import { hashOf } from '../../support/workspace-runner.ts';

const BYTES = new TextEncoder().encode('kept');
const HASH = hashOf(BYTES);

function frame(hash: string, bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(bytes.length);
  return new Uint8Array(Buffer.concat([Buffer.from(hash, 'hex'), length, bytes]));
}

const problem = (status: number): Response => Response.json({ detail: 'no' }, { status });
const found = (): Response => new Response(frame(HASH, BYTES));

const LEFT = {
  end: 'exited',
  exitCode: 0,
  stdout: '',
  stderr: '',
  truncated: false,
  workspace: { changes: [], skipped: [], skippedCount: 0, error: null },
} as const;

/** Reads one file from a runner with these answers; the clock advances whenever the client waits. */
async function read(
  answers: readonly ((signal: AbortSignal) => Response | Promise<Response>)[],
  signal = new AbortController().signal,
): Promise<{ readonly text: string; readonly requests: number }> {
  const clock = new VirtualClock();
  let requests = 0;
  const answer: ConstructorParameters<typeof FileRequests>[0] = async (_method, _target, _body, ended) => {
    requests += 1;
    return await (answers[Math.min(requests, answers.length) - 1] ?? found)(ended);
  };
  const files = new FileRequests(answer, clock).withFiles(LEFT, 'ses_1').workspace?.read([HASH], signal) ?? [];
  let isDone = false;
  const reading = (async () => {
    let text = '';
    for await (const [, bytes] of files) text += new TextDecoder().decode(bytes);
    return text;
  })().finally(() => {
    isDone = true;
  });
  reading.catch(() => undefined);
  for (let turn = 0; turn < 100; turn += 1) {
    await settle();
    if (isDone) break;
    clock.advance(limits.runnerRetryMaxMs);
  }
  return { text: await reading, requests };
}

describe('[C7] the files of a program that has ended', () => {
  const broken = (): Response => {
    throw new TypeError('the connection failed');
  };

  test.each([
    ['is busy', () => problem(429)],
    ['starts again', () => problem(503)],
    ['cannot be reached', broken],
  ])('are asked for again if the runner %s', async (_, fails) => {
    expect(await read([fails, fails, found])).toEqual({ text: 'kept', requests: 3 });
  });

  test('are lost if the runner refuses, and is not asked again', async () => {
    let requests = 0;
    const refusal = (): Response => {
      requests += 1;
      return problem(400);
    };
    await expect(read([refusal])).rejects.toMatchObject({ code: 'runner_rejected' });
    expect(requests).toBe(1);
  });

  test('are lost with the reason if the runner never answers', async () => {
    const silent = async (signal: AbortSignal): Promise<Response> =>
      await new Promise((_, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason as Error));
      });
    await expect(read([silent])).rejects.toMatchObject({
      code: 'runner_unavailable',
      message: expect.stringContaining(`no answer within ${limits.workspaceTransferMs / 1_000} s`),
    });
  });

  test('are lost if the runner stays away for as long as a running job would be waited for', async () => {
    let requests = 0;
    const away = (): Response => {
      requests += 1;
      return broken();
    };
    await expect(read([away])).rejects.toMatchObject({ code: 'runner_unavailable' });
    expect(requests).toBeLessThanOrEqual(limits.runnerLostMs / limits.runnerRetryMaxMs + 1);
  });

  test('are not asked for after an abort', async () => {
    const stop = new AbortController();
    const aborts = (): Response => {
      stop.abort(new Error('cancelled'));
      return broken();
    };
    await expect(read([aborts], stop.signal)).rejects.toThrow('cancelled');
  });

  test('an answer with more bytes than any honest one is not read to its end', async () => {
    let sent = 0;
    const piece = new Uint8Array(1_048_576);
    const endless = (): Response =>
      new Response(
        new ReadableStream({
          pull(controller) {
            sent += piece.length;
            controller.enqueue(piece);
          },
        }),
      );
    await expect(read([endless])).rejects.toMatchObject({ code: 'runner_rejected' });
    expect(sent).toBeLessThan(limits.workspaceTransferBytes + limits.workspaceFileBytes + 4 * piece.length);
  });
});

describe('[C7] [R7] the files of a job that is submitted', () => {
  const workspace = {
    files: [{ path: 'x', sha256: HASH, size: BYTES.length, executable: false, modifiedAt: 1 }],
    maxBytes: 10,
    read: async () => BYTES,
  };

  test.each([
    [false, true],
    [true, false],
  ])('after an answer that was lost (%s), a broken transfer is before the dispatch: %s', async (mayBeThere, before) => {
    const away = (): Promise<Response> => Promise.reject(new TypeError('the connection failed'));
    const files = new FileRequests(away, new VirtualClock());
    const { signal } = new AbortController();
    const sending = files.send({ session: 'ses_1', workspace }, new Set([HASH]), mayBeThere, signal);
    await expect(sending).rejects.toMatchObject({ code: 'runner_unavailable', beforeDispatch: before });
  });

  test('are sent by one job at a time; one that has waited asks again what is missing', async () => {
    const gate = Promise.withResolvers<void>();
    let requests = 0;
    const files = new FileRequests(async () => {
      requests += 1;
      await gate.promise;
      return new Response('{}');
    }, new VirtualClock());
    const { signal } = new AbortController();
    const send = (): Promise<boolean> => files.send({ session: 'ses_1', workspace }, new Set([HASH]), false, signal);
    const both = Promise.all([send(), send()]);
    await settle();
    gate.resolve();
    expect(await both).toEqual([true, false]);
    expect(await send()).toBe(true);
    expect(requests).toBe(2);
  });

  test('a transfer that failed lets the next one begin', async () => {
    const files = new FileRequests(() => Promise.reject(new TypeError('the connection failed')), new VirtualClock());
    const { signal } = new AbortController();
    const send = (): Promise<boolean> => files.send({ session: 'ses_1', workspace }, new Set([HASH]), false, signal);
    for (let count = 0; count < 2; count += 1)
      await expect(send()).rejects.toMatchObject({ code: 'runner_unavailable' });
  });

  test('are those that the answer names', () => {
    const text = JSON.stringify({ code: 'missing_files', missing: [HASH] });
    expect(missingFilesOf({ status: 409, text })).toEqual(new Set([HASH]));
    expect(missingFilesOf({ status: 409, text: '{"code":"id_conflict"}' })).toBe(null);
    expect(missingFilesOf({ status: 500, text })).toBe(null);
  });
});
