/** The routes for files of workspaces: signed, complete or rejected, and per session (C7). */
import { randomBytes } from 'node:crypto';
import fs from 'node:fs';

import { afterEach, beforeEach, describe, expect, test } from 'vitest';

import { limits } from '../../limits.ts';
import { FRAME_HEAD_BYTES, frameHead } from '../../workspace/frames.ts';
import { FakeSandbox } from '../support/fake-sandbox.ts';
import { signed, startRunner, type TestRunner } from '../support/test-runner.ts';
import { download, framesOf, sha256Of, upload } from '../support/workspace-kit.ts';

let runner: TestRunner;
beforeEach(async () => {
  runner = await startRunner({ sandboxes: [new FakeSandbox()] });
});
afterEach(async () => {
  await runner.close();
});

const binary = (size: number): string => randomBytes(size).toString('latin1');
const bytesOf = (text: string): Uint8Array => Buffer.from(text, 'latin1');
const hashOf = (text: string): string => sha256Of(bytesOf(text));

async function problemOf(answer: Response): Promise<{ status: number; code: string; detail: string }> {
  return (await answer.json()) as { status: number; code: string; detail: string };
}
function onDisk(): string[] {
  const root = `${runner.stateDir}/runner/workspaces`;
  const entries = fs.readdirSync(root, { withFileTypes: true, recursive: true });
  return entries.filter((entry) => entry.isFile()).map(({ name }) => name);
}

describe('files', () => {
  test('[C7] are sent, and read in the order asked; a file that is not here is marked', async () => {
    const files = ['', 'text', binary(1_000), binary(3_000_000)];
    const answer = await upload(runner, 'ses_1', ...files.map(bytesOf));
    expect([answer.status, await answer.json()]).toEqual([200, { stored: 4 }]);
    const absent = sha256Of('absent');
    const asked = [...files.map(hashOf), absent].toReversed();
    const frames = await download(runner, 'ses_1', asked);
    expect(frames.map(({ sha256 }) => sha256)).toEqual(asked);
    expect(frames.map(({ bytes }) => bytes)).toEqual([null, ...files.toReversed()]);
    expect((await fetch(`${runner.url}/metrics`).then((metrics) => metrics.text())).split('\n')).toContain(
      `cortex_runner_workspace_cache_bytes ${3_000_000 + 3 * limits.workspaceCacheFileBytes}`,
    );
  });

  test('[C7] of another session are not here', async () => {
    await upload(runner, 'ses_1', 'secret');
    expect(await download(runner, 'ses_2', [sha256Of('secret')])).toEqual([
      { sha256: sha256Of('secret'), bytes: null },
    ]);
  });

  test('[C7] survive a restart, and are gone after their session was removed', async () => {
    await upload(runner, 'ses_1', 'kept');
    await upload(runner, 'ses_2', 'other');
    const { stateDir } = runner;
    await runner.stop();
    runner = await startRunner({ sandboxes: [new FakeSandbox()], stateDir });
    expect((await download(runner, 'ses_1', [sha256Of('kept')]))[0]?.bytes).toBe('kept');
    expect((await runner.ask('DELETE', '/workspaces/ses_1')).status).toBe(204);
    expect((await runner.ask('DELETE', '/workspaces/ses_1')).status).toBe(204);
    expect((await download(runner, 'ses_1', [sha256Of('kept')]))[0]?.bytes).toBeNull();
    expect((await download(runner, 'ses_2', [sha256Of('other')]))[0]?.bytes).toBe('other');
  });

  test('[C7] one answer has at most its bytes, and at least one file', async () => {
    const large = binary(limits.workspaceTransferBytes + 1);
    const half = binary(limits.workspaceTransferBytes / 2 - FRAME_HEAD_BYTES);
    await upload(runner, 'ses_1', bytesOf(large));
    await upload(runner, 'ses_1', bytesOf(half), 'small');
    const read = async (...texts: readonly string[]): Promise<number> =>
      (await download(runner, 'ses_1', texts.map(hashOf))).length;
    expect(await read(large, 'small')).toBe(1);
    expect(await read('small', large)).toBe(1);
    expect(await read(half, half, 'small')).toBe(2);
    expect(await read(half, 'small', half)).toBe(2);
    expect(await read()).toBe(0);
  });

  test('[C7] that are damaged on disk are not sent', async () => {
    await upload(runner, 'ses_1', 'intact');
    const file = `${runner.stateDir}/runner/workspaces/${sha256Of('ses_1')}/${sha256Of('intact')}`;
    fs.writeFileSync(file, 'broken');
    expect(await download(runner, 'ses_1', [sha256Of('intact')])).toEqual([
      { sha256: sha256Of('intact'), bytes: null },
    ]);
    await upload(runner, 'ses_1', 'intact');
    expect((await download(runner, 'ses_1', [sha256Of('intact')]))[0]?.bytes).toBe('intact');
  });
});

