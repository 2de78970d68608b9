/** Which objects a message waits for (Z1): those of all classes but the session's are watched, and hang on demand. */
import { runInDurableObject } from 'cloudflare:test';
import { afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import type { Env } from '../../src/durable/env.ts';
import { limits } from '../../src/domain/limits.ts';
import { CatalogObject } from '../../src/durable/objects/catalog-object.ts';
import { DirectoryObject } from '../../src/durable/objects/directory-object.ts';
import { RelicObject } from '../../src/durable/objects/relic-object.ts';
import { ScheduleObject } from '../../src/durable/objects/schedule-object.ts';
import { SharedFeedObject } from '../../src/durable/objects/shared-feed-object.ts';
import { StatusObject } from '../../src/durable/objects/status-object.ts';
import { here, SESSIONS } from './bindings.ts';
import { call, execute, newSession, post } from './client.ts';

const OTHERS = {
  CatalogObject,
  DirectoryObject,
  RelicObject,
  ScheduleObject,
  SharedFeedObject,
  StatusObject,
};

/** `Class.method` of each request, in order. */
const calls: string[] = [];
/** While it is set, requests to these objects are not answered. */
let held: PromiseWithResolvers<void> | null = null;

beforeAll(() => {
  for (const [name, { prototype }] of Object.entries(OTHERS)) {
    for (const method of Object.getOwnPropertyNames(prototype)) {
      const original: unknown = Reflect.get(prototype, method);
      if (method === 'constructor' || typeof original !== 'function') continue;
      Reflect.set(prototype, method, function watched(this: object, ...given: unknown[]): unknown {
        calls.push(`${name}.${method}`);
        const answer = (): unknown => Reflect.apply(original, this, given);
        return held === null ? answer() : held.promise.then(answer);
      });
    }
  }
});

/** Added to the real time. The clock must go on: while it stands still, an alarm that is due rings for ever. */
let ahead = 0;

beforeEach(() => {
  const now = Date.now.bind(Date);
  vi.spyOn(Date, 'now').mockImplementation(() => now() + ahead);
});

afterEach(() => {
  vi.restoreAllMocks();
  held?.resolve();
  held = null;
});

const pass = (ms: number): void => void (ahead += ms);

/** Nothing but sessions answers from here on. */
function hold(): void {
  held = Promise.withResolvers();
  calls.length = 0;
}

/** What was asked, except for what is written to the lists after the answer. */
const asked = (): string[] => calls.filter((one) => !/^DirectoryObject\.(write|keepApprovals)$/.test(one));

const agent = (version: number): string =>
  `kind: Agent\nversion: "${version}"\nname: porter\nsummary: Carries.\npersona: {agent: You carry version ${version}.}\n`;

const upload = async (version: number): Promise<Response> =>
  await call('/manifests/agent/porter', { method: 'PUT', body: agent(version) });

/** The same in another isolate: this one does not hear of it. @returns the number of the change */
async function uploadElsewhere(version: number): Promise<number> {
  const reply = await here.CATALOGS.getByName('local').put(null, { kind: 'agent', name: 'porter' }, agent(version));
  if (reply.type !== 'ok' || reply.revision === undefined) throw new Error(JSON.stringify(reply));
  return reply.revision;
}

/** Sends a message. @returns the version of the agent that answers it */
async function say(id: string, headers: Record<string, string> = {}): Promise<number> {
  const answer = await post(`/agent/session/${id}/message`, { content: 'Hello', stream: false }, headers);
  expect(await answer.json()).toMatchObject({ status: 'completed' });
  return await runInDurableObject(SESSIONS.getByName(id), (_object, { storage }) => {
    const [run] = storage.sql.exec(`SELECT input FROM runs ORDER BY run DESC LIMIT 1`).toArray();
    const { manifests } = JSON.parse(String(run?.['input'])) as { manifests: string };
    const [text] = storage.sql
      .exec(`SELECT text FROM pinned_manifests WHERE id = ?`, manifests.split(/[+@]/, 1)[0])
      .toArray();
    return Number(/You carry version (\d)/.exec(String(text?.['text']))?.[1]);
  });
}

describe('[Z1] a message waits for its session only', () => {
  test('of a bundled agent', async () => {
    const id = await newSession();
    hold();
    const answer = await post(`/agent/session/${id}/message`, { content: 'Hello', stream: false });
    expect(await answer.json()).toMatchObject({ status: 'completed' });
    expect(asked()).toEqual([]);
  });

  test('of an uploaded agent: the first one, later ones, and those after the staleness', async () => {
    await upload(1);
    const id = await newSession('porter');
    hold();
    expect(await say(id)).toBe(1);
    pass(limits.manifestStalenessMs / 2);
    expect(await say(id)).toBe(1);
    expect(asked()).toEqual([]);
    pass(limits.manifestStalenessMs);
    expect([await say(id), await say(id)]).toEqual([1, 1]);
    // Behind the message.
    expect(asked()).toEqual(['CatalogObject.resolve']);
  });

  test('of an uploaded agent after the maximum age: it waits for the catalogue', async () => {
    await upload(1);
    const id = await newSession('porter');
    await say(id);
    pass(limits.manifestMaxAgeMs + 1);
    calls.length = 0;
    expect(await say(id)).toBe(1);
    expect(asked()).toEqual(['CatalogObject.resolve']);
  });

  test('and with RATE_LIMIT, for the counter of its agent', async () => {
    const id = await newSession();
    await runInDurableObject(SESSIONS.getByName(id), (object) => {
      const { env } = object as unknown as { env: Env };
      Object.assign(object, { env: { ...env, RATE_LIMIT: '100' } });
    });
    calls.length = 0;
    const answer = await post(`/agent/session/${id}/message`, { content: 'Hello', stream: false });
    expect(await answer.json()).toMatchObject({ status: 'completed' });
    expect(asked()).toEqual(['StatusObject.take']);
  });

  test('on every surface, also in a session of its own', async () => {
    await upload(1);
    const chat = { model: 'porter', messages: [{ role: 'user', content: 'Hello' }] };
    const requests: readonly (() => Promise<unknown>)[] = [
      () => execute('<response final="true">Hello</response>', { agent: 'porter' }),
      async () => (await post('/v1/chat/completions', chat)).json(),
      async () => (await post('/v1/responses', { model: 'porter', input: 'Hello' })).json(),
      () => newSession('porter'),
    ];
    for (const request of requests) await request();
    hold();
    for (const request of requests) await request();
    expect(asked()).toEqual([]);
  });
});

describe('[Z1] [M4] a change of an uploaded agent', () => {
  test('that was made in this isolate is seen at once, in each session', async () => {
    await upload(1);
    const [one, other] = [await newSession('porter'), await newSession('porter')];
    expect([await say(one), await say(other)]).toEqual([1, 1]);
    const before = Date.now();
    const changed = await upload(2);
    expect(Number(changed.headers.get('x-manifest-revision'))).toBeGreaterThanOrEqual(before);
    expect([await say(one), await say(other), await say(await newSession('porter'))]).toEqual([2, 2, 2]);
  });

  test('that is made during a message of the namespace fails neither of the two', async () => {
    await upload(1);
    const id = await newSession('porter');
    const { resolve } = CatalogObject.prototype;
    const changes: Promise<Response>[] = [];
    vi.spyOn(CatalogObject.prototype, 'resolve').mockImplementation(async function late(this: CatalogObject, ...given) {
      changes.push(upload(2));
      await changes[0];
      return await resolve.apply(this, given);
    });
    // The message waits for the catalogue, and the change is answered before it is.
    pass(1_000);
    expect(await say(id, { 'x-manifest-revision': String(Date.now()) })).toBe(2);
    expect(await Promise.all(changes)).toMatchObject([{ status: 200 }]);
  });

  test('that was made elsewhere is seen at once with its number, and within the staleness without it', async () => {
    await upload(1);
    const [one, other] = [await newSession('porter'), await newSession('porter')];
    expect([await say(one), await say(other)]).toEqual([1, 1]);
    const revision = await uploadElsewhere(2);
    expect(await say(one)).toBe(1);
    expect(await say(one, { 'x-manifest-revision': String(revision) })).toBe(2);
    expect(await say(other)).toBe(2);
    await uploadElsewhere(3);
    pass(limits.manifestStalenessMs + 1);
    expect(await say(one)).toBe(2);
    await expect.poll(() => say(one)).toBe(3);
    await uploadElsewhere(4);
    pass(limits.manifestMaxAgeMs + 1);
    expect(await say(other)).toBe(4);
  });

  test('a removed agent answers no message after the maximum age', async () => {
    await upload(1);
    const id = await newSession('porter');
    await say(id);
    await here.CATALOGS.getByName('local').remove(null, { kind: 'agent', name: 'porter' });
    pass(limits.manifestMaxAgeMs + 1);
    const answer = await post(`/agent/session/${id}/message`, { content: 'Hello', stream: false });
    expect(await answer.json()).toMatchObject({ status: 'failed', error: { code: 'unknown_agent' } });
  });
});
