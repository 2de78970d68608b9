/** The Model Context Protocol with its unchanged client, with requests that no client sends, and with servers of others (E4, E5). */
import type { CallToolResult, Client, ElicitResult } from '@modelcontextprotocol/client';
import { beforeAll, describe, expect, test, vi } from 'vitest';
import type { Env } from '../../src/durable/env.ts';
import { QuarantineSlots } from '../../src/engine/replay/quarantine-slots.ts';
import type { RunResult } from '../../src/view/result.ts';
import { connect, textOf } from '../support/mcp-client.ts';
import type { McpClientOptions, Mode } from '../support/mcp-client.ts';
import { here } from './bindings.ts';
import { manifest } from './client.ts';
import { ask, fetchWith } from './keyed.ts';
import { eventually } from '../support/eventually.ts';
import { mcpAccess } from '../../src/durable/mcp.ts';
import type { ResolvedAgent } from '../../src/domain/manifests/resolved.ts';

const ENV: Env = {
  ...here,
  SESSION_TOKEN_SECRET: 'a-secret-of-this-test-that-is-long-enough',
  API_KEYS: 'red:admin:k-red@red,blue:admin:k-blue@blue',
};
const RED = 'k-red';
const BLUE = 'k-blue';

const tool = (name: string, entrypoint: string, more: string): string =>
  manifest('Tool', name, `implementation: {type: builtin, entrypoint: ${entrypoint}}\n${more}`);
const MANIFESTS = [
  tool('seal', 'echo', 'parameters: {text: string}\napproval: always\nexpose: mcp'),
  tool('sum', 'calculator', 'parameters: {expression: string}\neffects: pure\nexpose: mcp'),
  tool('hidden', 'echo', 'parameters: {text: string}'),
  tool('picture', 'echo', 'parameters: {type: object, additionalProperties: true}\neffects: pure\nexpose: mcp'),
  manifest('Agent', 'sealer', 'persona: You seal.\nimport: {tools: [seal, sum, hidden, picture, echo]}'),
  manifest(
    'Workflow',
    'doubled',
    'inputs: {n: integer}\nexpose: mcp\nsteps:\n  - {name: s, type: tool, target: sum, parameters: {expression: "$(trigger.n) * 2"}}\noutputs: {result: steps.s}',
  ),
  manifest(
    'Workflow',
    'careful',
    'inputs: {ms: integer}\nexpose: mcp\nsteps:\n  - {name: w, type: tool, target: echo, parameters: {message: waited, delay_ms: "$(trigger.ms)"}}\n  - {name: s, type: tool, target: seal, parameters: {text: wax}}\noutputs: {sealed: steps.s.text}',
  ),
];

const fetched = (path: string, init?: RequestInit): Promise<Response> => fetchWith(ENV, path, init);

const headersOf = (key: string): Record<string, string> => ({
  authorization: `Bearer ${key}`,
  'content-type': 'application/json',
});

const askJson = async <T>(key: string, method: string, path: string, body?: unknown): Promise<T> =>
  await (await ask(ENV, key, method, path, body)).json<T>();

const client = (mode: Mode, more: Partial<McpClientOptions> = {}): Promise<Client> =>
  connect({
    url: 'http://127.0.0.1:8787/mcp',
    mode,
    key: RED,
    fetch: async (url, init) => await fetched(new URL(url).pathname, init),
    ...more,
  });

interface Rpc {
  readonly result?: Record<string, unknown>;
  readonly error?: { readonly code: number; readonly message: string; readonly data?: Record<string, unknown> };
}

interface RpcOptions {
  readonly key?: string;
  readonly capabilities?: object;
  readonly headers?: Record<string, string>;
  readonly signal?: AbortSignal;
}

/** One request of revision 2026-07-28. */
async function send(method: string, params: Record<string, unknown>, options: RpcOptions = {}): Promise<Response> {
  const { key = RED, capabilities = {}, headers = {}, signal } = options;
  const name = String(params['name'] ?? params['uri'] ?? params['taskId'] ?? '');
  const meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': capabilities,
    ...(params['_meta'] as object | undefined),
  };
  return await fetched('/mcp', {
    method: 'POST',
    headers: {
      ...headersOf(key),
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': method,
      ...(name === '' ? {} : { 'mcp-name': name }),
      ...headers,
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { ...params, _meta: meta } }),
    ...(signal === undefined ? {} : { signal }),
  });
}

