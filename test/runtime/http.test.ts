/** The HTTP API of the Worker: its errors, and streams of requests and answers. */
import { describe, expect, test } from 'vitest';
import { limits } from '../../src/domain/limits.ts';
import { call, events, execute, newSession, post, shownText } from './client.ts';

const NO_SESSION = `/agent/session/ses_${'0'.repeat(32)}`;

describe('[H4] errors are problem documents with a stable code', () => {
  test.each([
    [
      'an unknown agent before an invalid body',
      () => post('/agent/nobody/session', { user_id: 5 }),
      404,
      'unknown_agent',
    ],
    ['an unknown session', () => post(`${NO_SESSION}/message`, { content: 'x' }), 404, 'unknown_session'],
    ['a malformed session id', () => call('/agent/session/../etc/history'), 404, 'not_found'],
    ['a guessed id', () => call('/agent/session/1/history'), 404, 'unknown_session'],
    [
      'malformed JSON',
      () => call('/execute/direct', { method: 'POST', body: '{"protocol_text": ' }),
      400,
      'invalid_json',
    ],
    ['an unknown execution', () => call(`/executions/run_${'0'.repeat(32)}_1`), 404, 'unknown_execution'],
    [
      'large metadata',
      () => post('/agent/assistant/session', { metadata: { note: 'x'.repeat(limits.metadataBytes) } }),
      400,
      'invalid_request',
    ],
    [
      'a large initial state',
      () => post('/agent/assistant/session', { initial_state: { large: 'x'.repeat(limits.variableBytes) } }),
      400,
      'invalid_request',
    ],
    [
      'a page of another site',
      () => post('/execute/direct', {}, { origin: 'https://evil.example' }),
      403,
      'forbidden_origin',
    ],
    ['a plan of 2 MB', () => post('/plan', { protocol_text: 'x'.repeat(2_000_000) }), 413, 'body_too_large'],
    ['20 MB', () => post('/execute/direct', { protocol_text: 'x'.repeat(20_000_000) }), 413, 'body_too_large'],
  ] as const)('%s', async (_name, request, status, code) => {
    const response = await request();
    expect(response.headers.get('content-type')).toBe('application/problem+json; charset=utf-8');
    expect(await response.json()).toMatchObject({ status, code, detail: expect.stringMatching(/.{10}/) });
  });

  test.each([
    ['/execute/direct?stream=false', '"stream" in the URL requires a text/plain body'],
    ['/execute/streaming_protocol?agent=assistant', '"agent" in the URL requires a text/plain body'],
    ['/plan?agent=assistant', '"agent" in the URL requires a text/plain body'],
  ])('%s is refused with a message that names the correct request', async (path, detail) => {
    const response = await post(path, { protocol_text: 'x' });
    expect(await response.json()).toMatchObject({ detail: expect.stringContaining(detail) });
  });
});

test('[H1] GET /health reports the status of each part', async () => {
  expect(await (await call('/health')).json()).toMatchObject({
    status: 'healthy',
    service: 'cortex-edge',
    executors: expect.arrayContaining(['tool', 'llm', 'internal']),
  });
});

test('[H1] a session is exported as training examples, one run per line', async () => {
  const session = await newSession();
  const path = `/agent/session/${session}`;
  const read = async (response: Response): Promise<string> => new TextDecoder().decode(await response.arrayBuffer());
  expect(await read(await call(`${path}/transcript?format=jsonl`))).toBe('');
  for (const content of ['what is 6 * 7', 'what is 2 + 2']) {
    await (await post(`${path}/message`, { content, stream: false })).text();
  }
  const response = await call(`${path}/transcript?format=jsonl`);
  expect(response.headers.get('content-type')).toContain('application/jsonl');
  const lines = (await read(response)).split('\n');
  expect(lines.pop()).toBe('');
  const examples = lines.map((line) => JSON.parse(line) as { messages: { role: string; content: string }[] });
  expect(examples.map(({ messages }) => [messages[0]?.role, messages.at(-1)?.role])).toEqual([
    ['system', 'assistant'],
    ['system', 'assistant'],
  ]);
  expect(examples[0]?.messages.at(-1)?.content).toContain('<response');
  expect((await call(`${path}/transcript?format=csv`)).status).toBe(400);
  expect((await call(`${NO_SESSION}/transcript`)).status).toBe(404);
});

test('[H8] a JSON body is read as JSON with any content type', async () => {
  const response = await post(
    '/agent/assistant/session',
    { user_id: 'curl' },
    { 'content-type': 'application/x-www-form-urlencoded' },
  );
  expect(response.status).toBe(201);
});

const echo = (id: string, parameters: object, more: object = {}, attributes = 'mode="async"'): string =>
  `<action type="tool" ${attributes} id="${id}">${JSON.stringify({ name: 'echo', parameters, ...more })}</action>`;

test('[S2] independent actions overlap, dependent actions follow, and the response shows their results', async () => {
  const result = await execute(
    `<thought>Both at once.${echo('a', { delay_ms: 150, n: 1 })}${echo('b', { delay_ms: 150, n: 2 })}</thought>` +
      `${echo('sum', { first: '$a.n', second: '$b.n', label: 'a=$a.n' }, { depends_on: ['a', 'b'] })}` +
      `<response final="true">Got $sum.first and \${sum.second}; $$5 and $unknown stay.</response>`,
  );
  expect(result.status).toBe('completed');
  expect(result.response).toBe('Got 1 and 2; $5 and $unknown stay.');
  const [a, b, sum] = ['a', 'b', 'sum'].map((id) => result.actions.find((action) => action.id === id));
  expect(a?.started_at).toBeLessThan(Number(b?.ended_at));
  expect(b?.started_at).toBeLessThan(Number(a?.ended_at));
  expect(Number(sum?.started_at)).toBeGreaterThanOrEqual(Math.max(Number(a?.ended_at), Number(b?.ended_at)));
  expect(sum?.output).toMatchObject({ first: 1, second: 2, label: 'a=1' });
});

