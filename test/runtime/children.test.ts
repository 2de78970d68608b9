/** Sub-agents: separate sessions in separate objects (M7). */
import { abortAllDurableObjects, runInDurableObject } from 'cloudflare:test';
import { describe, expect, test } from 'vitest';
import { limits } from '../../src/domain/limits.ts';
import type { ChildEnd } from '../../src/domain/ports/children.ts';
import type { Spent } from '../../src/domain/spent.ts';
import type { RunResult } from '../../src/view/result.ts';
import { childSessions } from '../../src/durable/children.ts';
import type { Env } from '../../src/durable/env.ts';
import { VirtualClock } from '../../testing/virtual-clock.ts';
import { call, events, execute, manifest, post, upload } from './client.ts';
import type { SessionEvent } from '../../src/domain/event.ts';
import { SESSIONS } from './bindings.ts';
import { childEventsOf, eventsOf } from '../support/events.ts';

const ask = (id: string, message: string, more: object = {}): string =>
  `<action type="agent" mode="async" id="${id}">${JSON.stringify({ name: 'researcher', parameters: { message }, ...more })}</action>`;

/** The events of a child as its parent's stream shows them. */
const childEvents = (all: readonly SessionEvent[], id: string): SessionEvent[] =>
  all.filter((event) => event.action_id === id).flatMap(childEventsOf);

const ENDED = {
  sessionId: 's',
  error: null,
  spent: { modelCalls: 0, tokens: 0, cost: 0, actions: 0, children: 1 },
};

/** Runs a child whose object is replaced with `object`. */
function childOf(object: object, clock: VirtualClock, signal: AbortSignal): Promise<ChildEnd> {
  const storage = { kv: { put: () => undefined } } as unknown as DurableObjectStorage;
  const platform = { SESSIONS: { getByName: () => object } } as unknown as Env;
  const parent = { session_id: 's', agent: 'a', user_id: null, owner: null, kind: 'chat', metadata: {} } as const;
  const children = childSessions(platform, clock, storage, () => ({ ...parent, created_at: 0 }));
  const request = { key: 'k', type: 'agent', name: 'a', message: 'm', inputs: {}, budget: null } as const;
  return children.run(request, { signal, event: () => undefined });
}