async function rpc(method: string, params: Record<string, unknown>, options?: RpcOptions): Promise<Rpc> {
  const response = await send(method, params, options);
  const text = await response.text();
  const data = /^data: (.*)$/m.exec(text.slice(text.lastIndexOf('data: ')))?.[1];
  return JSON.parse(data ?? text) as Rpc;
}

const structured = ({ structuredContent }: CallToolResult): Record<string, string> =>
  structuredContent as Record<string, string>;

const ELICITS = { elicitation: { form: {} } };
const TASKS = { extensions: { 'io.modelcontextprotocol/tasks': {} } };

async function tokenOf(key: string, more: object): Promise<string> {
  const surfaces = ['mcp'];
  return (await askJson<{ token: string }>(key, 'POST', '/tokens', { user_id: 'ann', surfaces, ...more })).token;
}

beforeAll(async () => {
  vi.spyOn(QuarantineSlots.prototype, 'delayOf').mockReturnValue(0);
  for (const key of [RED, BLUE]) {
    const files = Object.fromEntries(MANIFESTS.map((text, at) => [`${at}.yaml`, text]));
    const { problems } = await askJson<{ problems: unknown[] }>(key, 'PUT', '/manifests', { files });
    expect(problems).toEqual([]);
  }
});

// All three: test/e2e/mcp-server.test.ts.
describe.each(['legacy', 'pinned'] as const)('[E4] a client in mode %s', (mode) => {
  test('lists agents, exposed tools and workflows, with hints', async () => {
    const { tools } = await (await client(mode)).listTools();
    const names = tools.map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(['assistant', 'sealer', 'seal', 'sum', 'doubled']));
    expect(names).not.toContain('hidden');
    expect(tools.find(({ name }) => name === 'sum')?.annotations).toMatchObject({ readOnlyHint: true });
    expect(tools.find(({ name }) => name === 'assistant')?.inputSchema).toMatchObject({ required: ['message'] });
  });

  test('calls an agent, is told how far it is, and goes on in its session', async () => {
    const mcp = await client(mode);
    const seen: number[] = [];
    const first = await mcp.callTool(
      { name: 'assistant', arguments: { message: 'Remember my color is teal' } },
      { onprogress: ({ progress }) => void seen.push(progress) },
    );
    expect(structured(first)).toMatchObject({ status: 'completed' });
    expect(seen.length).toBeGreaterThan(1);
    expect(seen).toEqual(seen.toSorted((a, b) => a - b));
    const { session_id: session = '' } = structured(first);
    const message = 'What is my color?';
    const second = await mcp.callTool({ name: 'assistant', arguments: { message, session } });
    expect([textOf(second).includes('teal'), structured(second)['session_id']]).toEqual([true, session]);
  });

  test('runs a tool and a workflow', async () => {
    const mcp = await client(mode);
    expect(textOf(await mcp.callTool({ name: 'sum', arguments: { expression: '2+3' } }))).toBe('5');
    const doubled = await mcp.callTool({ name: 'doubled', arguments: { n: 21 } });
    expect([textOf(doubled), doubled.structuredContent]).toEqual(['{"result":42}', { result: 42 }]);
  });

  test('gets errors with their codes', async () => {
    const mcp = await client(mode);
    const call = (name: string, args: Record<string, unknown>): Promise<CallToolResult> =>
      mcp.callTool({ name, arguments: args });
    await expect(call('asistant', { message: 'x' })).rejects.toMatchObject({
      code: -32_602,
      message: expect.stringContaining('did you mean "assistant"'),
    });
    await expect(call('hidden', { text: 'x' })).rejects.toMatchObject({ data: { code: 'unknown_manifest' } });
    for (const [name, args, text] of [
      ['assistant', { mesage: 'x' }, /^invalid_request: .*did you mean "message"/],
      ['assistant', { message: ' ' }, /^invalid_request: /],
      ['assistant', { message: 'x', session: `ses_${'0'.repeat(32)}` }, /^unknown_session: /],
      ['sum', { wrong: 1 }, /^\w+: .*expression/],
      ['doubled', { n: 'many' }, /^invalid_request: .*n/],
    ] as const) {
      const result = await call(name, args);
      expect([result.isError, textOf(result)]).toEqual([true, expect.stringMatching(text)]);
    }
  });

  test('reads the artifacts that a result links to', async () => {
    const mcp = await client(mode);
    const files = [{ name: 'a.csv', content_type: 'text/csv', text: 'a,b' }];
    const { content } = await mcp.callTool({ name: 'picture', arguments: { files } });
    const link = content.find(({ type }) => type === 'resource_link');
    const uri = link?.type === 'resource_link' ? link.uri : '';
    const [read] = (await mcp.readResource({ uri })).contents;
    expect(read).toMatchObject({ uri, text: 'a,b' });
    await expect(mcp.readResource({ uri: uri.replace(/art_.*/, 'art_99') })).rejects.toThrow();
    const blue = await client(mode, { key: BLUE });
    await expect(blue.readResource({ uri })).rejects.toThrow();
  });
});

