/** What leaves through each protocol is redacted (C9). The demo model says what it computes; the pattern hides it. */
import { createExecutionContext } from 'cloudflare:test';
import { beforeAll, describe, expect, test } from 'vitest';
import { edge } from '../../src/durable/edge.ts';
import type { Env } from '../../src/durable/env.ts';
import { connect } from '../support/mcp-client.ts';
import { here } from './bindings.ts';
import { call, newSession, post } from './client.ts';
import { eventually } from '../support/eventually.ts';

const QUESTION = 'What is 1234 * 4321?';
const HIDDEN = '1234 * 4321';
const KEEPER = `kind: Agent
version: "1.0"
name: keeper
summary: Computes, and says nothing.
persona: {agent: You compute.}
import: {tools: [calculator]}
redact: ['\\b1234 \\* 4321\\b']
`;
const user = { role: 'user', content: QUESTION };
const parts = [{ type: 'text', text: QUESTION }];

beforeAll(async () => {
  expect((await call('/manifests/agent/keeper', { method: 'PUT', body: KEEPER })).status).toBeLessThan(300);
});

const REQUESTS: readonly (readonly [string, string, object])[] = [
  ['chat completions', '/v1/chat/completions', { model: 'keeper', messages: [user] }],
  ['streamed chat completions', '/v1/chat/completions', { model: 'keeper', messages: [user], stream: true }],
  ['responses', '/v1/responses', { model: 'keeper', input: QUESTION }],
  ['streamed responses', '/v1/responses', { model: 'keeper', input: QUESTION, stream: true }],
  ['the AI SDK', '/ai/keeper/chat', { id: 'redacted-chat', messages: [{ id: 'm', role: 'user', parts }] }],
  [
    'AG-UI',
    '/agui/keeper',
    {
      threadId: 'redacted-thread',
      runId: 'r',
      messages: [{ id: 'm', ...user }],
      tools: [],
      context: [],
      state: {},
      forwardedProps: {},
    },
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
    const id = await newSession('keeper');
    const streamed = await (await post(`/agent/session/${id}/message`, { content: QUESTION })).text();
    const paths = ['runs', 'history', 'events', 'export', 'transcript', 'artifacts'];
    const read = await Promise.all(
      paths.map(async (path) => await (await call(`/agent/session/${id}/${path}?follow=false`)).text()),
    );
    const all = [streamed, ...read].join('\n');
    expect(all).toContain('[redacted]');
    expect(all).not.toContain(HIDDEN);
  });

  const shownOf = async (id: string): Promise<string> => {
    const paths = ['state', 'history', 'export', 'runs'];
    const read = await Promise.all(
      paths.map(async (path) => await (await call(`/agent/session/${id}/${path}`)).text()),
    );
    return read.join('\n');
  };
  const titleOf = async (id: string): Promise<string | null | undefined> => {
    let title: string | null | undefined;
    await eventually(async () => {
      const listed = await call('/sessions?agent=keeper&limit=100');
      const { sessions } = await listed.json<{ sessions: { session_id: string; title: string | null }[] }>();
      ({ title } = sessions.find(({ session_id: one }) => one === id) ?? {});
      // Null: it has no title yet.
      expect(title === undefined ? 'not listed' : 'listed').toBe('listed');
    });
    return title;
  };

  test('is redacted before the first run of a session: its state, history, export and title', async () => {
    const id = await newSession('keeper', {
      initial_state: { v: HIDDEN },
      history: [{ role: 'user', content: `Q ${HIDDEN}` }],
    });
    const shown = await shownOf(id);
    expect(shown).toContain('Q [redacted]');
    expect(shown).toContain('"v":"[redacted]"');
    expect(shown).not.toContain(HIDDEN);
    expect(shown).not.toContain('redact"');
    expect(await titleOf(id)).toBe('Q [redacted]');
  });

  test('is redacted in a fork, before and after its own first run', async () => {
    const id = await newSession('keeper');
    await (await post(`/agent/session/${id}/message`, { content: QUESTION })).text();
    const { session_id: fork } = await (await post(`/agent/session/${id}/fork`, {})).json<{ session_id: string }>();
    expect(await shownOf(fork)).not.toContain(HIDDEN);
    expect(await shownOf(fork)).toContain('What is [redacted]?');
    expect(await titleOf(fork)).toBe('What is [redacted]?');
    const { session_id: second } = await (await post(`/agent/session/${fork}/fork`, {})).json<{ session_id: string }>();
    expect(await shownOf(second)).not.toContain(HIDDEN);
    await (await post(`/agent/session/${fork}/message`, { content: QUESTION })).text();
    expect(await shownOf(fork)).not.toContain(HIDDEN);
  });

  test('is redacted for clients of MCP', async () => {
    const env: Env = { ...here, API_KEYS: 'ann:admin:k-ann@ann' };
    const fetched = async (url: string | URL, init?: RequestInit): Promise<Response> => {
      const request = new Request(url, init) as Request<unknown, IncomingRequestCfProperties>;
      const response = await edge.fetch?.(request, env, createExecutionContext());
      if (response === undefined) throw new Error('the Worker has no fetch');
      return response;
    };
    const headers = { authorization: 'Bearer k-ann' };
    await fetched('http://127.0.0.1:8787/manifests/agent/keeper', { method: 'PUT', body: KEEPER, headers });
    const client = await connect({ url: 'http://127.0.0.1:8787/mcp', mode: 'auto', key: 'k-ann', fetch: fetched });
    const result = JSON.stringify(await client.callTool({ name: 'keeper', arguments: { message: QUESTION } }));
    expect(result).toContain('redacted');
    expect(result).not.toContain(HIDDEN);
    await client.close();
  });
});

describe('[C9] REDACT', () => {
  const ask = async (env: Env): Promise<Response | undefined> => {
    const request = new Request('http://127.0.0.1:8787/v1/chat/completions', {
      method: 'POST',
      body: JSON.stringify({ model: 'assistant', messages: [user] }),
      headers: { 'content-type': 'application/json' },
    }) as Request<unknown, IncomingRequestCfProperties>;
    return await edge.fetch?.(request, env, createExecutionContext());
  };

  test('with an invalid pattern, the Worker answers no requests', async () => {
    await expect(ask({ ...here, REDACT: '["a+"]' })).rejects.toThrow('REDACT must be a list of patterns');
  });
});
