/** A session with a history in a real object: its storage, a failed creation, an eviction, the deletion (C1). */
import { abortAllDurableObjects, runDurableObjectAlarm, runInDurableObject } from 'cloudflare:test';
import { expect, test } from 'vitest';
import { base64Of } from '../../src/domain/base64.ts';
import { limits } from '../../src/domain/limits.ts';
import type { SeededMessage } from '../../src/domain/seeded.ts';
import { SESSIONS } from './bindings.ts';
import { chatRecord, call, newSession, post } from './client.ts';

const TURNS = 1_000;
const history = Array.from({ length: TURNS }, (_, at): SeededMessage[] => [
  { role: 'user', content: `question ${at}` },
  { role: 'assistant', content: `answer ${at}` },
]).flat();

test('[C1] 1,000 turns are durable with the session, survive an eviction, and are deleted with it', async () => {
  const id = await newSession('assistant', { history });
  const path = `/agent/session/${id}`;
  await abortAllDurableObjects();
  expect(await (await call(path)).json()).toMatchObject({ message_count: 2 * TURNS, runs: 0, last_seq: 0 });
  const { run_id: run } = await (
    await post(`${path}/message`, { content: 'what is 2 + 2', stream: false })
  ).json<{ run_id: string }>();
  const prompt = await (await call(`${path}/runs/${run}/prompt`)).text();
  expect(prompt).toContain('<response final=\\"true\\">answer 999</response>');
  expect(prompt).not.toContain(`question ${TURNS - limits.historyTurns - 1}"`);
  await abortAllDurableObjects();
  const page = await (await call(`${path}/history?limit=2`)).json<{ messages: unknown[]; next: string }>();
  expect(page.messages[0]).toEqual({ role: 'assistant', content: 'answer 999', seeded: true });
  expect(page.next).toBe('seeded_2000');
  const lines = (await (await call(`${path}/export`)).text()).split('\n');
  expect(lines.filter((line) => line.startsWith('{"seeded":'))).toHaveLength(2 * TURNS);
  expect((await call(path, { method: 'DELETE' })).status).toBe(204);
  await runInDurableObject(SESSIONS.getByName(id), (_object, { storage }) => {
    expect(storage.sql.exec(`SELECT name FROM sqlite_master WHERE name = 'seeded'`).toArray()).toEqual([]);
  });
  expect((await call(path)).status).toBe(404);
});

test('[C1] [C2] files of a history go to the object with it: shown, durable, deleted with the session', async () => {
  const image = Uint8Array.from({ length: 3 * limits.rowBytes }, (_, at) =>
    at < 8 ? ([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a][at] ?? 0) : at % 251,
  );
  const url = `data:image/png;base64,${base64Of(image)}`;
  const id = await newSession('assistant', {
    history: [
      {
        role: 'user',
        content: [
          { type: 'text', text: 'What is this?' },
          { type: 'image_url', image_url: { url } },
        ],
      },
      { role: 'assistant', content: 'A picture.' },
    ],
  });
  const path = `/agent/session/${id}`;
  await abortAllDurableObjects();
  const page = await (await call(`${path}/history`)).json<{ messages: { parts?: unknown }[] }>();
  const part = { type: 'image', name: 'image-2', media_type: 'image/png', size: image.length };
  expect(page.messages[0]).toMatchObject({ parts: [{ type: 'text' }, part], seeded: true });
  await post(`${path}/message`, { content: 'what is 2 + 2', stream: false });
  await runInDurableObject(SESSIONS.getByName(id), (_object, { storage }) => {
    const rows = storage.sql.exec<{ bytes: ArrayBuffer }>(`SELECT bytes FROM blobs ORDER BY part`).toArray();
    expect(rows.reduce((sum, { bytes }) => sum + bytes.byteLength, 0)).toBe(image.length);
  });
  expect((await call(path, { method: 'DELETE' })).status).toBe(204);
  await runInDurableObject(SESSIONS.getByName(id), (_object, { storage }) => {
    expect(storage.sql.exec(`SELECT name FROM sqlite_master WHERE name = 'blobs'`).toArray()).toEqual([]);
  });
  const refused = await post('/agent/assistant/session', {
    history: [{ role: 'user', content: [{ type: 'image', data: 'AAAA' }] }],
  });
  expect([refused.status, await refused.json()]).toMatchObject([415, { code: 'unsupported_media_type' }]);
});

test('[C1] an object that fails while it writes the history has no session and no history, and its alarm leaves nothing', async () => {
  const id = `ses_${'e'.repeat(32)}`;
  const record = chatRecord(id);
  // An abort breaks the stubs that exist.
  const stub = (): ReturnType<typeof SESSIONS.getByName> => SESSIONS.getByName(id);
  // Directly, because the Worker knows that no session has this id.
  const read = (): Promise<Response> =>
    runInDurableObject(stub(), (object) => object.fetch(new Request('http://session/')));
  // Written last, in rows of its own.
  const long: SeededMessage = { role: 'user', content: 'x'.repeat(limits.rowBytes) };
  const failed = runInDurableObject(stub(), async (object, { storage }) => {
    const exec = storage.sql.exec.bind(storage.sql);
    const failing = (...given: Parameters<typeof exec>): ReturnType<typeof exec> => {
      if (given[0].startsWith('INSERT INTO chunks')) throw new Error('the disk fails');
      return exec(...given);
    };
    Object.defineProperty(storage, 'sql', { value: { exec: failing }, configurable: true });
    try {
      await object.create(record, { x: 1 }, { messages: [...history, long], files: new Map() });
    } finally {
      Reflect.deleteProperty(storage, 'sql');
    }
  });
  await expect(failed).rejects.toThrow('the disk fails');
  expect((await read()).status).toBe(404);
  await abortAllDurableObjects();
  // It was set before the session was written (C6). On a busy machine, it may have fired by itself.
  await runDurableObjectAlarm(stub());
  await runInDurableObject(stub(), async (object, { storage }) => {
    expect(await storage.getAlarm()).toBeNull();
    for (const name of ['seeded', 'variables'])
      expect(storage.sql.exec(`SELECT 1 FROM sqlite_master WHERE name = ?`, name).toArray()).toEqual([]);
    const rows = ['session', 'chunks'].map(
      (table) => storage.sql.exec(`SELECT COUNT(*) AS count FROM ${table}`).one()['count'],
    );
    expect(rows).toEqual([0, 0]);
    await object.create(record, {}, { messages: [long], files: new Map() });
  });
  await abortAllDurableObjects();
  expect(await (await read()).json()).toMatchObject({ message_count: 1 });
});
