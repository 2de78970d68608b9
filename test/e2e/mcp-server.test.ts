/** Unchanged clients of the Model Context Protocol, and its inspector against a real system (E4). */
import { join } from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { PACKAGE_ROOT } from '../../cli/project/folders.ts';
import { connect, textOf } from '../support/mcp-client.ts';
import { outputOf } from '../support/mcp-referee.ts';
import { sharedNamespace } from '../support/shared.ts';
import type { Namespace } from '../support/shared.ts';
import { eventually } from '../support/eventually.ts';

let system: Namespace;
let url = '';
const HEADERS = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
beforeAll(async () => {
  system = await sharedNamespace();
  url = `${system.url}/mcp`;
});

test.each(['legacy', 'pinned'] as const)('[E4] a client in mode %s calls an agent', async (mode) => {
  const mcp = await connect({ url, mode, key: system.key });
  const result = await mcp.callTool({ name: 'assistant', arguments: { message: 'What is 6 * 7?' } });
  expect(textOf(result)).toContain('42');
  await mcp.close();
});

/** One mode for each revision: it takes two heartbeats until a closed stream is noticed here. */
test.each(['legacy', 'pinned'] as const)('[E4] a client in mode %s that leaves cancels its run', async (mode) => {
  const mcp = await connect({ url, mode, key: system.key });
  const leave = new AbortController();
  const before = await cancelled();
  const called = mcp.callTool(
    { name: 'assistant', arguments: { message: 'wait 20 seconds' } },
    { signal: leave.signal, onprogress: ({ message }) => message === 'echo started' && leave.abort() },
  );
  await expect(called).rejects.toThrow();
  await eventually(async () => expect(await cancelled()).toBe(before + 1));
});

async function cancelled(): Promise<number> {
  const response = await fetch(`${system.url}/executions?status=cancelled`, { headers: system.authorization });
  return ((await response.json()) as { executions: unknown[] }).executions.length;
}

test('[E4] a client that floods gets answers and errors, and the system goes on', async () => {
  const call = (id: number): Promise<number> =>
    fetch(url, {
      method: 'POST',
      headers: { ...HEADERS, ...system.authorization },
      body: JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params: { name: `no-tool-${id}` } }),
    }).then(async (response) => {
      expect(await response.text()).toContain('unknown_manifest');
      return response.status;
    });
  const statuses = await Promise.all(Array.from({ length: 200 }, (_, id) => call(id)));
  expect(new Set(statuses)).toEqual(new Set([200]));
  expect((await fetch(`${system.url}/health`)).status).toBe(200);
});

test('[E4] a page of another origin gets nothing', async () => {
  const headers = { ...HEADERS, ...system.authorization, origin: 'https://evil.example.com' };
  const params = { name: 'assistant', arguments: { message: 'hi' } };
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params });
  const response = await fetch(url, { method: 'POST', headers, body });
  expect([response.status, response.headers.get('access-control-allow-origin')]).toEqual([403, null]);
});

test('[E4] the CLI of the inspector calls an agent', async () => {
  const program = join(PACKAGE_ROOT, 'node_modules/.bin/inspector');
  const server = ['--cli', url, '--transport', 'http', '--header', `Authorization: Bearer ${system.key}`];
  const call = ['--method', 'tools/call', '--tool-name', 'assistant', '--tool-arg', 'message=What is 6 * 7?'];
  const called = await outputOf(program, [...server, ...call], PACKAGE_ROOT);
  expect(JSON.parse(called)).toMatchObject({ structuredContent: { status: 'completed' } });
  expect(called).toContain('42');
});
