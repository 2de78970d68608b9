/** The servers under which the MCP client is tested do what their options say. They are tested with the reference SDK. */
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { afterEach, describe, expect, test } from 'vitest';
import {
  INSTRUCTIONS,
  asksFor,
  changingSchema,
  circlingPages,
  endlessPages,
  hugeText,
  listed,
  manyTools,
} from './hostile-content.ts';
import { startHostileServer } from './hostile-server.ts';
import type { HostileServer, HostileServerOptions, Misbehaviour } from './hostile-server.ts';
import { closedAddress } from './loopback.ts';
import { startToolServer } from './tool-server.ts';
import type { ToolServer, ToolServerOptions } from './tool-server.ts';

const ends: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const end of ends.splice(0).toReversed()) await end();
});

async function connected(url: string, token?: string): Promise<Client> {
  const client = new Client(
    { name: 'test', version: '1.0.0' },
    { capabilities: { elicitation: { form: {}, url: {} } }, versionNegotiation: { mode: 'auto' } },
  );
  client.setRequestHandler('elicitation/create', () => ({
    action: 'accept',
    content: { confirm: true, password: 'p' },
  }));
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }));
  ends.push(async () => await client.close());
  return client;
}

async function good(options?: ToolServerOptions): Promise<ToolServer> {
  const server = await startToolServer(options);
  ends.push(server.close);
  return server;
}

async function hostile(options?: HostileServerOptions): Promise<HostileServer> {
  const server = await startHostileServer(options);
  ends.push(server.close);
  return server;
}

describe.each([
  ['both', '2026-07-28'],
  ['modern', '2026-07-28'],
  ['legacy', '2025-11-25'],
] as const)('the tool server that speaks %s', (speaks, version) => {
  test('answers, reports progress and asks', async () => {
    const server = await good({ speaks });
    const client = await connected(server.url);
    expect(client.getNegotiatedProtocolVersion()).toBe(version);
    expect((await client.listTools()).tools.map(({ name }) => name)).toContain('confirm');
    expect(await client.callTool({ name: 'add', arguments: { a: 1, b: 2 } })).toMatchObject({
      structuredContent: { sum: 3 },
    });
    expect(await client.callTool({ name: 'confirm', arguments: {} })).toMatchObject({
      content: [{ text: '{"action":"accept","content":{"confirm":true,"password":"p"}}' }],
    });
    const steps: number[] = [];
    server.progress.open();
    await client.callTool({ name: 'progress', arguments: {} }, { onprogress: ({ progress }) => steps.push(progress) });
    expect(steps).toEqual([1, 2, 3]);
    expect(server.recording.count('tools/list')).toBe(1);
    expect(Object.fromEntries(server.calls)).toEqual({ add: 1, confirm: 1, progress: 1 });
  });

  test('records a cancelled call', async () => {
    const server = await good({ speaks });
    const client = await connected(server.url);
    const abort = new AbortController();
    const call = client.callTool({ name: 'slow', arguments: { text: 'x' } }, { signal: abort.signal });
    await server.slow.arrived();
    abort.abort();
    await expect(call).rejects.toThrow();
    await server.recording.until(
      (recording) =>
        recording.count('notifications/cancelled') > 0 || recording.of('tools/call').some(({ wasCut }) => wasCut),
    );
    expect(server.calls.has('slow')).toBe(false);
  });

  test('changes its list', async () => {
    const server = await good({ speaks });
    const before = await (await connected(server.url)).listTools();
    server.changeList();
    const after = await (await connected(server.url)).listTools();
    expect(after.tools.length - before.tools.length).toBe(1);
  });
});

test('the tool server requires its token', async () => {
  const server = await good({ token: 'secret' });
  await expect(connected(server.url)).rejects.toThrow();
  const { tools } = await (await connected(server.url, 'secret')).listTools();
  expect(tools.map(({ name }) => name)).toContain('echo');
});

