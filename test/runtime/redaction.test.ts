/** What leaves through each protocol is redacted (C9). The demo model says what it computes; the pattern hides it. */
import { beforeAll, describe, expect, test } from 'vitest';
import type { Env } from '../../src/durable/env.ts';
import { connect } from '../support/mcp-client.ts';
import { here } from './bindings.ts';
import { call, manifest, newSession, post, upload } from './client.ts';
import { ask, fetchWith } from './keyed.ts';

const QUESTION = 'What is 1234 * 4321?';
const HIDDEN = '1234 * 4321';
const KEEPER = manifest(
  'Agent',
  'redacted',
  `persona: You compute.\nimport: {tools: [calculator]}\nredact: ['\\b1234 \\* 4321\\b']`,
);
const user = { role: 'user', content: QUESTION };
const parts = [{ type: 'text', text: QUESTION }];

beforeAll(() => upload(KEEPER));

const REQUESTS: readonly (readonly [string, string, object])[] = [
  ['chat completions', '/v1/chat/completions', { model: 'redacted', messages: [user] }],
  ['streamed responses', '/v1/responses', { model: 'redacted', input: QUESTION, stream: true }],
  ['the AI SDK', '/ai/redacted/chat', { id: 'redacted-chat', messages: [{ id: 'm', role: 'user', parts }] }],
  [
    'AG-UI',
    '/agui/redacted',
    { threadId: 'redacted-thread', runId: 'r', messages: [{ id: 'm', ...user }], tools: [], context: [], state: {} },
  ],
];

describe('[C9] an answer with a match', () => {
  test('is what the agent would say without a pattern', async () => {
    const response = await post('/v1/chat/completions', { model: 'assistant', messages: [user] });
    expect(await response.text()).toContain(HIDDEN);
  });

  test.each(REQUESTS)('is redacted for %s', async (_name, path, body) => {
    const response = await post(path, body, { accept: 'text/event-stream, application/json' });
    const text = await response.text();
    expect([response.status, text]).toEqual([200, expect.stringContaining('redacted')]);
    expect(text).not.toContain(HIDDEN);
  });

  test('is redacted in our own protocol: the stream, the document, the history and the export', async () => {
    const id = await newSession('redacted');
    const streamed = await (await post(`/agent/session/${id}/message`, { content: QUESTION })).text();
    const paths = ['runs', 'history', 'events', 'export', 'transcript', 'artifacts'];
    const read = await Promise.all(
      paths.map(async (path) => await (await call(`/agent/session/${id}/${path}?follow=false`)).text()),
    );
    const all = [streamed, ...read].join('\n');
    expect(all).toContain('[redacted]');
    expect(all).not.toContain(HIDDEN);
  });

  test('is redacted for clients of MCP', async () => {
    const env: Env = { ...here, API_KEYS: 'ann:admin:k-ann@ann' };
    expect((await ask(env, 'k-ann', 'PUT', '/manifests/agent/redacted', KEEPER)).status).toBe(201);
    const client = await connect({
      url: 'http://127.0.0.1:8787/mcp',
      mode: 'auto',
      key: 'k-ann',
      fetch: async (url, init) => await fetchWith(env, new URL(url).pathname, init),
    });
    const result = JSON.stringify(await client.callTool({ name: 'redacted', arguments: { message: QUESTION } }));
    expect(result).toContain('redacted');
    expect(result).not.toContain(HIDDEN);
    await client.close();
  });
});

test('[C9] with an invalid pattern in REDACT, the Worker answers no requests', async () => {
  const asked = fetchWith({ ...here, REDACT: '["a+"]' }, '/health');
  await expect(asked).rejects.toThrow('REDACT must be a list of patterns');
});
