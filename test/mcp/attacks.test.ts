/** What a hostile or broken MCP server can do to our client: its list, its calls and its connections (E5). */
import { afterEach, describe, expect, test } from 'vitest';
import type { ActionOutcome } from '../../src/domain/action.ts';
import { limits } from '../../src/domain/limits.ts';
import { validateJson } from '../../src/executors/validate-parameters.ts';
import { VirtualClock } from '../../testing/virtual-clock.ts';
import { mcpKit } from './kit.ts';
import type { McpKit } from './kit.ts';
import {
  HOSTILE_SCHEMAS,
  INSTRUCTIONS,
  ODD_NAMES,
  asksFor,
  changingSchema,
  circlingPages,
  endlessPages,
  hugeImage,
  hugeText,
  listed,
  manyTools,
} from './servers/hostile-content.ts';
import { startHostileServer } from './servers/hostile-server.ts';
import type { HostileServer, HostileServerOptions, Misbehaviour } from './servers/hostile-server.ts';
import { closedAddress } from './servers/loopback.ts';

const PROTOCOLS = ['modern', 'legacy'] as const;
const ends: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const end of ends.splice(0).toReversed()) await end();
});

async function serve(options: HostileServerOptions = {}): Promise<HostileServer> {
  const server = await startHostileServer(options);
  ends.push(server.close);
  return server;
}

function failed(outcome: ActionOutcome): Extract<ActionOutcome, { ok: false }>['error'] {
  if (outcome.ok) throw new Error(`the call did not fail: ${JSON.stringify(outcome.output).slice(0, 200)}`);
  return outcome.error;
}

/** Advances the clock whenever something waits for it, until the promise settles. */
async function passTime<T>(clock: VirtualClock, promise: Promise<T>): Promise<T> {
  const stop = new AbortController();
  const advance = (): void => {
    if (stop.signal.aborted) return;
    if (clock.next !== null) clock.advance(clock.next - clock.now());
    setImmediate(advance);
  };
  advance();
  return await promise.finally(() => stop.abort());
}