describe('[E4] an approval', () => {
  const accept = (approved: boolean): ElicitResult => ({ action: 'accept', content: { approved } });

  test.each(['auto', 'pinned'] as const)('is asked for in mode %s, and the same run goes on', async (mode) => {
    const questions: string[] = [];
    const decide = (request: { params: { message?: string } }): ElicitResult => {
      questions.push(request.params.message ?? '');
      return accept(true);
    };
    const mcp = await client(mode, { decide });
    expect((await mcp.callTool({ name: 'seal', arguments: { text: 'wax' } })).structuredContent).toEqual({
      text: 'wax',
    });
    expect(questions).toEqual(['Approve this call? seal {"text":"wax"}']);
  });

  test.each([
    ['declined', { action: 'decline' }],
    ['accepted without approval', accept(false)],
  ] as const)('that is %s is denied', async (_, response) => {
    const mcp = await client('pinned', { decide: () => response });
    const result = await mcp.callTool({ name: 'seal', arguments: { text: 'wax' } });
    expect([result.isError, textOf(result)]).toEqual([true, expect.stringContaining('denied')]);
  });

  test('is a text for a client that cannot ask, which a person decides elsewhere', async () => {
    for (const mode of ['legacy', 'pinned'] as const) {
      const result = await (await client(mode)).callTool({ name: 'seal', arguments: { text: 'wax' } });
      const { session_id: session = '', run_id: run = '', status } = structured(result);
      const [approval] = /apr_[0-9a-f]+/.exec(textOf(result)) ?? [];
      expect(status).toBe('waiting');
      await askJson(RED, 'POST', `/agent/session/${session}/approvals/${approval}`, { decision: 'approve' });
      await eventually(async () => {
        const { status: ended } = await askJson<RunResult>(RED, 'GET', `/agent/session/${session}/runs/${run}`);
        expect(ended).toBe('completed');
      });
    }
  });

  const call = { name: 'seal', arguments: { text: 'wax' } };
  async function waiting(key = RED): Promise<{ readonly requestState: string; readonly approval: string }> {
    const { result } = await rpc('tools/call', call, { key, capabilities: ELICITS });
    expect(result?.['resultType']).toBe('input_required');
    const [approval = ''] = Object.keys(result?.['inputRequests'] as object);
    return { requestState: String(result?.['requestState']), approval };
  }
  const answered = (
    { requestState, approval }: Awaited<ReturnType<typeof waiting>>,
    options: RpcOptions = {},
    more: object = {},
  ): Promise<Rpc> =>
    rpc(
      'tools/call',
      { ...call, requestState, inputResponses: { [approval]: accept(true) }, ...more },
      { capabilities: ELICITS, ...options },
    );

  test('without a response is asked for again', async () => {
    const asked = await waiting();
    const again = await answered(asked, {}, { inputResponses: {} });
    expect(Object.keys(again.result?.['inputRequests'] as object)).toEqual([asked.approval]);
    expect((await answered(asked)).result?.['structuredContent']).toEqual({ text: 'wax' });
  });

  test('is decided once: the same answer again has the same run, and another one is refused', async () => {
    const asked = await waiting();
    const { result } = await answered(asked);
    expect(result?.['structuredContent']).toEqual({ text: 'wax' });
    expect((await answered(asked)).result).toEqual(result);
    const denied = await answered(asked, {}, { inputResponses: { [asked.approval]: { action: 'decline' } } });
    expect([denied.result?.['isError'], JSON.stringify(denied.result)]).toEqual([
      true,
      expect.stringContaining('approval_closed'),
    ]);
  });

  test.each<[string, (state: string) => string]>([
    ['forged', (state) => state.replace(/\.[^.]*$/, '.AAAA')],
    ['changed', (state) => state.replace('.', '.A')],
    ['no state', () => 'x'],
  ])('with a state that is %s is refused', async (_, change) => {
    const asked = await waiting();
    const { error } = await answered({ ...asked, requestState: change(asked.requestState) });
    expect(error).toMatchObject({ code: -32_602, message: 'Invalid or expired requestState' });
    expect((await answered(asked)).result?.['isError']).toBeUndefined();
  });

  test('is refused to another namespace, another user and another tool', async () => {
    const asked = await waiting();
    const user = await tokenOf(RED, { scopes: ['message', 'approve', 'read'] });
    expect((await answered(asked, { key: BLUE })).error?.code).toBe(-32_602);
    expect((await answered(asked, { key: user })).error?.code).toBe(-32_602);
    expect((await answered(asked, {}, { name: 'sum' })).error?.code).toBe(-32_602);
    expect((await answered(asked)).result?.['isError']).toBeUndefined();
  });

  test('with a state that has expired is refused', async () => {
    const asked = await waiting();
    const now = Date.now();
    const clock = vi.spyOn(Date, 'now').mockReturnValue(now + 8 * 24 * 3_600_000);
    const { error } = await answered(asked).finally(() => clock.mockRestore());
    expect(error).toMatchObject({ code: -32_602, message: 'Invalid or expired requestState' });
  });

  test('is a text for a token without the scope', async () => {
    const key = await tokenOf(RED, { scopes: ['message', 'read'] });
    const message = 'use seal with text "wax"';
    const { result } = await rpc(
      'tools/call',
      { name: 'sealer', arguments: { message } },
      { key, capabilities: ELICITS },
    );
    expect([result?.['resultType'], JSON.stringify(result)]).toEqual([
      'complete',
      expect.stringContaining('"waiting"'),
    ]);
  });
});

