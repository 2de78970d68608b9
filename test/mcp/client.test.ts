/** Our MCP client with a correct server of each protocol (E5): what it sends, and what it makes of the answers. */
import { afterEach, describe, expect, test } from 'vitest';
import type { ActionOutcome, Question } from '../../src/domain/action.ts';
import { limits } from '../../src/domain/limits.ts';
import { mcpKit } from './kit.ts';
import type { McpKit } from './kit.ts';
import { PIXEL, startToolServer } from './servers/tool-server.ts';
import type { ToolServer, ToolServerOptions } from './servers/tool-server.ts';

const ends: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const end of ends.splice(0).toReversed()) await end();
});

async function serve(options: ToolServerOptions = {}): Promise<{ readonly server: ToolServer; readonly kit: McpKit }> {
  const server = await startToolServer(options);
  ends.push(server.close);
  return { server, kit: mcpKit(server.url, options.token === undefined ? {} : { token: options.token }) };
}

function questionIn(outcome: ActionOutcome): Question {
  if (outcome.ok || outcome.question === undefined) throw new Error(`no question: ${JSON.stringify(outcome)}`);
  return outcome.question;
}

describe.each(['modern', 'legacy'] as const)('with a server that speaks %s', (speaks) => {
  test('[E5] results are outputs, files, links and failures', async () => {
    const { kit } = await serve({ speaks });
    expect(await kit.call('echo', { text: 'hi' })).toEqual({ ok: true, output: 'hi' });
    expect(await kit.call('add', { a: 1, b: 2 })).toEqual({ ok: true, output: { sum: 3 } });
    expect(await kit.call('image')).toMatchObject({
      ok: true,
      output: { files: [{ content_type: 'image/png', base64: PIXEL }] },
    });
    expect(await kit.call('resources')).toMatchObject({
      ok: true,
      output: {
        links: [{ uri: 'https://example.com/report.pdf', name: 'report' }],
        files: [
          { uri: 'memo://note', text: '# Note' },
          { uri: 'memo://pixel', base64: PIXEL },
        ],
      },
    });
    expect(await kit.call('fail')).toMatchObject({
      ok: false,
      error: { code: 'tool_failed', message: expect.stringContaining('the disk is full') },
    });
    expect(await kit.call('no_such_tool')).toMatchObject({ ok: false, error: { code: 'mcp_refused' } });
  });

  test('[E5] a result that does not fit the schema of the tool fails', async () => {
    const { kit } = await serve({ speaks });
    const add = (await kit.define()).tools.find(({ name }) => name === 'add');
    if (add === undefined) throw new Error('no tool');
    const other = { ...add, returns: { type: 'object', properties: { sum: { type: 'string' } }, required: ['sum'] } };
    expect(await kit.callDefined(add, { a: 1, b: 2 })).toMatchObject({ ok: true });
    expect(await kit.callDefined(other, { a: 1, b: 2 })).toMatchObject({
      ok: false,
      error: { code: 'mcp_failed', message: expect.stringContaining('does not fit its schema: result.sum') },
    });
  });

  test('[E5] steps are reported with their share', async () => {
    const { server, kit } = await serve({ speaks });
    server.progress.open();
    const updates: unknown[] = [];
    await kit.call('progress', {}, { progress: (update) => void updates.push(update) });
    expect(updates).toMatchObject(
      [25, 50, 75].map((percent, at) => ({ percent, text: expect.stringContaining(`step ${at + 1}`) })),
    );
  });

  test('[E5] the token is sent with each request, and with nothing else', async () => {
    const { server, kit } = await serve({ speaks, token: 'secret' });
    expect((await kit.define()).tools.length).toBeGreaterThan(5);
    expect(await kit.call('echo', { text: 'hi' })).toMatchObject({ ok: true });
    expect(new Set(server.recording.requests.map(({ headers }) => headers.authorization))).toEqual(
      new Set(['Bearer secret']),
    );
    expect(await mcpKit(server.url, { token: 'wrong' }).call('echo')).toMatchObject({
      ok: false,
      error: { code: 'mcp_unauthorized' },
    });
  });

  test('[E5] a cancelled call is cancelled at the server', async () => {
    const { server, kit } = await serve({ speaks });
    const abort = new AbortController();
    const call = kit.call('slow', { text: 'x' }, { signal: abort.signal });
    await server.slow.arrived();
    abort.abort();
    expect(await call).toMatchObject({ ok: false, error: { code: 'aborted' } });
    await server.recording.until((recording) =>
      speaks === 'legacy'
        ? recording.count('notifications/cancelled') === 1
        : recording.of('tools/call').some(({ wasCut }) => wasCut),
    );
    expect(server.calls.has('slow')).toBe(false);
  });

  test('[E5] calls run at the same time', async () => {
    const { server, kit } = await serve({ speaks });
    const calls = ['a', 'b', 'c', 'd'].map(async (text) => await kit.call('slow', { text }));
    await server.slow.arrived(4);
    server.slow.open();
    expect(await Promise.all(calls)).toEqual(['a', 'b', 'c', 'd'].map((output) => ({ ok: true, output })));
  });

  test('[E5] a question goes to a person, and the answer to the call that asked', async () => {
    const { server, kit } = await serve({ speaks });
    const question = questionIn(await kit.call('confirm', {}, { key: 'run:a' }));
    expect(question).toMatchObject({
      from: 'MCP server "srv"',
      message: 'Deploy to production?',
      schema: { properties: { confirm: { type: 'boolean' } } },
    });
    const other = questionIn(await kit.call('confirm', {}, { key: 'run:b' }));
    const answer = async (key: string, { state }: Question, confirm: boolean) =>
      await kit.call('confirm', {}, { key, answer: { state, content: { confirm } } });
    expect(await answer('run:b', other, false)).toMatchObject({ output: { content: { confirm: false } } });
    expect(await answer('run:a', question, true)).toMatchObject({ output: { content: { confirm: true } } });
    expect(server.calls.get('confirm')).toBe(2);
  });

  test('[E5] a question with a page names it', async () => {
    const { kit } = await serve({ speaks });
    const { state, ...shown } = questionIn(await kit.call('open_page', {}, { key: 'run:a' }));
    expect(shown).toMatchObject({ message: 'Please sign in.', url: 'https://example.com/sign-in', schema: null });
    const answer = { state, content: {} };
    expect(await kit.call('open_page', {}, { key: 'run:a', answer })).toMatchObject({ output: { action: 'accept' } });
  });

  test('[E5] a question that is withdrawn leaves nothing at the server', async () => {
    const { server, kit } = await serve({ speaks });
    questionIn(await kit.call('confirm', {}, { key: 'run:a' }));
    kit.session.withdraw('run:a');
    if (speaks === 'legacy') {
      await server.recording.until(({ requests }) => requests.some(({ httpMethod }) => httpMethod === 'DELETE'));
    }
    expect(server.calls.has('confirm')).toBe(false);
  });
});

