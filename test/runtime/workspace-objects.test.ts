/** Large files of a workspace in R2, as stored by the platform's own simulator; forks, exports and deletions with them (C7). */
import { abortAllDurableObjects, runDurableObjectAlarm, runInDurableObject } from 'cloudflare:test';
import { expect, test } from 'vitest';
import { limits } from '../../src/domain/limits.ts';
import { FILES, SESSIONS } from './bindings.ts';
import { call, newSession, post } from './client.ts';

const bytesOf = (seed: number, size: number = limits.objectFileLeastBytes): Uint8Array<ArrayBuffer> =>
  Uint8Array.from({ length: size }, (_, at) => (at * 7 + seed) % 251);

const pathOf = (session: string, path = ''): string => `/agent/session/${session}/files${path}`;

async function put(session: string, path: string, body: Uint8Array<ArrayBuffer>): Promise<string> {
  const response = await call(pathOf(session, path), { method: 'PUT', body });
  expect([200, 201]).toContain(response.status);
  return (await response.json<{ sha256: string }>()).sha256;
}

const read = async (session: string, path: string): Promise<Uint8Array> =>
  await (await call(pathOf(session, path))).bytes();

const objectsOf = async (session: string): Promise<string[]> => {
  const { objects } = await FILES.list({ prefix: `sessions/${session}/` });
  return objects.map(({ key }) => key.slice(key.lastIndexOf('/') + 1)).toSorted();
};

/** Released bytes become due, in a new instance of the object. */
async function collected(session: string): Promise<void> {
  await runInDurableObject(SESSIONS.getByName(session), async (_object, { storage }) => {
    storage.sql.exec(`UPDATE message_files SET at = 0 WHERE state <> 'stored'`);
    await storage.sync();
  });
  await abortAllDurableObjects();
  await runDurableObjectAlarm(SESSIONS.getByName(session));
}

test('[C7] a large file is an object, and is deleted some time after it was replaced', async () => {
  const session = await newSession();
  const first = await put(session, '/a.bin', bytesOf(1));
  await put(session, '/small.txt', bytesOf(2, 10));
  expect(await objectsOf(session)).toEqual([first]);
  await abortAllDurableObjects();
  expect(await read(session, '/a.bin')).toEqual(bytesOf(1));
  const second = await put(session, '/a.bin', bytesOf(3));
  expect(await objectsOf(session)).toEqual([first, second].toSorted());
  await collected(session);
  expect(await objectsOf(session)).toEqual([second]);
  expect(await read(session, '/a.bin')).toEqual(bytesOf(3));
});

test('[C7] [C2] a message and a path share an object; each of them may go first', async () => {
  const session = await newSession();
  const bytes = bytesOf(4);
  const sha256 = await put(session, '/mine.bin', bytes);
  const part = { type: 'file', name: 'sent.bin', data: (bytes as Uint8Array & { toBase64(): string }).toBase64() };
  await post(`/agent/session/${session}/message`, { content: [part], stream: false });
  expect(await objectsOf(session)).toEqual([sha256]);
  expect(await read(session, '/uploads/sent.bin')).toEqual(bytes);
  for (const path of ['/mine.bin', '/uploads/sent.bin']) await call(pathOf(session, path), { method: 'DELETE' });
  await runDurableObjectAlarm(SESSIONS.getByName(session));
  const response = await call(`/agent/session/${session}/content/${sha256}`);
  expect(await response.bytes()).toEqual(bytes);
});

test('[C7] a deleted session leaves no object, and a fork has its own', async () => {
  const session = await newSession();
  await post(`/agent/session/${session}/message`, { content: 'hello', stream: false });
  const sha256 = await put(session, '/a.bin', bytesOf(5));
  await put(session, '/b/small.txt', bytesOf(6, 10));
  const answer = await post(`/agent/session/${session}/fork`, {});
  const { session_id: fork } = await answer.json<{ session_id: string }>();
  expect([await objectsOf(session), await objectsOf(fork)]).toEqual([[sha256], [sha256]]);
  await call(`/agent/session/${session}`, { method: 'DELETE' });
  expect(await objectsOf(session)).toEqual([]);
  expect(await read(fork, '/a.bin')).toEqual(bytesOf(5));
  expect(await read(fork, '/b/small.txt')).toEqual(bytesOf(6, 10));
  await call(pathOf(fork, '/a.bin'), { method: 'DELETE' });
  await collected(fork);
  expect(await objectsOf(fork)).toEqual([]);
});

test('[C7] an export has the files of the workspace', async () => {
  const session = await newSession();
  await put(session, '/data/ä b.txt', bytesOf(7, 5));
  const text = await (await call(`/agent/session/${session}/export`)).text();
  const lines = text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  expect(lines.flatMap(({ workspace }) => workspace ?? [])).toEqual([
    {
      path: 'data/ä b.txt',
      sha256: expect.stringMatching(/^[0-9a-f]{64}$/) as string,
      size: 5,
      executable: false,
      modified_at: expect.any(Number) as number,
      download: `/agent/session/${session}/files/data/%C3%A4%20b.txt`,
      base64: (bytesOf(7, 5) as Uint8Array & { toBase64(): string }).toBase64(),
    },
  ]);
});