describe('[E4] a task', () => {
  const asTask = { ...TASKS, ...ELICITS };
  const task = (method: string, taskId: string, more: object = {}, options: RpcOptions = {}): Promise<Rpc> =>
    rpc(method, { taskId, ...more }, { capabilities: asTask, ...options });

  test('is a run that takes long: it asks, is decided, and has the result', async () => {
    const { result } = await rpc('tools/call', { name: 'careful', arguments: { ms: 1_500 } }, { capabilities: asTask });
    expect(result).toMatchObject({ resultType: 'task', status: 'working', ttlMs: null });
    const id = String(result?.['taskId']);
    const settled = async (status: string): Promise<Rpc['result']> =>
      await eventually(async () => {
        const { result: now } = await task('tasks/get', id);
        expect(now?.['status']).toBe(status);
        return now;
      });
    const asks = await settled('input_required');
    const [approval = ''] = Object.keys(asks?.['inputRequests'] as object);
    const inputResponses = {
      [approval]: { action: 'accept', content: { approved: true } },
      other: { action: 'accept' },
    };
    expect((await task('tasks/update', id, { inputResponses })).result?.['resultType']).toBe('complete');
    expect(await settled('completed')).toMatchObject({ result: { structuredContent: { sealed: 'wax' } } });
    // The same answer again changes nothing.
    expect((await task('tasks/update', id, { inputResponses })).error).toBeUndefined();
  });

  test('can be cancelled, is not for others, and leaving does not cancel it', async () => {
    const leave = new AbortController();
    const { result } = await rpc(
      'tools/call',
      { name: 'careful', arguments: { ms: 200_000 } },
      { capabilities: asTask, signal: leave.signal },
    );
    leave.abort();
    const id = String(result?.['taskId']);
    const user = await tokenOf(RED, { scopes: ['message', 'read', 'approve'] });
    for (const key of [BLUE, user]) {
      for (const method of ['tasks/get', 'tasks/cancel', 'tasks/update']) {
        const { error } = await task(method, id, { inputResponses: {} }, { key });
        expect(error?.code).toBe(-32_602);
      }
    }
    expect((await task('tasks/get', id)).result?.['status']).toBe('working');
    expect((await task('tasks/get', id, {}, { capabilities: {} })).error?.code).toBe(-32_021);
    expect((await task('tasks/get', 'no-task')).error?.code).toBe(-32_602);
    expect((await task('tasks/cancel', id)).error).toBeUndefined();
    expect((await task('tasks/get', id)).result?.['status']).toBe('cancelled');
  });
});

