/** What clients see of summaries (C10): the history, streams, a run's document, and a token that may only view. */
import { describe, expect, test } from 'vitest';
import { SCOPES_HEADER } from '../../src/http/session-env.ts';
import type { ModelDelta } from '../../src/domain/ports/model.ts';
import { say, sessionKit } from '../support/session-kit.ts';
import type { SessionKit } from '../support/session-kit.ts';
import { apiOf } from './session-api.ts';

async function summarised(gate: Promise<void> = Promise.resolve()): Promise<SessionKit> {
  const kit = await sessionKit({
    agent: (agent) => ({
      ...agent,
      memory: { maxTurns: null, summarizeAfter: 2, summary: { by: 'model', tokens: 200, template: null } },
    }),
    async *stream(request): AsyncGenerator<ModelDelta> {
      if (request.agent === null) await gate;
      const text = request.agent === null ? 'the record' : '<response final="true">ok</response>';
      yield { type: 'text', text };
      yield { type: 'finish', reason: 'stop' };
    },
  });
  for (const content of ['a', 'b', 'c']) await say(kit, content);
  return kit;
}

const asking = (kit: SessionKit) => {
  const { load } = apiOf(kit);
  return async (path: string, scopes?: string) =>
    await load(path, scopes === undefined ? {} : { headers: { [SCOPES_HEADER]: scopes } });
};

describe('[C10] [H1] GET …/history', () => {
  test('has the summary of its branch', async () => {
    const kit = await summarised();
    await kit.settled();
    const [first, , last] = kit.session.runs().map(({ runId }) => runId);
    const ask = asking(kit);
    const summary = { text: 'the record', turns: 1, until_run: first };
    expect(await (await ask('/history')).json()).toMatchObject({ summary });
    expect(await (await ask(`/history?run=${last}&limit=1`)).json()).toMatchObject({ summary });
    expect(await (await ask(`/history?run=${first}`)).json()).toMatchObject({ summary });
  });

  test('has none before there is one, and for a token that may only view', async () => {
    const gate = Promise.withResolvers<void>();
    const kit = await summarised(gate.promise);
    const ask = asking(kit);
    expect(await (await ask('/history')).json()).not.toHaveProperty('summary');
    gate.resolve();
    await kit.settled();
    const seen = await (await ask('/history', 'view')).json();
    expect(seen).toHaveProperty('messages');
    expect(seen).not.toHaveProperty('summary');
    expect(await (await ask('/history', 'view read')).text()).toContain('the record');
  });
});

describe('[C10] [H2] streams', () => {
  test('of the session show a summary live; those of its run have ended, and its document is the same', async () => {
    const gate = Promise.withResolvers<void>();
    const kit = await summarised(gate.promise);
    const ask = asking(kit);
    const run = kit.session.runs().at(-1)?.runId ?? '';
    const before = await (await ask(`/events?run=${run}`)).text();
    const document = await (await ask(`/runs/${run}`)).text();
    const live = await ask(`/events?after=${kit.session.lastSeq}`);
    gate.resolve();
    await kit.settled();
    const reader = live.body?.getReader();
    let text = '';
    while (!text.includes('event: memory_changed')) {
      const { value, done } = (await reader?.read()) ?? { done: true };
      if (done) break;
      text += new TextDecoder().decode(value);
    }
    await reader?.cancel();
    expect(text).toContain('"summary":"the record"');
    expect(before).toMatch(/event: agent_completed\ndata: .*\n\n$/);
    expect(await (await ask(`/events?run=${run}`)).text()).toBe(before);
    expect(await (await ask(`/runs/${run}`)).text()).toBe(document);
    expect(kit.session.hasEnded(run)).toBe(true);
  });
});
