/** Our own client in workerd, over a connection that is cut (K3). */
import { abortAllDurableObjects } from 'cloudflare:test';
import { beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { Client, emptyMessage, fold } from '../../src/client/index.ts';
import type { ClientOptions } from '../../src/client/index.ts';
import type { SessionEvent } from '../../src/domain/event.ts';
import { QuarantineSlots } from '../../src/engine/replay/quarantine-slots.ts';
import type { RunResult } from '../../src/engine/run/run-result.ts';
import { cutAfter } from '../client/cut-response.ts';
import { NOTE, PHOTO_CHARS, scenario } from '../client/scenario.ts';
import { call, post } from './client.ts';

const URL_HERE = 'http://127.0.0.1:8787';
const SEAL =
  'kind: Tool\nversion: "1.0"\nname: seal\nsummary: Seals.\nimplementation: {type: builtin, entrypoint: echo}\nparameters: {text: string}\napproval: always\n';
const agentOf = (name: string, imports: string): string =>
  `kind: Agent\nversion: "1.0"\nname: ${name}\nsummary: Seals.\npersona: {agent: You seal.}\nclient_tools: allow\nimport: ${imports}\n`;

beforeEach(() => {
  vi.spyOn(QuarantineSlots.prototype, 'delayOf').mockReturnValue(0);
});

beforeAll(async () => {
  for (const [path, body] of [
    ['tool/seal', SEAL],
    ['agent/deputy', agentOf('deputy', '{tools: [seal]}')],
    ['agent/client_user', agentOf('client_user', '{tools: [seal], agents: [deputy]}')],
  ] as const) {
    expect([200, 201]).toContain((await call(`/manifests/${path}`, { method: 'PUT', body })).status);
  }
});

const scopes = ['read', 'message', 'approve', 'tools', 'files'];
const userToken = async (): Promise<string> => {
  const issued = await post('/tokens', { user_id: 'ann', scopes, expires_in: 3_600 });
  return (await issued.json<{ token: string }>()).token;
};

const fetchHere: NonNullable<ClientOptions['fetch']> = async (url, init) =>
  await call(url.slice(URL_HERE.length), init);

/** Each stream is cut after some bytes; every third one gets past the largest event. */
function cutting(): { readonly fetch: NonNullable<ClientOptions['fetch']>; readonly cuts: () => number } {
  let cuts = 0;
  return {
    cuts: () => cuts,
    fetch: async (url, init) => {
      const response = await fetchHere(url, init);
      if (response.headers.get('content-type')?.startsWith('text/event-stream') !== true) return response;
      cuts += 1;
      return cutAfter(response, cuts % 3 === 0 ? 10 * PHOTO_CHARS : 500 + 401 * cuts);
    },
  };
}

async function stored(session: string, run: string): Promise<{ events: SessionEvent[]; document: RunResult }> {
  const replay = new Client({ url: URL_HERE, fetch: fetchHere }).session(session).run(run);
  const events: SessionEvent[] = [];
  for await (const event of replay.events()) if (event.seq !== null) events.push(event);
  const document = await call(`/agent/session/${session}/runs/${run}`);
  return { events, document: await document.json<RunResult>() };
}

test('[K3] client tools, approvals also of sub-agents, and files work over a connection that is cut; no event is lost or doubled', async () => {
  const { fetch, cuts } = cutting();
  const report = await scenario({
    url: URL_HERE,
    token: await userToken(),
    fetch,
    agent: 'client_user',
    message: 'use locate; use photo; use seal; ask deputy to use seal',
  });
  const { events, document } = await stored(report.session, report.run);
  expect(report.journaled).toEqual(events.map(({ seq, type }) => [seq, type]));
  expect(report.patched.every(([, , isBroken]) => !isBroken)).toBe(true);
  const { progress: _none, ...first } = report.message.actions[0] ?? {};
  expect(events.reduce(fold, emptyMessage(report.run)).actions[0]).toMatchObject(first);
  expect(report.message).toMatchObject({ status: 'completed', response: document.response, warnings: [] });
  expect(report.message.response).toContain('Łódź');
  expect(report.calls).toHaveLength(2);
  expect(report.asked.toSorted()).toEqual(['client_user: seal', 'deputy: seal']);
  expect(report.content).toBe(NOTE);
  expect(report.artifacts).toMatchObject([{ start: '{"pix' }]);
  expect(report.artifacts[0]?.size).toBeGreaterThan(PHOTO_CHARS);
  expect(report.history.messages.map(({ role }) => role)).toEqual(['user', 'assistant']);
  expect(cuts()).toBeGreaterThan(1);
});

test('[K3] a run that waits is continued by its client after the loss of its object', async () => {
  const client = new Client({ url: URL_HERE, token: await userToken(), fetch: fetchHere });
  const session = await client.createSession('client_user');
  const run = await session.send('use locate', { tools: [{ name: 'locate', description: 'Where.' }] });
  const seen: SessionEvent[] = [];
  for await (const event of run.events()) {
    seen.push(event);
    if (event.type !== 'agent_waiting') continue;
    await abortAllDurableObjects();
    const open = (await run.document()).pending ?? [];
    for (const { call_id: id } of open) await session.settle(id, { output: { city: 'Łódź' } });
  }
  const { events } = await stored(session.id, run.id);
  expect(seen.filter(({ seq }) => seq !== null).map(({ seq, type }) => [seq, type])).toEqual(
    events.map(({ seq, type }) => [seq, type]),
  );
  expect(seen.reduce(fold, emptyMessage(run.id))).toMatchObject({
    status: 'completed',
    actions: [{ name: 'locate', status: 'completed', output: { city: 'Łódź' } }],
  });
});