describe('[E4] who may call', () => {
  test('a user token sees the agents that it is for, and sessions of its user only', async () => {
    const key = await tokenOf(RED, { agents: ['assistant'] });
    const mcp = await client('pinned', { key });
    const { tools } = await mcp.listTools();
    expect(tools.map(({ name }) => name)).toEqual(['assistant']);
    await expect(mcp.callTool({ name: 'sealer', arguments: { message: 'x' } })).rejects.toThrow('No tool is called');
    await expect(mcp.callTool({ name: 'sum', arguments: { expression: '1' } })).rejects.toThrow('No tool is called');
    const own = structured(await mcp.callTool({ name: 'assistant', arguments: { message: 'Hello' } }));
    const other = await client('pinned', { key: await tokenOf(RED, { user_id: 'bob' }) });
    const stolen = await other.callTool({
      name: 'assistant',
      arguments: { message: 'What is my color?', session: own['session_id'] ?? '' },
    });
    expect([stolen.isError, textOf(stolen)]).toEqual([true, expect.stringContaining('unknown_session')]);
    const named = await other.callTool({ name: 'assistant', arguments: { message: 'x', session: 'chat' } });
    const same = await mcp.callTool({ name: 'assistant', arguments: { message: 'x', session: 'chat' } });
    expect(structured(named)['session_id']).not.toBe(structured(same)['session_id']);
  });

  test('a session token calls the agent of its session, in its session', async () => {
    const { session_id: session } = await askJson<{ session_id: string }>(RED, 'POST', '/agent/sealer/session', {});
    const { token } = await askJson<{ token: string }>(RED, 'POST', `/agent/session/${session}/tokens`, {});
    const mcp = await client('pinned', { key: token });
    expect((await mcp.listTools()).tools.map(({ name }) => name)).toEqual(['sealer']);
    const called = await mcp.callTool({ name: 'sealer', arguments: { message: 'Hello' } });
    expect(structured(called)['session_id']).toBe(session);
    const other = await mcp.callTool({ name: 'sealer', arguments: { message: 'Hello', session: 'x' } });
    expect(textOf(other)).toContain('forbidden');
  });

  test.each([
    ['tools/call', ['read'], { name: 'assistant', arguments: { message: 'x' } }],
    ['tools/list', ['files'], {}],
    ['resources/read', ['message'], { uri: `cortex://sessions/ses_${'a'.repeat(32)}/artifacts/art_1` }],
  ])('%s needs more than the scopes %j', async (method, scopes, params) => {
    const answer = await rpc(method, params, { key: await tokenOf(RED, { scopes }) });
    expect(JSON.stringify(answer)).toContain('requires an API key');
  });

  test.each([
    ['a wrong key', { authorization: 'Bearer wrong' }, 401, 'unauthorized'],
    ['a page of another origin', { ...headersOf(RED), origin: 'https://evil.example' }, 403, 'forbidden_origin'],
  ])('%s is refused', async (_, headers, status, code) => {
    const response = await fetched('/mcp', { method: 'POST', headers, body: '{}' });
    const body = await response.json<Rpc>();
    expect([response.status, body.error?.data?.['code']]).toEqual([status, code]);
    if (status === 401) expect(response.headers.get('www-authenticate')).toBe('Bearer');
  });
});

