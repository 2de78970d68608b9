/** Facts about users over HTTP (C10): who reads and changes whose, and what is refused. */
import { beforeEach, describe, expect, test } from 'vitest';
import { EngineError } from '../../src/domain/errors.ts';
import { limits } from '../../src/domain/limits.ts';
import type { ResolvedAgent } from '../../src/domain/manifests/resolved.ts';
import { parseApiKeys } from '../../src/http/api-keys.ts';
import { Tokens } from '../../src/http/tokens.ts';
import type { UserToken } from '../../src/http/tokens.ts';
import { bundled } from '../support/bundled.ts';
import { checkedFetch } from '../support/response-check.ts';
import { userFactsKit } from '../support/user-facts.ts';
import type { UserFactsKit } from '../support/user-facts.ts';
import { edgeApp } from './edge-app.ts';

const NOW = 1_790_000_000_000;
const tokens = new Tokens(
  () => 'a secret for signing that nobody knows',
  () => NOW,
);

function agentOf(name: string): ResolvedAgent | null {
  const assistant = bundled.agent('assistant');
  if (assistant === null || !['keeper', 'b', 'plain'].includes(name)) return null;
  const { agent } = assistant;
  const facts = name === 'plain' ? {} : { facts: { max: 2, maxTokens: 200 } };
  return { ...assistant, agent: { ...agent, name, memory: { ...agent.memory, ...facts } } };
}

let facts: UserFactsKit;
let request: (method: string, path: string, credential: string, body?: unknown) => Promise<[number, unknown]>;

beforeEach(() => {
  facts = userFactsKit(() => NOW);
  const app = edgeApp({
    auth: { keys: parseApiKeys('ann:admin:k-ann,app:run:k-app@ann,bob:run:k-bob'), allowedOrigins: [] },
    tokens,
    now: () => NOW,
    agent: async (name) => agentOf(name),
    facts: {
      read: (of) => facts.read(of),
      change: (of, change) => facts.change(of, change),
      lookup: (of, call) => facts.lookup(of, call),
    },
  });
  const fetch = checkedFetch(app);
  request = async (method, path, credential, body) => {
    const init = { method, headers: { authorization: `Bearer ${credential}` } };
    const response = await fetch(
      new Request(`http://127.0.0.1${path}`, body === undefined ? init : { ...init, body: JSON.stringify(body) }),
    );
    return [response.status, await response.json()];
  };
});

const user = (change: Partial<UserToken> = {}): Promise<string> =>
  tokens.issue({
    type: 'user',
    userId: 'zoë',
    agents: null,
    surfaces: ['http'],
    owner: 'ann',
    scopes: ['read', 'message'],
    expiresAt: NOW + 60_000,
    ...change,
  });

const OF_ZOE = 'user_id=zo%C3%AB';
const put = (key: string, value: unknown, agent = 'keeper', of = OF_ZOE, credential = 'k-app') =>
  request('PUT', `/agent/${agent}/memory/${key}?${of}`, credential, { value });
const listed = async (path: string, credential = 'k-ann'): Promise<string[]> => {
  const [, body] = await request('GET', path, credential);
  return (body as { facts: { value: string }[] }).facts.map(({ value }) => value);
};