test('the tool server forgets its sessions', async () => {
  const server = await good({ speaks: 'legacy' });
  const client = await connected(server.url);
  server.forgetSessions();
  await expect(client.listTools()).rejects.toThrow(/not found/i);
});

describe.each(['modern', 'legacy'] as const)('the hostile server that speaks %s', (speaks) => {
  test('answers without a misbehaviour', async () => {
    const server = await hostile({ speaks });
    const client = await connected(server.url);
    expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(['work']);
    expect(await client.callTool({ name: 'work', arguments: {} })).toMatchObject({ content: [{ text: 'done' }] });
  });

  test.each([
    { kind: 'status', status: 503, headers: { 'retry-after': '1' } },
    { kind: 'invalid_json' },
    { kind: 'wrong_content_type' },
    { kind: 'disconnect' },
  ] satisfies Misbehaviour[])('answers with $kind', async (misbehaviour) => {
    const server = await hostile({ speaks });
    const client = await connected(server.url);
    server.misbehave('tools/call', misbehaviour);
    await expect(client.callTool({ name: 'work', arguments: {} })).rejects.toThrow();
    server.misbehave('tools/call', null);
    expect(await client.callTool({ name: 'work', arguments: {} })).toMatchObject({
      content: [{ type: 'text', text: 'done' }],
    });
  });

  test.each(['silent', 'wrong_id', 'endless_stream', 'endless_progress'] as const)(
    'does not answer: %s',
    async (kind) => {
      const server = await hostile({ speaks });
      const client = await connected(server.url);
      server.misbehave('tools/call', { kind });
      const abort = new AbortController();
      const reported = Promise.withResolvers<void>();
      const call = client.callTool(
        { name: 'work', arguments: {} },
        { signal: abort.signal, onprogress: () => reported.resolve() },
      );
      await server.recording.until((recording) => recording.count('tools/call') > 0);
      if (kind === 'endless_progress') await reported.promise;
      abort.abort();
      await expect(call).rejects.toThrow();
    },
  );

  test('asks for a secret', async () => {
    const server = await hostile({ speaks, results: { work: asksFor('password') } });
    const client = await connected(server.url);
    await client.callTool({ name: 'work', arguments: {} });
    expect(server.replies).toMatchObject([{ action: 'accept', content: { password: 'p' } }]);
  });
});

test('the hostile server lists 10,000 tools', async () => {
  const server = await hostile({ list: manyTools });
  expect((await (await connected(server.url)).listTools()).tools.length).toBe(10_000);
});

test('its pages have no end', () => {
  expect(endlessPages(null).nextCursor).not.toBe(endlessPages('1').nextCursor);
  expect(circlingPages().nextCursor).toBe('again');
});

test('it changes a schema between two lists', async () => {
  const server = await hostile({ list: changingSchema });
  const lists = [];
  for (let n = 0; n < 2; n += 1) lists.push((await (await connected(server.url)).listTools()).tools[0]?.description);
  expect(lists).toEqual(['Takes first.', 'Takes second.']);
});

test('it sends what is large', async () => {
  const server = await hostile({
    list: () => ({ tools: [listed('work', INSTRUCTIONS)] }),
    results: { work: hugeText() },
  });
  const client = await connected(server.url);
  expect((await client.listTools()).tools[0]?.description?.length).toBeGreaterThan(200_000);
  const { content } = await client.callTool({ name: 'work', arguments: {} });
  expect(JSON.stringify(content).length).toBeGreaterThan(20_000_000);
});

test('it restarts: sessions are unknown', async () => {
  const server = await hostile({ speaks: 'legacy' });
  const client = await connected(server.url);
  server.restart();
  await expect(client.callTool({ name: 'work', arguments: {} })).rejects.toThrow(/not found/i);
});

test('a closed port refuses connections', async () => {
  await expect(connected(await closedAddress())).rejects.toThrow();
});