describe('[M7] sub-agents', () => {
  test('run in parallel, each in its own session, and their answers are inserted into the parent’s', async () => {
    const response = await post('/execute/streaming_protocol', {
      agent: 'research_orchestrator',
      protocol_text: `${ask('r1', 'calculate 12*12')}${ask('r2', 'calculate 7*6')}${ask('r3', 'calculate 5+4')}<response final="true">$r1 | $r2 | $r3</response>`,
    });
    const all = await events(response);
    const [done] = eventsOf(all, 'agent_completed');
    expect(done?.data.response).toMatch(/144[\s\S]*\|[\s\S]*42[\s\S]*\|[\s\S]*9/);
    const started = all.filter(({ type }) => type === 'action_started').map(({ seq }) => seq ?? 0);
    const ended = all.filter(({ type }) => type === 'action_completed').map(({ seq }) => seq ?? 0);
    expect(Math.max(...started)).toBeLessThan(Math.min(...ended));
    const sessions = new Set<string>();
    const seenRun = new Map<string, string>();
    for (const id of ['r1', 'r2', 'r3']) {
      const seen = childEvents(all, id);
      expect(seen.map(({ type }) => type)).toEqual(
        expect.arrayContaining(['agent_started', 'action_completed', 'agent_completed']),
      );
      sessions.add(seen[0]?.session_id ?? '');
      seenRun.set(seen[0]?.session_id ?? '', seen[0]?.run_id ?? '');
    }
    expect(sessions.size).toBe(3);
    for (const id of sessions) {
      const child = await (await call(`/agent/session/${id}`)).json<Record<string, unknown>>();
      expect(child).toMatchObject({ agent: 'researcher', kind: 'child', parent: { depth: 1 } });
      const run = seenRun.get(id) ?? '';
      const prompt = await (await call(`/agent/session/${id}/runs/${run}/prompt`)).json<Record<string, unknown>>();
      expect(prompt).toMatchObject({ run_id: run, dropped: 0, generations: [{ iteration: 1 }] });
      expect(JSON.stringify(prompt)).toMatch(/"role":"user","content":"calculate/);
    }
  });

  test('[S12] workflows that start themselves in parallel end within the limit of a run', async () => {
    const steps = Array.from(
      { length: 8 },
      (_, n) => `{ name: s${n}, type: workflow, target: swarm, condition: "true" }`,
    );
    const yaml = `kind: Workflow
version: "1.0"
name: swarm
summary: Starts itself
import: { workflows: [swarm] }
max_parallel_steps: 8
fail_fast: false
steps:
  - name: all
    type: parallel
    on_failure: continue
    steps: [${steps.map((step) => step.replace(' }', ', on_failure: continue }')).join(', ')}]
`;
    expect((await call('/manifests/workflow/swarm', { method: 'PUT', body: yaml })).status).toBe(201);
    const result = await (await post('/workflows/swarm/runs', { stream: false })).json<RunResult>();
    const count = async (id: string): Promise<number> => {
      const ids = await runInDurableObject(SESSIONS.getByName(id), (_object, { storage }) =>
        [...storage.kv.list({ prefix: 'child:' })].map(([key]) => key.slice('child:'.length)),
      );
      const below = await Promise.all(ids.map(count));
      return below.reduce((sum, one) => sum + one, ids.length);
    };
    const sessions = await count(result.session_id);
    expect(sessions).toBeLessThanOrEqual(limits.childrenPerRun);
    expect(sessions).toBeGreaterThan(8);
    const told = await runInDurableObject(SESSIONS.getByName(result.session_id), (_object, { storage }) =>
      [...storage.kv.list<Spent>({ prefix: 'child:' })].map(([, { children }]) => children ?? 0),
    );
    expect(told.reduce((sum, one) => sum + one, 0)).toBe(sessions);
  });

  test('are deleted with the session that started them', async () => {
    const result = await execute(ask('r', 'calculate 1+1'), { agent: 'research_orchestrator' });
    const all = await events(
      await call(`/agent/session/${result.session_id}/events`),
      ({ type }) => type === 'agent_completed',
    );
    expect(all.length).toBeGreaterThan(0);
    const ids = await runInDurableObject(SESSIONS.getByName(result.session_id), (_object, { storage }) =>
      [...storage.kv.list({ prefix: 'child:' })].map(([key]) => key.slice('child:'.length)),
    );
    expect(ids).toHaveLength(1);
    const child = `/agent/session/${ids[0] ?? ''}`;
    expect((await call(child)).status).toBe(200);
    expect((await call(`/agent/session/${result.session_id}`, { method: 'DELETE' })).status).toBe(204);
    expect((await call(child)).status).toBe(404);
  });

  test('[J5] the cancel of a child is sent again if the child’s host is lost', async () => {
    const clock = new VirtualClock();
    const cancels: number[] = [];
    const vanishing = {
      startChild: () => Promise.resolve('run_1'),
      cancelChild: () => {
        cancels.push(clock.now());
        return cancels.length < 3
          ? Promise.reject(new Error('the host has vanished'))
          : Promise.resolve({ type: 'ok', value: null });
      },
      childEnd: () => Promise.resolve({ type: 'ok', value: { ...ENDED, status: 'cancelled', output: '' } }),
    };
    const end = childOf(vanishing, clock, AbortSignal.abort('enough'));
    for (let turn = 0; turn < 100 && clock.next === null; turn += 1) await Promise.resolve();
    while (cancels.length < 3) {
      if (clock.next !== null) clock.advance(clock.next - clock.now());
      await new Promise((resolve) => setTimeout(resolve, 0));
    }
    expect(await end).toMatchObject({ status: 'cancelled' });
  });

  test('[M7] a parent waits for a child whose object runs older code during a roll-out', async () => {
    const clock = new VirtualClock();
    const calls: number[] = [];
    const late = {
      startChild: () => Promise.resolve('run_1'),
      follow: async (_runId: string, _after: number, take: (batch: unknown) => boolean) => {
        calls.push(clock.now());
        if (calls.length < 3)
          return { type: 'error', code: 'schema_too_new', message: 'stored by newer code', details: {} };
        take([{ seq: 1, type: 'agent_completed', run_id: 'run_1', data: {} }]);
        return await Promise.resolve({ type: 'ok', value: null });
      },
      childEnd: () => Promise.resolve({ type: 'ok', value: { ...ENDED, status: 'completed', output: 'done' } }),
    };
    const end = childOf(late, clock, new AbortController().signal);
    while (calls.length < 3) {
      if (clock.next !== null) clock.advance(clock.next - clock.now());
      await new Promise((resolve) => setTimeout(resolve, 0));
    }
    expect(await end).toMatchObject({ status: 'completed', output: 'done' });
  });

  test('[M7] a parent does not wait for a child that was deleted', async () => {
    const gone = {
      startChild: () => Promise.resolve('run_1'),
      follow: () => Promise.resolve({ type: 'error', code: 'unknown_session', message: 'deleted', details: {} }),
    };
    await expect(childOf(gone, new VirtualClock(), new AbortController().signal)).rejects.toMatchObject({
      code: 'unknown_session',
    });
  });

  test('[J5] a cancel reaches all descendants', async () => {
    const response = await post('/execute/streaming_protocol', {
      agent: 'research_orchestrator',
      protocol_text: ask('r', 'calculate 1+1'),
    });
    const id = response.headers.get('x-session-id') ?? '';
    let child = '';
    await events(response, (event) => {
      child ||= childEventsOf(event)[0]?.session_id ?? '';
      return child !== '';
    });
    await post(`/agent/session/${id}/cancel`, { reason: 'enough' });
    const parent = await (await call(`/agent/session/${id}/runs`)).json<{ runs: { status: string }[] }>();
    expect(parent.runs).toMatchObject([{ status: 'cancelled' }]);
    const below = await events(await call(`/agent/session/${child}/events`), ({ type }) => /^agent_(c|f)/.test(type));
    expect(below.at(-1)?.type).toBe('agent_cancelled');
  });

  test('[J2] a child survives the loss of its parent’s host and of its own: the parent finds it again', async () => {
    const response = await post('/execute/streaming_protocol', {
      agent: 'research_orchestrator',
      protocol_text: `${ask('r', 'calculate 6*7')}<response final="true">$r</response>`,
    });
    const id = response.headers.get('x-session-id') ?? '';
    await events(response, ({ type }) => type === 'progress');
    await abortAllDurableObjects();
    const rest = await events(await call(`/agent/session/${id}/events`), ({ type }) => /^agent_(c|f)/.test(type));
    expect(rest.at(-1)?.type).toBe('agent_completed');
    expect(eventsOf(rest, 'agent_completed')[0]?.data.response).toContain('42');
    const journaled = rest.filter(({ seq }) => seq !== null);
    expect(journaled.map(({ seq }) => seq)).toEqual(journaled.map((_, index) => index + 1));
    expect(journaled.filter(({ type }) => type === 'action_started')).toHaveLength(1);
  });
});

const STEPS = 'steps: [{name: said, type: tool, target: echo, parameters: {text: hi}}]\noutputs: {said: steps.said}\n';
const WORKFLOW = '<action type="workflow" id="w">{"name":"policy_steps"}</action>';

test('[C9] the policies of an agent bind the steps of a workflow that it starts, in a session of its own', async () => {
  const agent = 'persona: You.\nimport: {tools: [echo], workflows: [policy_steps]}\n';
  const policies = 'policies: [{when: action.name == "echo", do: deny, message: no echo}]';
  await upload(
    manifest('Workflow', 'policy_steps', STEPS),
    manifest('Agent', 'policy_free', agent),
    manifest('Agent', 'policy_bound', `${agent}${policies}`),
  );
  const free = await execute(WORKFLOW, { agent: 'policy_free' });
  expect(free.actions[0]).toMatchObject({ status: 'completed' });
  const bound = await execute(WORKFLOW, { agent: 'policy_bound' });
  expect(bound.actions[0]).toMatchObject({
    status: 'failed',
    error: {
      code: 'child_failed',
      message: expect.stringContaining(
        'A policy does not allow the action "said" (agent policy_bound, rule 1): no echo',
      ),
    },
  });
});
