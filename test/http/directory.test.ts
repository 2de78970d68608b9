/** The list of sessions over HTTP (C6): what each kind of caller asks the directory for. */
import { describe, expect, test } from 'vitest';
import type { DirectoryEntry, DirectoryPage } from '../../src/domain/directory.ts';
import { EngineError } from '../../src/domain/errors.ts';
import { parseApiKeys } from '../../src/http/api-keys.ts';
import { Tokens } from '../../src/http/tokens.ts';
import type { UserToken } from '../../src/http/tokens.ts';
import { edgeApp } from './edge-app.ts';

const NOW = 1_790_000_000_000;
const ID = `ses_${'1'.repeat(32)}`;
const tokens = new Tokens(
  () => 'a secret for signing that nobody knows',
  () => NOW,
);
const ENTRY: DirectoryEntry = {
  session_id: ID,
  agent: 'assistant',
  user_id: 'Zoë',
  title: 'Hello',
  status: 'idle',
  created_at: 1,
  updated_at: 2,
  cost: null,
};

let asked: (readonly [owner: string | null, page: DirectoryPage])[] = [];
let answer: () => { entries: DirectoryEntry[]; next: { at: number; id: string } | null } = () => ({
  entries: [ENTRY],
  next: null,
});
const app = edgeApp({
  auth: { keys: parseApiKeys('ann:admin:k-ann,app:run:k-app@ann,bob:run:k-bob'), allowedOrigins: [] },
  tokens,
  now: () => NOW,
  directory: async (...given) => {
    asked.push(given);
    return answer();
  },
});

async function list(credential: string, search = ''): Promise<{ status: number; body: Record<string, unknown> }> {
  asked = [];
  const headers = { authorization: `Bearer ${credential}` };
  const response = await app.fetch(new Request(`http://127.0.0.1/sessions${search}`, { headers }));
  return { status: response.status, body: (await response.json()) as Record<string, unknown> };
}

const user = (change: Partial<UserToken> = {}): Promise<string> =>
  tokens.issue({
    type: 'user',
    userId: 'Zoë',
    agents: null,
    surfaces: ['http'],
    owner: 'ann',
    scopes: ['read'],
    expiresAt: NOW + 60_000,
    ...change,
  });

const ALL: DirectoryPage = { limit: 100, before: null, userId: null, agents: null, status: null };

describe('[C6] an API key', () => {
  test.each(['k-ann', 'k-app'])('lists all sessions of its namespace (%s)', async (key) => {
    expect(await list(key)).toEqual({ status: 200, body: { sessions: [ENTRY], next: null } });
    expect(asked).toEqual([['ann', ALL]]);
  });

  test('of another namespace asks for that one', async () => {
    await list('k-bob');
    expect(asked).toEqual([['bob', ALL]]);
  });

  test('filters, and continues after the last page', async () => {
    const filters = `?user_id=${encodeURIComponent('Zoë & co')}&agent=writer&status=waiting&limit=2&before=17-${ID}`;
    answer = () => ({ entries: [ENTRY], next: { at: 2, id: ID } });
    expect((await list('k-ann', filters)).body).toMatchObject({ next: `2-${ID}` });
    const page = { limit: 2, before: { at: 17, id: ID }, userId: 'Zoë & co', agents: ['writer'], status: 'waiting' };
    expect(asked).toEqual([['ann', page]]);
  });

  test.each(['?status=completed', '?before=17', `?before=17-run_${'1'.repeat(32)}_1`, '?limit=101', '?users=ann'])(
    'is refused with %s',
    async (search) => {
      expect(await list('k-ann', search)).toMatchObject({ status: 400, body: { code: 'invalid_request' } });
      expect(asked).toEqual([]);
    },
  );

  test('gets no list, rather than a part of it, while a shard is away', async () => {
    answer = () => {
      throw new EngineError('directory_unavailable', '1 of 16 parts of the list did not answer');
    };
    expect(await list('k-ann')).toMatchObject({ status: 503, body: { code: 'directory_unavailable' } });
  });
});

describe('[C6] a user token', () => {
  test('lists the sessions of its user only, whether it names the user or not', async () => {
    answer = () => ({ entries: [ENTRY], next: null });
    for (const search of ['', `?user_id=${encodeURIComponent('Zoë')}`]) {
      expect((await list(await user(), search)).status).toBe(200);
      expect(asked).toEqual([['ann', { ...ALL, userId: 'Zoë' }]]);
    }
  });

  test.each(['bob', 'Zo', 'zoë'])('is forbidden to ask for the user %s', async (name) => {
    const refused = await list(await user(), `?user_id=${encodeURIComponent(name)}`);
    expect(refused).toMatchObject({ status: 403, body: { code: 'forbidden' } });
    expect(asked).toEqual([]);
  });

  test('sees the sessions with its agents only', async () => {
    const token = await user({ agents: ['assistant', 'writer'] });
    await list(token);
    expect(asked).toEqual([['ann', { ...ALL, userId: 'Zoë', agents: ['assistant', 'writer'] }]]);
    await list(token, '?agent=writer');
    expect(asked).toEqual([['ann', { ...ALL, userId: 'Zoë', agents: ['writer'] }]]);
    expect(await list(token, '?agent=secretary')).toMatchObject({ status: 403, body: { code: 'forbidden' } });
    expect(asked).toEqual([]);
  });
});