describe('[E4] a request', () => {
  const plain = (body: string, headers = {}): Promise<Response> =>
    fetched('/mcp', {
      method: 'POST',
      headers: { ...headersOf(RED), accept: 'application/json, text/event-stream', ...headers },
      body,
    });

  test.each([
    ['that is no JSON', '{', 400, -32_700, {}],
    ['with many messages', '[]', 400, -32_600, {}],
    ['of another type', '{"jsonrpc":"2.0","id":1,"method":"ping"}', 415, -32_000, { 'content-type': 'text/plain' }],
  ])('%s is an error', async (_, body, status, code, headers) => {
    const response = await plain(body, headers);
    expect([response.status, (await response.json<Rpc>()).error?.code]).toEqual([status, code]);
  });

  test('that is too large is refused', async () => {
    const response = await plain(JSON.stringify({ text: 'x'.repeat(8_400_000) }));
    expect([response.status, (await response.json<Rpc>()).error?.data]).toEqual([413, { code: 'body_too_large' }]);
  });

  test('to listen is refused, because nothing is announced, and so are GET and DELETE', async () => {
    expect((await rpc('subscriptions/listen', { notifications: {} })).error?.code).toBe(-32_601);
    for (const method of ['GET', 'DELETE']) {
      const response = await fetched('/mcp', { method, headers: headersOf(RED) });
      await response.body?.cancel();
      expect([response.status, response.headers.get('allow')]).toEqual([405, 'POST']);
    }
  });

  test('with the same Idempotency-Key has one run, and leaving does not cancel it', async () => {
    for (const params of [
      { name: 'assistant', arguments: { message: 'Hello' } },
      { name: 'sum', arguments: { expression: '1 + 1' } },
      { name: 'doubled', arguments: { n: 2 } },
    ]) {
      const headers = { 'idempotency-key': `key of ${params.name}` };
      const answers = [await rpc('tools/call', params, { headers }), await rpc('tools/call', params, { headers })];
      const [first, second] = answers.map(({ result }) => JSON.stringify(result?.['_meta']));
      expect(first).toContain('run_');
      expect(second).toBe(first);
    }
  });
});

const AGENT = {
  name: 'probe',
  imports: { tools: [], agents: [], workflows: [], relics: [] },
  feeds: [],
  memory: { maxTurns: null, summarizeAfter: null },
  mcpServers: [
    {
      name: 'srv',
      auth: 'TOOL_SRV',
      tools: null,
      prefix: null,
      trust: false,
      approval: 'never',
      timeoutMs: null,
    },
  ],
};

test.each<[allowed: readonly string[], isSent: boolean]>([
  [[], true],
  [['TOOL_SRV'], true],
  [['TOOL_OTHER'], false],
])('[E5][X3] an agent that allows the secrets %j sends the token of its server: %s', async (secrets, isSent) => {
  const env = { ...here, TOOL_SRV: 'the-token' } as Env;
  const names = { tools: new Map(), agents: new Map(), workflows: new Map(), relics: new Map() };
  const resolved = { agent: { ...AGENT, secrets }, ...names, bundled: { subject: true, tools: [] } };
  const sent: (string | null)[] = [];
  const fetch = vi.spyOn(globalThis, 'fetch').mockImplementation(async (_, init) => {
    sent.push(new Headers(init?.headers).get('authorization'));
    return new Response(null, { status: 500 });
  });
  // A host of its own: lists are kept for all tests of the isolate.
  const url = `https://${isSent ? 'sent' : 'kept'}-${secrets.length}.com/mcp`;
  const servers = AGENT.mcpServers.map((server) => ({ ...server, url }));
  const agent = { ...resolved.agent, mcpServers: servers };
  const found = await mcpAccess(env, { allowHosts: [] }, { tools: fetch }, undefined).toolsOf(
    { ...resolved, agent } as unknown as ResolvedAgent,
    null,
  );
  fetch.mockRestore();
  expect([...new Set(sent)]).toEqual(isSent ? ['Bearer the-token'] : []);
  const why = isSent
    ? /has not listed its tools/
    : /needs a secret .*: TOOL_SRV is not among the "secrets" of the agent$/;
  expect(found?.problems).toEqual([expect.stringMatching(why)]);
});
