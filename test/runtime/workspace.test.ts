/** The files of a session for people, from the Worker to the session's object (C7). */
import { describe, expect, test } from 'vitest';
import { limits } from '../../src/domain/limits.ts';
import { call, newSession, post } from './client.ts';

const PIECE_BYTES = 65_536;

/** Random, so that they cannot be compressed. */
function bytesOf(size: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(size);
  for (let at = 0; at < size; at += PIECE_BYTES) crypto.getRandomValues(bytes.subarray(at, at + PIECE_BYTES));
  return bytes;
}

const filesOf = (session: string, path = ''): string => `/agent/session/${session}/files${path}`;
const put = (session: string, path: string, body: BodyInit): Promise<Response> =>
  call(filesOf(session, path), { method: 'PUT', body });

async function pathsOf(session: string): Promise<string[]> {
  const { files } = await (await call(filesOf(session))).json<{ files: { path: string }[] }>();
  return files.map(({ path }) => path);
}

/** In pieces, as from the network; without a stated length. */
function streamed(bytes: Uint8Array): ReadableStream<Uint8Array> {
  let at = 0;
  return new ReadableStream({
    pull(controller) {
      if (at >= bytes.length) return controller.close();
      controller.enqueue(bytes.slice(at, at + PIECE_BYTES));
      at += PIECE_BYTES;
      return undefined;
    },
  });
}

describe('[C7] files of a session', () => {
  test('a file of 16 MiB arrives with and without a length, and comes back in parts', async () => {
    const session = await newSession();
    const bytes = bytesOf(limits.workspaceFileBytes);

    expect((await put(session, '/a/%C5%81.bin', bytes)).status).toBe(201);
    expect((await put(session, '/a/%C5%81.bin', streamed(bytes))).status).toBe(200);
    const whole = await call(filesOf(session, '/a/%C5%81.bin'));
    expect(whole.headers.get('content-disposition')).toBe(`attachment; filename="_.bin"; filename*=UTF-8''%C5%81.bin`);
    expect((await whole.bytes()).length).toBe(bytes.length);
    const part = await call(filesOf(session, '/a/%C5%81.bin'), { headers: { range: 'bytes=-5' } });
    expect([part.status, await part.bytes()]).toEqual([206, bytes.slice(-5)]);
    const etag = whole.headers.get('etag') ?? '';
    const known = await call(filesOf(session, '/a/%C5%81.bin'), { headers: { 'if-none-match': etag } });
    expect([known.status, await known.text()]).toEqual([304, '']);
    const head = await call(filesOf(session, '/a/%C5%81.bin'), { method: 'HEAD' });
    expect([head.status, head.headers.get('etag')]).toEqual([200, etag]);
  });

  test('a body of 17 MiB is 413, also without a length; then the session takes another file', async () => {
    const session = await newSession();
    for (const body of [bytesOf(17 * 1_048_576), streamed(bytesOf(17 * 1_048_576))]) {
      const response = await put(session, '/large', body);
      expect([response.status, await response.json()]).toMatchObject([413, { code: 'body_too_large' }]);
    }
    expect((await put(session, '/small', 'x')).status).toBe(201);
    expect(await pathsOf(session)).toEqual(['small']);
  });

  test('a body that stalls until the client has gone writes nothing', async () => {
    const session = await newSession();
    const leaving = new AbortController();
    const body = new ReadableStream<Uint8Array>({ start: (controller) => controller.enqueue(bytesOf(2_000_000)) });
    const sent = call(filesOf(session, '/a'), { method: 'PUT', body, signal: leaving.signal }).catch(() => null);
    expect(await pathsOf(session)).toEqual([]);
    leaving.abort();
    await sent;
    expect((await put(session, '/b', bytesOf(2_000_000))).status).toBe(201);
    expect(await pathsOf(session)).toEqual(['b']);
  });

  test('are gone with the session', async () => {
    const session = await newSession();
    await put(session, '/a', 'x');
    expect((await call(`/agent/session/${session}`, { method: 'DELETE' })).status).toBe(204);
    for (const path of ['', '/a', '?archive=zip']) {
      const response = await call(filesOf(session, path));
      expect([response.status, await response.json()]).toMatchObject([404, { code: 'unknown_session' }]);
    }
  });

  test('a token for files cannot read the transcript by a path with dots', async () => {
    const session = await newSession();
    const tokens = await post(`/agent/session/${session}/tokens`, { scopes: ['files'] });
    const { token } = await tokens.json<{ token: string }>();
    const headers = { authorization: `Bearer ${token}` };
    for (const path of ['/%2e%2e/transcript', '/a/../../transcript', '/..\\transcript']) {
      expect((await call(filesOf(session, path), { headers })).status).toBe(403);
    }
    for (const path of ['/..%2Ftranscript', '/..%5Ctranscript', '/%252e%252e%2Ftranscript']) {
      expect((await call(filesOf(session, path), { headers })).status).toBe(400);
    }
  });
});

describe('[C7] the archive', () => {
  test('is complete, or its stream fails: when the session or a file is deleted meanwhile', async () => {
    for (const end of ['none', 'session', 'file'] as const) {
      const session = await newSession();
      // More than the buffers between the object and the client hold.
      for (const name of ['/a', '/b', '/c']) await put(session, name, bytesOf(8_000_000));
      const response = await call(filesOf(session, '?archive=zip'));
      expect([response.status, response.headers.get('content-type')]).toEqual([200, 'application/zip']);
      const reader = (response.body as ReadableStream<Uint8Array>).getReader();
      await reader.read();
      const deleted = end === 'session' ? `/agent/session/${session}` : filesOf(session, '/c');
      if (end !== 'none') expect((await call(deleted, { method: 'DELETE' })).status).toBeLessThan(300);
      let bytes = 0;
      const rest = (async () => {
        for (let read = await reader.read(); !read.done; read = await reader.read()) bytes += read.value.length;
      })();
      if (end === 'none') {
        await rest;
        expect(bytes).toBeGreaterThan(20_000_000);
      } else await expect(rest).rejects.toThrow();
    }
  });
});