describe('a list', () => {
  test('[E5] of 10,000 tools is cut, and says how to choose', async () => {
    const { url } = await serve({ list: manyTools });
    // The list is long; its time limit has a test of its own.
    const clock = new VirtualClock();
    const { tools, problems } = await mcpKit(url, { clock }).define();
    expect(tools.length).toBe(limits.mcpToolsPerServer);
    expect(problems.join()).toMatch(/too many tools/);
    expect(
      (await mcpKit(url, { clock, server: { tools: ['tool_9999'] } }).define()).tools.map(({ name }) => name),
    ).toEqual(['tool_9999']);
  });

  test.each([
    ['without an end', endlessPages],
    ['that go in circles', circlingPages],
  ])('[E5] with pages %s ends', async (_, list) => {
    const server = await serve({ list });
    const { tools, problems } = await mcpKit(server.url).define();
    expect(server.recording.count('tools/list')).toBeLessThanOrEqual(limits.mcpListPages + 1);
    expect(tools.length > 0 || problems.length > 0).toBe(true);
  });

  test('[E5] of more bytes than allowed is no list', async () => {
    const tools = Array.from({ length: 60 }, (_, at) => listed(`tool_${at}`, INSTRUCTIONS));
    const { url } = await serve({ list: () => ({ tools }) });
    expect(await mcpKit(url).list()).toEqual({
      list: null,
      problem: expect.stringContaining(`more than ${limits.mcpListBytes} bytes`),
    });
  });

  test('[E5] has only names that the model can write, all different, and calls the tool that was listed', async () => {
    const server = await serve({ list: () => ({ tools: ODD_NAMES.map((name) => listed(name)) }) });
    const kit = mcpKit(server.url);
    const { tools } = await kit.define();
    for (const { name } of tools) expect(name).toMatch(/^[A-Za-z][A-Za-z0-9_-]{0,63}$/);
    expect(new Set(tools.map(({ name }) => name.toLowerCase())).size).toBe(tools.length);
    for (const tool of tools) expect(await kit.callDefined(tool)).toMatchObject({ ok: true });
    const called = server.recording
      .of('tools/call')
      .map(({ body }) => (body as { params: { name: string } }).params.name);
    expect(called).toEqual(tools.map(({ implementation }) => implementation.type === 'mcp' && implementation.tool));
  });

  test.each(Object.entries(HOSTILE_SCHEMAS))(
    '[E5] with a schema %s costs little, and nothing is fetched',
    async (_, schema) => {
      const server = await serve({ list: () => ({ tools: [listed('work', 'Works.', schema), listed('other')] }) });
      const kit = mcpKit(server.url);
      const { tools } = await kit.define();
      expect(tools.map(({ name }) => name)).toContain('other');
      for (const { parameters } of tools) {
        // A pattern or a recursion that takes long would hang here.
        validateJson(parameters ?? {}, { x: `${'a'.repeat(50_000)}!`, tree: {} }, 'parameters');
      }
      expect(server.recording.requests.every(({ path }) => path === '/mcp')).toBe(true);
    },
  );

  test('[E5] in which a tool is malformed costs the tools of the server, and says so', async () => {
    const { url } = await serve({
      list: () => ({ tools: [listed('work', 'Works.', { type: 'string' }), listed('other')] }),
    });
    const { tools, problems } = await mcpKit(url).define();
    expect(tools).toEqual([]);
    expect(problems).toEqual([expect.stringContaining('The MCP server "srv" has not listed its tools')]);
  });

  test('[E5] that changes counts when the client lists again, and keeps the names', async () => {
    const { url } = await serve({ list: changingSchema });
    const kit = mcpKit(url);
    const pinned = (await kit.define()).tools;
    const next = (await kit.define()).tools;
    expect([pinned, next].map(([tool]) => tool?.parameters?.['required'])).toEqual([['first'], ['second']]);
  });

  test('[E5] is asked for once while it is valid', async () => {
    const server = await serve({ ttlMs: 60_000 });
    const kit = mcpKit(server.url);
    await kit.define();
    await kit.define();
    expect(server.recording.count('tools/list')).toBe(1);
  });

  test.each<[Misbehaviour, RegExp]>([
    [{ kind: 'status', status: 401 }, /refused access \(401\)/],
    [{ kind: 'status', status: 500 }, /answered 500/],
    [
      { kind: 'status', status: 302, headers: { location: 'http://10.0.0.1/' } },
      /Redirect to http:\/\/10\.0\.0\.1\/ not followed/,
    ],
    [{ kind: 'invalid_json' }, /gave no usable answer/],
    [{ kind: 'disconnect' }, /could not be reached/],
  ])('[E5] that is answered by %j is no list, and the reason is said', async (misbehaviour, reason) => {
    const server = await serve();
    server.misbehave('tools/list', misbehaviour);
    expect(await mcpKit(server.url).list()).toEqual({ list: null, problem: expect.stringMatching(reason) });
  });

  test('[E5] of a server that goes down is the last one', async () => {
    const server = await serve();
    const kit = mcpKit(server.url);
    await kit.define();
    await server.close();
    expect(await kit.define()).toMatchObject({ tools: [{ name: 'work' }], problems: [expect.any(String)] });
  });

  test.each(PROTOCOLS)('[E5] that does not arrive is waited for a limited time (%s)', async (speaks) => {
    const server = await serve({ speaks });
    server.misbehave('tools/list', { kind: 'silent' });
    const clock = new VirtualClock();
    const found = await passTime(clock, mcpKit(server.url, { clock }).list());
    expect(found).toMatchObject({ list: null, problem: expect.stringContaining('did not list its tools within 5 s') });
  });
});