test('[E5] it takes the newer protocol of a server that speaks both', async () => {
  const { server, kit } = await serve();
  await kit.call('echo', { text: 'hi' });
  expect(server.recording.of('tools/call').map(({ headers }) => headers['mcp-protocol-version'])).toEqual([
    '2026-07-28',
  ]);
  expect(server.recording.count('initialize')).toBe(0);
});

test('[E5] a stateless server is asked once which protocol it speaks', async () => {
  const { server, kit } = await serve({ speaks: 'modern' });
  await kit.define();
  for (const text of ['a', 'b', 'c']) await kit.call('echo', { text });
  expect(server.recording.requests.flatMap(({ methods }) => methods)).toEqual([
    'server/discover',
    'tools/list',
    ...Array.from({ length: 3 }, () => 'tools/call'),
  ]);
});

test('[E5] calls to a server with sessions share connections, and no more than allowed', async () => {
  const { server, kit } = await serve({ speaks: 'legacy' });
  await kit.define();
  for (const text of ['a', 'b', 'c']) await kit.call('echo', { text });
  // One for the list, one for the calls.
  expect(server.recording.count('initialize')).toBe(2);
  const many = Array.from(
    { length: limits.mcpConnections + 4 },
    async (_, at) => await kit.call('slow', { text: `${at}` }),
  );
  await server.slow.arrived(limits.mcpConnections);
  server.slow.open();
  for (const outcome of await Promise.all(many)) expect(outcome).toMatchObject({ ok: true });
  expect(server.recording.count('initialize')).toBe(1 + limits.mcpConnections);
});

test('[E5] a server with sessions says that its list has changed: the next list is new', async () => {
  const { server, kit } = await serve({ speaks: 'legacy' });
  await kit.define();
  await kit.call('echo', { text: 'x' });
  // The stream of announcements of the list's connection, and that of the call's.
  await server.recording.until(({ requests }) => requests.filter(({ httpMethod }) => httpMethod === 'GET').length > 1);
  server.changeList();
  // The announcement may arrive during any later call.
  const isNew = async (): Promise<boolean> => {
    await kit.call('echo', { text: 'x' });
    return (await kit.define()).tools.some(({ name }) => name === 'late');
  };
  await expect.poll(isNew).toBe(true);
});