describe('[C10] facts over HTTP', () => {
  test('are written, listed and deleted', async () => {
    const fact = { key: 'colour', value: 'dark green', updated_at: NOW, session_id: null, run_id: null };
    expect(await put('colour', ' dark\ngreen ')).toEqual([200, fact]);
    await put('city', 'Rome');
    expect(await request('GET', `/agent/keeper/memory?${OF_ZOE}`, 'k-ann')).toEqual([
      200,
      { agent: 'keeper', user_id: 'zoë', facts: [{ ...fact, key: 'city', value: 'Rome' }, fact] },
    ]);
    const one = `/agent/keeper/memory/colour?${OF_ZOE}`;
    expect(await request('DELETE', one, 'k-app')).toMatchObject([200, { forgotten: 1 }]);
    expect(await request('DELETE', one, 'k-app')).toMatchObject([
      404,
      { code: 'unknown_fact', detail: 'There is no fact "colour" (known: city)' },
    ]);
    const all = `/agent/keeper/memory?${OF_ZOE}`;
    expect(await request('DELETE', all, 'k-app')).toMatchObject([200, { forgotten: 1 }]);
    expect(await request('DELETE', all, 'k-app')).toMatchObject([200, { forgotten: 0 }]);
    expect(await listed(all)).toEqual([]);
  });

  test('of users, agents and namespaces are apart, whatever their names are', async () => {
    await put('k', 'of zoë');
    await put('k', 'of another user', 'keeper', 'user_id=b%2Fc');
    await put('k', 'of another agent', 'b', 'user_id=c');
    await put('k', 'of another namespace', 'keeper', OF_ZOE, 'k-bob');
    expect(await listed(`/agent/keeper/memory?${OF_ZOE}`)).toEqual(['of zoë']);
    expect(await listed('/agent/keeper/memory?user_id=b/c')).toEqual(['of another user']);
    expect(await listed('/agent/b/memory?user_id=c')).toEqual(['of another agent']);
    expect(await listed(`/agent/keeper/memory?${OF_ZOE}`, 'k-bob')).toEqual(['of another namespace']);
  });

  test.each([
    ['GET', '/agent/nobody/memory', 404, 'unknown_agent'],
    ['PUT', `/agent/nobody/memory/k?${OF_ZOE}`, 404, 'unknown_agent'],
    ['GET', '/agent/keeper/memory', 400, 'invalid_request'],
    ['GET', '/agent/keeper/memory?user_id=', 400, 'invalid_request'],
    ['GET', '/agent/keeper/memory?user_id=a%00b', 400, 'invalid_request'],
    ['GET', `/agent/keeper/memory?${OF_ZOE}&user_id=b`, 400, 'invalid_request'],
    ['PUT', `/agent/keeper/memory/__proto__?${OF_ZOE}`, 400, 'invalid_request'],
    ['PUT', `/agent/keeper/memory/${'k'.repeat(limits.factKeyChars + 1)}?${OF_ZOE}`, 400, 'invalid_request'],
    ['DELETE', `/agent/keeper/memory/a%20b?${OF_ZOE}`, 400, 'invalid_request'],
    ['PUT', `/agent/plain/memory/k?${OF_ZOE}`, 400, 'invalid_request'],
  ])('%s %s is %s %s', async (method, path, status, code) => {
    const body = method === 'PUT' ? { value: 'x' } : undefined;
    expect(await request(method, path, 'k-ann', body)).toMatchObject([status, { code }]);
    expect(facts.changes).toEqual([]);
  });

  test.each([[{}], [{ value: '' }], [{ value: ' \n' }], [{ value: 7 }], [{ value: 'x', key: 'y' }]])(
    'the body %j is refused',
    async (body) => {
      const asked = await request('PUT', `/agent/keeper/memory/k?${OF_ZOE}`, 'k-ann', body);
      expect(asked).toMatchObject([400, { code: 'invalid_request' }]);
    },
  );

  test('a value of the greatest length is accepted, a longer one is not', async () => {
    expect((await put('k', 'x'.repeat(limits.factValueChars)))[0]).toBe(200);
    expect(await put('k', 'x'.repeat(limits.factValueChars + 1))).toMatchObject([400, { code: 'invalid_request' }]);
  });

  test('an agent that keeps no facts any more still shows and deletes them', async () => {
    const of = { owner: 'ann', agent: 'plain', userId: 'zoë' };
    const room = { facts: 5, chars: 500 };
    facts.storeOf(of).change({ type: 'remember', key: 'k', value: 'old', room, by: null });
    expect(await listed(`/agent/plain/memory?${OF_ZOE}`)).toEqual(['old']);
    expect((await request('DELETE', `/agent/plain/memory?${OF_ZOE}`, 'k-ann'))[0]).toBe(200);
    expect(facts.storeOf(of).read().facts).toEqual([]);
  });

  test('beyond the room of the manifest are refused with the keys', async () => {
    await put('a', '1');
    await put('b', '2');
    expect(await put('c', '3')).toMatchObject([
      409,
      { code: 'memory_full', detail: expect.stringContaining('2 facts are the limit; forget one first: a, b') },
    ]);
    expect((await put('b', '3'))[0]).toBe(200);
  });

  test('are unavailable if the store does not answer', async () => {
    facts.read = () => Promise.reject(new EngineError('memory_unavailable', 'no answer'));
    expect(await request('GET', `/agent/keeper/memory?${OF_ZOE}`, 'k-ann')).toMatchObject([
      503,
      { code: 'memory_unavailable' },
    ]);
  });
});

describe('[C10] a token', () => {
  test('of a user is for the facts of this user', async () => {
    const token = await user();
    expect((await request('PUT', '/agent/keeper/memory/k', token, { value: 'mine' }))[0]).toBe(200);
    await put('k', 'of bert', 'keeper', 'user_id=bert');
    expect(await listed('/agent/keeper/memory', token)).toEqual(['mine']);
    expect(await listed(`/agent/keeper/memory?${OF_ZOE}`, token)).toEqual(['mine']);
    for (const [method, path] of [
      ['GET', '/agent/keeper/memory?user_id=bert'],
      ['DELETE', '/agent/keeper/memory?user_id=bert'],
      ['PUT', '/agent/keeper/memory/k?user_id=bert'],
      ['DELETE', '/agent/keeper/memory/k?user_id=bert'],
    ] as const) {
      const body = method === 'PUT' ? { value: 'x' } : undefined;
      expect(await request(method, path, token, body)).toMatchObject([403, { code: 'forbidden' }]);
    }
    expect(await listed('/agent/keeper/memory?user_id=bert')).toEqual(['of bert']);
    expect((await request('DELETE', '/agent/keeper/memory', token))[0]).toBe(200);
    expect(await listed(`/agent/keeper/memory?${OF_ZOE}`)).toEqual([]);
  });

  test('[T1] that may change facts but not read them learns no key from an error', async () => {
    const reads = await user({ scopes: ['message', 'read'] });
    for (const scopes of [['message'], ['message', 'view']] as const) {
      const token = await user({ scopes: [...scopes] });
      for (const key of ['private_a', 'private_b']) {
        expect((await request('PUT', `/agent/keeper/memory/${key}`, token, { value: 'x' }))[0]).toBe(200);
      }
      for (const [method, code] of [
        ['DELETE', 'unknown_fact'],
        ['PUT', 'memory_full'],
      ] as const) {
        const ask = async (as: string): Promise<unknown> =>
          await request(method, '/agent/keeper/memory/other', as, method === 'PUT' ? { value: 'x' } : undefined);
        expect(await ask(token)).toMatchObject([expect.any(Number), { code }]);
        expect(JSON.stringify(await ask(token))).not.toContain('private_');
        expect(JSON.stringify(await ask(reads))).toContain('private_a, private_b');
      }
    }
  });
});
