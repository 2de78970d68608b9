/** Ids of users: one rule for new sessions, tokens and the list of sessions (T3, C6). */
import { expect, test } from 'vitest';
import { bundled } from '../support/bundled.ts';
import { limits } from '../../src/domain/limits.ts';
import { parseApiKeys } from '../../src/http/api-keys.ts';
import { Tokens } from '../../src/http/tokens.ts';
import { edgeApp } from './edge-app.ts';

const RULE = '1 to 256 characters, without control characters, in valid Unicode';
const app = edgeApp({
  auth: { keys: parseApiKeys('ann:run:k-ann'), allowedOrigins: [] },
  tokens: new Tokens(
    () => 's'.repeat(limits.tokenSecretChars),
    () => 0,
  ),
  agent: async (name) => bundled.agent(name),
  createSession: async () => undefined,
  directory: async () => ({ entries: [], next: null }),
});

async function ask(path: string, body?: object): Promise<{ status: number; detail?: string }> {
  const init = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) };
  const headers = { authorization: 'Bearer k-ann' };
  const response = await app.fetch(new Request(`http://127.0.0.1${path}`, { ...init, headers }));
  const { detail } = (await response.json()) as { detail?: string };
  return { status: response.status, ...(detail === undefined ? {} : { detail }) };
}

const inList = (id: string): string => `/sessions?user_id=${encodeURIComponent(id)}`;

test.each(['ann', 'é 😀'.repeat(64), '😀'.repeat(256), "' OR 1=1 --", '%00', '\u2028'])(
  '[T3] [C6] the user %j can have a session and a token, and is found',
  async (id) => {
    expect((await ask('/agent/assistant/session', { user_id: id })).status).toBe(201);
    expect((await ask('/tokens', { user_id: id })).status).toBe(201);
    expect((await ask(inList(id))).status).toBe(200);
  },
);

test.each(['', 'a\u0000b', 'a\nb', '\u007f', '\u0085', 'x'.repeat(257), '\ud800', 'a\udfff'])(
  '[T3] [C6] the user %j is refused everywhere, for the same reason',
  async (id) => {
    const refused = { status: 400, detail: expect.stringContaining(RULE) as string };
    expect(await ask('/agent/assistant/session', { user_id: id })).toEqual(refused);
    expect(await ask('/tokens', { user_id: id })).toEqual(refused);
    // A URL cannot contain the others.
    if (id.isWellFormed()) expect(await ask(inList(id))).toEqual(refused);
  },
);

test('[H1] a session without a user is not refused', async () => {
  for (const body of [{}, { user_id: null }]) expect((await ask('/agent/assistant/session', body)).status).toBe(201);
});
