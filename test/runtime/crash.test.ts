/** Crashes the object at every event that it writes; a new object continues the run (J1-J4, S10). */
import { abortAllDurableObjects, runDurableObjectAlarm } from 'cloudflare:test';
import { describe, expect, test } from 'vitest';
import type { RunResult } from '../../src/view/result.ts';
import { call, events, post } from './client.ts';
import '../support/fast-demo.ts';
import type { SessionEvent } from '../../src/domain/event.ts';
import { SESSIONS } from './bindings.ts';

const tool = (id: string, parameters: object = {}, more: object = {}): string =>
  `<action type="tool" mode="async" id="${id}">${JSON.stringify({
    name: 'echo',
    parameters: { delay_ms: 5, value: `value of ${id}`, ...parameters },
    ...more,
  })}</action>`;

const WORK: Readonly<Record<string, { readonly agent?: string; readonly text: string }>> = {
  diamond: {
    text: `<thought>Four.</thought>${tool('a')}${tool('b', { from: '$a.value' })}${tool('c', {}, { depends_on: ['a'] })}${tool('d', {}, { depends_on: ['b', 'c'] })}<response final="true">$d.value and $b.from</response>`,
  },
  'partial responses and a variable': {
    text: `<response final="false">First $a.value.</response>${tool('a')}<action type="internal" mode="sync" id="v">{"name":"set_variable","parameters":{"key":"kept","value":7}}</action>${tool('b', { seven: '$kept' })}<response final="true">$b.seven</response>`,
  },
  'a sub-agent': {
    agent: 'research_orchestrator',
    text: '<action type="agent" mode="async" id="r">{"name":"researcher","parameters":{"message":"calculate 6*7"}}</action><response final="true">$r</response>',
  },
};

const isEnd = ({ type }: SessionEvent): boolean => /^agent_(completed|failed|cancelled)$/.test(type);

/** The events that must be equal, without their times and the numbers of attempts. */
function essence(result: RunResult): unknown {
  const actions = result.actions.map(({ id, status, output }) => ({ id, status, output }));
  return { status: result.status, response: result.response, actions: actions.sort((a, b) => (a.id < b.id ? -1 : 1)) };
}

async function resultOf(session: string): Promise<RunResult> {
  const { runs } = await (
    await call(`/agent/session/${session}/runs`)
  ).json<{ runs: { run_id: string; status: string }[] }>();
  expect(runs).toHaveLength(1);
  return await (await call(`/agent/session/${session}/runs/${runs[0]?.run_id ?? ''}`)).json();
}

describe('[J2] [J3] a stop at every event', () => {
  test.each(Object.entries(WORK))('%s ends with the same events', async (name, { agent, text }) => {
    const begin = async (): Promise<Response> =>
      await post('/execute/streaming_protocol', { protocol_text: text, ...(agent === undefined ? {} : { agent }) });

    const whole = await begin();
    const all = (await events(whole)).filter(({ seq }) => seq !== null);
    const expected = essence(await resultOf(whole.headers.get('x-session-id') ?? ''));
    expect(expected).toMatchObject({ status: 'completed' });

    for (let stop = 1; stop < all.length; stop += 1) {
      const response = await begin();
      const session = response.headers.get('x-session-id') ?? '';
      const before = (await events(response, ({ seq }) => seq !== null && seq >= stop)).filter(
        ({ seq }) => seq !== null,
      );
      await abortAllDurableObjects();
      const after = await events(await call(`/agent/session/${session}/events`), isEnd);
      const journaled = after.filter(({ seq }) => seq !== null);
      expect(
        journaled.map(({ seq }) => seq),
        `${name}, stopped at ${stop}`,
      ).toEqual(journaled.map((_, index) => index + 1));
      expect(journaled.slice(0, before.length)).toEqual(before);
      expect(essence(await resultOf(session)), `${name}, stopped at ${stop}`).toEqual(expected);
      const settled = journaled.filter(({ type }) =>
        /^action_(completed|failed|skipped|cancelled|rejected)$/.test(type),
      );
      expect(new Set(settled.map(({ action_id: id }) => id)).size).toBe(settled.length);
    }
  });

  test('[J2] the watchdog continues the run without a client', async () => {
    const response = await post('/execute/streaming_protocol', {
      protocol_text: `${tool('slow', { delay_ms: 200 })}<response final="true">$slow.value</response>`,
    });
    const session = response.headers.get('x-session-id') ?? '';
    await events(response, ({ type }) => type === 'action_started');
    await abortAllDurableObjects();
    expect(await runDurableObjectAlarm(SESSIONS.getByName(session))).toBe(true);
    const rest = await events(await call(`/agent/session/${session}/events?after=3`), isEnd);
    expect(rest.at(-1)).toMatchObject({ type: 'agent_completed', data: { response: 'value of slow' } });
  });
});