test('[S1] an action starts at its closing tag, while the text is still arriving', async () => {
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
  const writer = writable.getWriter();
  const encoder = new TextEncoder();
  const answering = call('/execute/streaming_protocol', {
    method: 'POST',
    headers: { 'content-type': 'text/plain' },
    body: readable,
  });
  await writer.write(encoder.encode(`<thought>first ${echo('early', { n: 1 })}`));
  const response = await answering;
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  let seen = '';
  while (!seen.includes('action_completed')) seen += (await reader?.read())?.value ?? '';
  expect(seen).not.toContain('thought_completed');
  await writer.write(encoder.encode(' then the rest</thought><response final="true">$early.n</response>'));
  await writer.close();
  for (let read = await reader?.read(); read?.done === false; read = await reader?.read()) seen += read.value;
  expect(seen).toContain('"content":"1"');
  expect(seen).toContain('event: agent_completed');
});

test('[J4] patches applied by segment and offset give the journal’s text; event ids have no gaps', async () => {
  const response = await post('/execute/streaming_protocol', {
    protocol_text:
      `<thought>One ${echo('slow', { delay_ms: 80, word: 'done' })} two</thought>` +
      '<response final="false">First: $slow.word!</response><response final="true">Second.</response>',
  });
  const all = await events(response);
  const journaled = all.filter(({ seq }) => seq !== null);
  expect(journaled.map(({ seq }) => seq)).toEqual(journaled.map((_, index) => index + 1));
  const shown = shownText(all);
  const closed = all.flatMap((event) =>
    event.type === 'thought_completed' || event.type === 'text_completed' || event.type === 'response_completed'
      ? [event.data]
      : [],
  );
  expect(closed.map(({ content }) => content)).toEqual(['One  two', 'Second.', 'First: done!']);
  // A stream that begins after the end of a block has no patches of it; the last block waits for the action.
  for (const { segment, content } of closed.slice(0, -1)) expect([content, undefined]).toContain(shown.get(segment));
  expect(shown.get(closed.at(-1)?.segment ?? 0)).toBe('First: done!');
  expect(all.at(-1)?.type).toBe('agent_completed');
});

test('[J5] a cancel gives every action a terminal event', async () => {
  const response = await post('/execute/direct', {
    protocol_text: `${echo('long', { delay_ms: 60_000 })}${echo('after', {}, { depends_on: ['long'] })}`,
  });
  const id = response.headers.get('x-run-id') ?? '';
  const reading = events(response);
  const cancelled = await post(`/executions/${id}/cancel`, {});
  expect(await cancelled.json()).toMatchObject({ run_id: id, cancelled: true });
  const types = (await reading).map(({ type }) => type);
  expect(types.filter((type) => type === 'action_cancelled')).toHaveLength(2);
  expect(types.at(-1)).toBe('agent_cancelled');
});

test('[J5] a disconnect does not affect the run; the client resumes by id', async () => {
  const session = await newSession();
  const response = await post(`/agent/session/${session}/message`, {
    content: 'wait 1 second and 0.2 seconds in parallel',
  });
  const first = await events(response, ({ type }) => type === 'action_started');
  const last = Math.max(...first.map(({ seq }) => seq ?? 0));
  const resumed = await call(`/agent/session/${session}/events?run=${first[0]?.run_id}`, {
    headers: { 'last-event-id': String(last) },
  });
  const rest = await events(resumed);
  expect(rest.find(({ seq }) => seq !== null)?.seq).toBe(last + 1);
  expect(rest.at(-1)?.type).toBe('agent_completed');
});

/** Frames with an id, which are the ones in the journal. */
const journaled = (body: string): string =>
  body
    .split(/(?<=\n\n)/)
    .filter((frame) => frame.startsWith('id: '))
    .join('');

test('[J4] a replay has the same bytes as the live stream, complete and from any position', async () => {
  const many = Array.from({ length: 60 }, (_, n) => echo(`a${n}`, { n })).join('\n');
  const live = await post('/execute/direct', {
    protocol_text: `<thought>plan 🎈</thought>${many}<response final="true">done: $a1.n</response>`,
  });
  const id = live.headers.get('x-session-id') ?? '';
  const run = live.headers.get('x-run-id') ?? '';
  const sent = journaled(await live.text());
  const frames = sent.split(/(?<=\n\n)/);
  expect(frames.length).toBeGreaterThan(3 * 60);
  expect(frames.map((frame) => /^id: (\d+)/.exec(frame)?.[1])).toEqual(frames.map((_, index) => String(index + 1)));
  const path = `/agent/session/${id}/events?run=${run}`;
  expect(await (await call(path)).text()).toBe(sent);
  for (const after of [1, 17, frames.length - 1]) {
    const rest = frames.slice(after).join('');
    expect(journaled(await (await call(`${path}&after=${after}`)).text())).toBe(rest);
    const resumed = await call(path, { headers: { 'last-event-id': String(after) } });
    expect(journaled(await resumed.text())).toBe(rest);
  }
  expect(await (await call(`${path}&after=${frames.length}`)).text()).toBe('');
});
