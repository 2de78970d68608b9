/** Branches, forks, steering and the directory of sessions (C4, C5, C6): what the client sends. */
import { beforeEach, describe, expect, test } from 'vitest';
import { Client } from '../../src/client/index.ts';
import { promptClock } from './client-kit.ts';

const RUN = 'run_2';
const ENDED = {
  seq: 9,
  type: 'agent_completed',
  run_id: RUN,
  iteration: 1,
  data: { response: 'x', iterations: 1, usage: null },
};

let requests: unknown[];
let client: Client;

/** Answers with a stream of events where one is wanted, and with JSON otherwise. */
async function answer(url: string, { method, headers, body }: RequestInit): Promise<Response> {
  const { accept, 'idempotency-key': key } = headers as Record<string, string>;
  const sent = typeof body === 'string' ? (JSON.parse(body) as unknown) : undefined;
  requests.push([`${method} ${url.replace('http://edge', '')}`, sent, ...(key === 'k' ? ['with the key'] : [])]);
  if (accept !== 'text/event-stream' && !url.includes('/events')) {
    return Response.json({ session_id: 'ses_new', sessions: [], messages: [], next: null });
  }
  return new Response(`data: ${JSON.stringify(ENDED)}\n\n`, {
    headers: { 'content-type': 'text/event-stream', 'x-session-id': 'ses_1', 'x-run-id': RUN },
  });
}

beforeEach(() => {
  requests = [];
  client = new Client({ url: 'http://edge', fetch: answer, clock: promptClock, random: () => 0 });
});

describe('[C4] branches', () => {
  test('a message runs again, as it was or changed', async () => {
    const session = client.session('ses_1');
    const run = await session.retry('run_1');
    expect(run.id).toBe(RUN);
    expect(await run.text()).toBe('x');
    await session.retry('run_1', { content: 'other', ifBusy: 'reject', idempotencyKey: 'k' });
    expect(requests).toEqual([
      ['POST /agent/session/ses_1/runs/run_1/retry?format=compact', {}],
      [
        'POST /agent/session/ses_1/runs/run_1/retry?if_busy=reject&format=compact',
        { content: 'other' },
        'with the key',
      ],
    ]);
  });

  test('one action runs again, in a run of its own', async () => {
    expect((await client.session('ses_1').rerun('run_1', 'a1')).id).toBe(RUN);
    expect(requests).toEqual([['POST /agent/session/ses_1/runs/run_1/retry?format=compact', { action: 'a1' }]]);
  });

  test.each([
    [{ parentRun: 'run_1' }, { content: 'm', parent_run: 'run_1' }],
    [{ parentRun: null }, { content: 'm', parent_run: null }],
    [{}, { content: 'm' }],
  ])('a message follows another run than the head: %j', async (options, body) => {
    await client.session('ses_1').send('m', options);
    expect(requests).toEqual([['POST /agent/session/ses_1/message?format=compact', body]]);
  });

  test('the history of any branch, and the head', async () => {
    const session = client.session('ses_1');
    await session.history({ run: 'run_1', limit: 5 });
    await session.setHead('run_1');
    expect(requests).toEqual([
      ['GET /agent/session/ses_1/history?run=run_1&limit=5', undefined],
      ['POST /agent/session/ses_1/head', { run_id: 'run_1' }],
    ]);
  });

  test('a fork is a session that can be used at once', async () => {
    const fork = await client.session('ses_1').fork({ atRun: 'run_1', idempotencyKey: 'k' });
    expect(fork.id).toBe('ses_new');
    await fork.fork();
    expect(requests).toEqual([
      ['POST /agent/session/ses_1/fork', { at_run: 'run_1' }, 'with the key'],
      ['POST /agent/session/ses_new/fork', {}],
    ]);
  });
});

test('[C5] a message that is steered gives the run that took it, from its first event on', async () => {
  const run = await client.session('ses_1').send('m', { ifBusy: 'steer' });
  expect(await run.text()).toBe('x');
  expect(requests).toEqual([
    ['POST /agent/session/ses_1/message?if_busy=steer&format=compact', { content: 'm' }],
    [`GET /agent/session/ses_1/events?after=0&run=${RUN}&format=compact`, undefined],
  ]);
});

test('[C6] the directory of sessions, as far as it is asked for', async () => {
  await client.sessions();
  await client.sessions({ userId: 'u 1', agent: 'assistant', status: 'idle', limit: 20, before: '5-ses_1' });
  expect(requests).toEqual([
    ['GET /sessions', undefined],
    ['GET /sessions?agent=assistant&status=idle&limit=20&before=5-ses_1&user_id=u+1', undefined],
  ]);
});