describe.each(PROTOCOLS)('a call (%s)', (speaks) => {
  /** A kit that knows the server already. */
  async function ready(
    options: HostileServerOptions = {},
  ): Promise<{ readonly server: HostileServer; readonly kit: McpKit }> {
    const server = await serve({ ...options, speaks });
    const kit = mcpKit(server.url);
    await kit.list();
    return { server, kit };
  }

  test.each<[Misbehaviour, string, RegExp, object?]>([
    [{ kind: 'status', status: 401 }, 'mcp_unauthorized', /refused access \(401\)/],
    [
      { kind: 'status', status: 429, headers: { 'retry-after': '2' } },
      'mcp_failed',
      /answered 429/,
      { retryAfterMs: 2_000, beforeDispatch: true },
    ],
    [{ kind: 'status', status: 500 }, 'mcp_failed', /answered 500/, { retryable: true }],
    [{ kind: 'status', status: 503 }, 'mcp_failed', /answered 503/, { retryable: true, overloaded: true }],
    [{ kind: 'invalid_json' }, 'mcp_failed', /gave no usable answer/],
    [{ kind: 'wrong_content_type' }, 'mcp_failed', /gave no usable answer/],
    [{ kind: 'disconnect' }, 'fetch_failed', /could not be reached/],
  ])(
    '[E5] that gets %j fails with a stable code, and the next one works',
    async (misbehaviour, code, message, more = {}) => {
      const { server, kit } = await ready();
      server.misbehave('tools/call', misbehaviour);
      expect(failed(await kit.call('work'))).toMatchObject({ code, message: expect.stringMatching(message), ...more });
      server.misbehave('tools/call', null);
      expect(await kit.call('work')).toEqual({ ok: true, output: 'done' });
    },
  );

  test.each(['silent', 'wrong_id', 'endless_stream', 'endless_progress'] as const)(
    '[E5] that is answered by %s ends with its signal, and the connection with it',
    async (kind) => {
      const { server, kit } = await ready();
      server.misbehave('tools/call', { kind });
      const abort = new AbortController();
      const updates: unknown[] = [];
      const progress = (update: unknown): void => {
        updates.push(update);
        if (updates.length === limits.mcpUpdates) abort.abort(new DOMException('too long', 'TimeoutError'));
      };
      const call = kit.call('work', {}, { signal: abort.signal, progress });
      await server.recording.until((recording) => recording.count('tools/call') > 0);
      if (kind !== 'endless_progress') abort.abort(new DOMException('too long', 'TimeoutError'));
      expect(failed(await call).code).toBe('aborted');
      expect(updates.length).toBeLessThanOrEqual(limits.mcpUpdates);
      if (kind === 'silent' || kind.startsWith('endless')) {
        await server.recording.until((recording) => recording.of('tools/call').some(({ wasCut }) => wasCut));
      }
    },
  );

  test('[E5] whose stream ends without an answer fails', async () => {
    const { server, kit } = await ready();
    server.misbehave('tools/call', { kind: 'ended_stream' });
    expect(failed(await kit.call('work')).code).toBe('mcp_failed');
    server.misbehave('tools/call', null);
    expect(await kit.call('work')).toMatchObject({ ok: true });
  });

  test('[E5] with 20 MB of text fails', async () => {
    const { kit } = await ready({ results: { work: hugeText() } });
    expect(failed(await kit.call('work'))).toMatchObject({ code: 'response_too_large' });
  });

  test('[E5] with an image of 9 MiB is a file', async () => {
    const { kit } = await ready({ results: { work: hugeImage() } });
    expect(await kit.call('work')).toMatchObject({ ok: true, output: { files: [{ content_type: 'image/png' }] } });
  });

  test('[E5] in which the server asks for a secret declines without a question to a person', async () => {
    const { server, kit } = await ready({ results: { work: asksFor('api_key') } });
    const updates: unknown[] = [];
    const outcome = await kit.call('work', {}, { progress: (update) => void updates.push(update) });
    expect(outcome).toMatchObject({ ok: true });
    expect(server.replies).toEqual([{ action: 'decline' }]);
    expect(updates).toEqual([{ text: expect.stringContaining('asked for a secret') }]);
  });

  test.each([
    [302, 'http://169.254.169.254/latest/meta-data'],
    [307, 'http://[::ffff:127.0.0.1]/mcp'],
  ])('[E5] that is redirected (%i) to %s fails', async (status, location) => {
    const { server, kit } = await ready();
    server.misbehave('tools/call', { kind: 'status', status, headers: { location } });
    expect(failed(await kit.call('work'))).toMatchObject({
      code: 'mcp_failed',
      message: expect.stringContaining(`Redirect to ${new URL(location).href} not followed`),
    });
  });

  test('[E5] that is redirected to another origin sends nothing there', async () => {
    const other = await serve({ speaks });
    const server = await serve({ speaks });
    const kit = mcpKit(server.url, { token: 'secret-token', allowHosts: [server.host, other.host] });
    await kit.list();
    server.misbehave('tools/call', { kind: 'status', status: 307, headers: { location: other.url } });
    expect(await kit.call('work')).toMatchObject({ ok: false });
    expect(server.recording.of('tools/call').at(-1)?.headers.authorization).toBe('Bearer secret-token');
    expect(other.recording.requests).toEqual([]);
  });

  test('[E5] after a restart of the server is made once', async () => {
    const { server, kit } = await ready();
    await kit.call('work');
    server.restart();
    expect(await kit.call('work')).toEqual({ ok: true, output: 'done' });
    expect(server.recording.count('tools/call')).toBe(speaks === 'legacy' ? 3 : 2);
  });
});

test('[E5] a call that asks for a sample of a model is refused', async () => {
  const inputRequests = { a: { method: 'sampling/createMessage', params: { messages: [], maxTokens: 1 } } };
  const server = await serve({ results: { work: { resultType: 'input_required', inputRequests } } });
  expect(failed(await mcpKit(server.url).call('work')).code).toBe('mcp_failed');
});

test('[E5] a call to a server that is down says that nothing was sent', async () => {
  expect(failed(await mcpKit(await closedAddress()).call('work'))).toMatchObject({
    code: 'mcp_unavailable',
    beforeDispatch: true,
  });
});

test('[E5] a call to a private address is refused', async () => {
  for (const url of ['http://10.0.0.1/mcp', 'http://169.254.169.254/mcp', 'http://127.0.0.1:1/mcp']) {
    const outcome = await mcpKit(url, { allowHosts: [] }).call('work');
    expect(failed(outcome)).toMatchObject({ code: 'address_refused', beforeDispatch: true });
  }
});