describe('an upload is rejected, and stores nothing:', () => {
  const good = framesOf('good');
  const wrong = frameHead(sha256Of('x'), 1);
  const head = (size: number): Buffer => frameHead(sha256Of('x'), size);
  test.each([
    ['another hash', Buffer.concat([good, wrong, Buffer.from('y')]), 'frame 2: the bytes do not have the hash'],
    ['another hash of an empty file', head(0), 'frame 1: the bytes do not have the hash'],
    ['a body that ends inside a file', Buffer.concat([good, head(2), Buffer.from('x')]), 'ends inside frame 2'],
    ['a body that ends inside a head', Buffer.concat([good, head(1).subarray(0, 35)]), 'ends inside frame 2'],
    ['a file that is too large', Buffer.concat([good, head(limits.workspaceFileBytes + 1)]), 'frame 2: 16777217 bytes'],
    ['the mark of a missing file', Buffer.concat([good, frameHead(sha256Of('x'), null)]), 'frame 2: 4294967295 bytes'],
    ['too many files', Buffer.concat(Array.from({ length: 2_001 }, () => framesOf(''))), 'more than 2000 frames'],
    ['a text', Buffer.from('{}'), 'ends inside frame 1'],
  ])('[C7] %s', async (_, body, detail) => {
    const answer = await runner.ask('PUT', '/workspaces/ses_1/files', body);
    const problem = await problemOf(answer);
    expect(problem).toMatchObject({ status: 400, code: 'invalid_request' });
    expect(problem.detail).toContain(detail);
    expect(onDisk()).toEqual([]);
  });

  test('[C7] a body that is too large, with and without its length', async () => {
    const request = await signed(runner.url, 'PUT', '/workspaces/ses_1/files', new Uint8Array());
    const { headers } = request;
    const method = 'PUT';
    const send = async (init: RequestInit & { duplex?: 'half' }): Promise<Response> =>
      await fetch(request.url, { method, headers, ...init });
    const body = new Uint8Array(limits.workspaceBodyBytes + 1);
    expect(await problemOf(await send({ body }))).toMatchObject({ status: 413, code: 'body_too_large' });
    const stream = new Blob([body]).stream();
    expect(await problemOf(await send({ body: stream, duplex: 'half' }))).toMatchObject({ code: 'body_too_large' });
    expect(onDisk()).toEqual([]);
  });

  test.each(['..%2Fx', 'a%20b', 'a%2Fb', 'x'.repeat(limits.sessionChars + 1)])(
    '[C7] the session %s',
    async (session) => {
      for (const answer of [
        await runner.ask('PUT', `/workspaces/${session}/files`, framesOf('x')),
        await runner.ask('POST', `/workspaces/${session}/files/read`, { hashes: [] }),
        await runner.ask('DELETE', `/workspaces/${session}`),
      ]) {
        expect(await problemOf(answer)).toMatchObject({ status: 400, code: 'invalid_request' });
      }
    },
  );
});

test('[C7] a read of invalid or too many hashes is rejected', async () => {
  for (const hashes of [['../x'], ['A'.repeat(64)], Array.from({ length: 2_001 }, () => sha256Of('x')), 'x']) {
    const answer = await runner.ask('POST', '/workspaces/ses_1/files/read', { hashes });
    expect(await problemOf(answer)).toMatchObject({ status: 400, code: 'invalid_request' });
  }
});

describe('[R7] the signature covers the bytes of a body', () => {
  const target = '/workspaces/ses_1/files';

  test('an upload whose bytes differ from the signed ones has no effect', async () => {
    const [sentBody, signedBody] = ['a', 'b'].map((text) => Buffer.from(framesOf(text)).toString('latin1'));
    const request = await signed(runner.url, 'PUT', target, Buffer.from(signedBody ?? '', 'latin1'));
    const body = Buffer.from(sentBody ?? '', 'latin1');
    const answer = await fetch(request.url, { method: 'PUT', headers: request.headers, body });
    expect(await problemOf(answer)).toMatchObject({ status: 401, code: 'unauthorized' });
    expect(onDisk()).toEqual([]);
  });

  test('bytes that are the same text are not the same body', async () => {
    // decoded as UTF-8, both are U+FFFD
    const request = await signed(runner.url, 'POST', '/prewarm', Buffer.from([0xff]));
    const body = Buffer.from([0xfe]);
    const answer = await fetch(request.url, { method: 'POST', headers: request.headers, body });
    expect(answer.status).toBe(401);
  });
});

describe('[C7] concurrent transfers', () => {
  test('are limited, and one that its client ended frees its place', async () => {
    const large = randomBytes(limits.workspaceTransferBytes);
    await upload(runner, 'ses_1', large);
    const read = (): Promise<Response> =>
      runner.ask('POST', '/workspaces/ses_1/files/read', { hashes: [sha256Of(large)] });
    const open: Response[] = [];
    for (let at = 0; at < limits.workspaceTransfers; at += 1) open.push(await read());
    const busy = await read();
    expect(await problemOf(busy)).toMatchObject({ status: 429, code: 'busy' });
    expect(Number(busy.headers.get('retry-after'))).toBeGreaterThan(0);
    await Promise.all(open.map((answer) => answer.body?.cancel()));
    await expect.poll(async () => (await upload(runner, 'ses_1', 'x')).status).toBe(200);
  });
});
