/** The idempotency key of a new session belongs to a namespace (H1, T4). */
import { expect, test } from 'vitest';
import type { SessionRecord } from '../../src/domain/session.ts';
import { parseApiKeys } from '../../src/http/api-keys.ts';
import { bundled } from '../support/bundled.ts';
import { edgeApp } from './edge-app.ts';

test('[T4] keys of one namespace get the same session for an idempotency key, those of another one do not', async () => {
  const opened: SessionRecord[] = [];
  const app = edgeApp({
    auth: { keys: parseApiKeys('ann:run:k-ann,ann-app:run:k-app@ann,bob:run:k-bob'), allowedOrigins: [] },
    agent: async () => bundled.agent('assistant'),
    openSession: async (record) => {
      opened.push(record);
      return record;
    },
  });
  for (const key of ['k-ann', 'k-app', 'k-bob']) {
    const response = await app.request('/agent/assistant/session', {
      method: 'POST',
      body: '{}',
      headers: { authorization: `Bearer ${key}`, 'idempotency-key': 'one' },
    });
    expect(response.status).toBe(201);
  }
  const [ann, app2, bob] = opened.map(({ session_id: id, owner }) => [id, owner]);
  expect(app2).toEqual(ann);
  expect(bob?.[0]).not.toBe(ann?.[0]);
  expect([ann?.[1], bob?.[1]]).toEqual(['ann', 'bob']);
});
