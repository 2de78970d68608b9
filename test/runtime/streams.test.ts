import { expect, test } from 'vitest';
import { call, events, newSession, post, shownText } from './client.ts';

const TEXT = Array.from(
  { length: 60 },
  (_, index) => `<action name="echo" id="a${index}" mode="async">{"n": ${index}}</action>`,
).join('\n');

/** The whole body, decoded as text. */
async function read(response: Response): Promise<string> {
  return await response.text();
}

/** Frames with an id, which are the ones in the journal. */
function journaled(body: string): string {
  return body
    .split(/(?<=\n\n)/)
    .filter((frame) => frame.startsWith('id: '))
    .join('');
}

test('[J4] a replay has the same bytes as the live stream, complete and from any position', async () => {
  const live = await post('/execute/direct', {
    protocol_text: `<thought>plan 🎈</thought>${TEXT}<response final="true">done: $a1.n</response>`,
  });
  const id = live.headers.get('x-session-id') ?? '';
  const run = live.headers.get('x-run-id') ?? '';
  const sent = journaled(await read(live));
  const frames = sent.split(/(?<=\n\n)/);
  expect(frames.map((frame) => /^id: (\d+)/.exec(frame)?.[1])).toEqual(frames.map((_, index) => String(index + 1)));
  const path = `/agent/session/${id}/events?run=${run}`;
  expect(await read(await call(path))).toBe(sent);
  for (const after of [1, 17, frames.length - 1]) {
    const rest = frames.slice(after).join('');
    expect(journaled(await read(await call(`${path}&after=${after}`)))).toBe(rest);
    const resumed = await call(path, { headers: { 'last-event-id': String(after) } });
    expect(journaled(await read(resumed))).toBe(rest);
  }
  expect(await read(await call(`${path}&after=${frames.length}`))).toBe('');
});

test('[J4] all readers see the same events, and a reader that never reads delays no other', async () => {
  const session = await newSession();
  const path = `/agent/session/${session}`;
  const idle = await call(`${path}/events`);
  const readers = Promise.all(
    Array.from({ length: 20 }, async () =>
      events(await call(`${path}/events`), ({ type }) => type === 'agent_completed'),
    ),
  );
  const answer = events(await post(`${path}/message`, { content: 'what is 2 + 2' }));
  const [all, first] = [await readers, await answer];
  const seqs = first.flatMap(({ seq }) => (seq === null ? [] : [seq]));
  for (const one of all) {
    expect(one.flatMap(({ seq }) => (seq === null ? [] : [seq]))).toEqual(seqs);
    expect([...shownText(one).values()].join('')).toContain('4');
  }
  await idle.body?.cancel();
});

test.each(['-1', '1.5', 'x', '1e400'])('[H4] ?after=%s is refused', async (after) => {
  const session = await newSession();
  const response = await call(`/agent/session/${session}/events?after=${after}`);
  expect(response.status).toBe(400);
  await response.body?.cancel();
});

test('[J4] a browser that reconnects sends its position in Last-Event-ID, which overrides the URL', async () => {
  const live = await post('/execute/direct', { protocol_text: `${TEXT}<response final="true">done</response>` });
  const path = `/agent/session/${live.headers.get('x-session-id') ?? ''}/events?run=${live.headers.get('x-run-id') ?? ''}`;
  const frames = journaled(await read(live)).split(/(?<=\n\n)/);
  const again = await call(`${path}&after=1`, { headers: { 'last-event-id': '17' } });
  expect(journaled(await read(again))).toBe(frames.slice(17).join(''));
});

test('[J4] a reader whose position is past the end gets the next event', async () => {
  const session = await newSession();
  const path = `/agent/session/${session}`;
  const ahead = await call(`${path}/events?after=999999`);
  const answer = await events(await post(`${path}/message`, { content: 'what is 2 + 2' }));
  const seen = await events(ahead, ({ type }) => type === 'agent_completed');
  expect(seen.map(({ seq }) => seq).filter((seq) => seq !== null)).toEqual(
    answer.map(({ seq }) => seq).filter((seq) => seq !== null),
  );
});
