/**
 * Each class of Durable Objects does its work in workerd: the part of the tests in workerd that belongs to `npm test`. The
 * others are `npm run test:system`.
 */
import { runInDurableObject } from 'cloudflare:test';
import { expect, test } from 'vitest';
import type { Env } from '../../src/durable/env.ts';
import { statusOf } from '../../src/durable/status.ts';
import { here, STATUS } from './bindings.ts';
import { call, execute, newSession, post } from './client.ts';

/** The bindings of objects that each deployment has. */
type ObjectBinding = {
  [Name in keyof Env]-?: Env[Name] extends { getByName(name: string): unknown } ? Name : never;
}[keyof Env];

interface Smoke {
  readonly does: string;
  readonly check: () => Promise<void>;
}

const WATCHER = `kind: Agent
version: "1.0"
name: watcher
summary: Watches a value
persona: You watch.
import: { tools: [echo] }
context_feeds:
  - id: value
    type: periodic
    interval: 1h
    shared: true
    source: { type: tool, name: echo, params: { value: 7 } }
`;

const relic = (name: string, parameters: unknown): string =>
  `<action type="relic" id="a">${JSON.stringify({ name, parameters })}</action>`;

/** What is stored in the object of a kind. */
const keysOf = async (kind: string): Promise<string> =>
  await runInDurableObject(STATUS.getByName(`${kind}/smoke`), (_object, { storage }) =>
    Array.from(storage.kv.list(), ([key]) => key).join(' '),
  );

/** A class without a row does not compile. */
const SMOKE: Readonly<Record<ObjectBinding, Smoke>> = {
  SESSIONS: {
    does: 'a session runs an action and answers',
    check: async () => {
      const text =
        '<action type="tool" id="e">{"name":"echo","parameters":{"value":7}}</action><response final="true">$e.value</response>';
      expect(await execute(text)).toMatchObject({ status: 'completed', response: '7' });
    },
  },
  DIRECTORY: {
    does: 'the directory lists a session',
    check: async () => {
      const id = await newSession();
      await (await post(`/agent/session/${id}/message`, { content: 'hello', stream: false })).body?.cancel();
      await expect
        .poll(async () => {
          const { sessions } = await (await call('/sessions')).json<{ sessions: { session_id: string }[] }>();
          return sessions.map(({ session_id: one }) => one);
        })
        .toContain(id);
    },
  },
  SCHEDULES: {
    does: 'a schedule has its next time',
    check: async () => {
      const schedules = here.SCHEDULES.getByName('smoke');
      await schedules.keep([{ workflow: 'data_pipeline', cron: '0 3 * * *', timezone: 'UTC', inputs: {} }], null);
      expect(await schedules.outlook(1)).toMatchObject([{ workflow: 'data_pipeline' }]);
    },
  },
  CATALOGS: {
    does: 'a manifest that was uploaded is read back',
    check: async () => {
      expect((await call('/manifests/agent/watcher', { method: 'PUT', body: WATCHER })).status).toBeLessThan(300);
      expect(await (await call('/manifests/agent/watcher')).text()).toContain('Watches a value');
    },
  },
  RELICS: {
    does: 'an edge relic keeps a value',
    check: async () => {
      const agent = 'notes_keeper';
      await execute(relic('notes.set', { key: 'smoke', value: 'kept' }), { agent });
      const { actions } = await execute(relic('notes.get', { key: 'smoke' }), { agent });
      expect(actions.map(({ output }) => output)).toEqual(['kept']);
    },
  },
  FEEDS: {
    does: 'a shared feed gives its value',
    check: async () => {
      await call('/manifests/agent/watcher', { method: 'PUT', body: WATCHER });
      const id = await newSession('watcher');
      await (await post(`/agent/session/${id}/message`, { content: 'hello', stream: false })).body?.cancel();
      const response = await call(`/agent/session/${id}/feeds`);
      expect(await response.json()).toMatchObject({ feeds: [{ id: 'value', value: { value: 7 } }] });
    },
  },
  STATUS: {
    does: 'each kind of shared state is kept, and in an object of its own',
    check: async () => {
      const report = {
        endpoint: 'https://model.example',
        model: 'm',
        key: null,
        state: 'open',
        failures: 3,
        next_try_at: Date.now() + 60_000,
      } as const;
      const [identity, rate, endpoints, tools] = [
        statusOf(here, 'identity', 'smoke'),
        statusOf(here, 'rate', 'smoke'),
        statusOf(here, 'endpoints', 'smoke'),
        statusOf(here, 'code-tools', 'smoke'),
      ];
      await endpoints.recordEndpoint(report);
      await tools.toolDied('loop', { host: null, session: 'ses_1' });
      expect({
        identities: new Set([(await identity.identity()).secret, (await identity.identity()).secret]).size,
        rates: [await rate.take(1), await rate.take(1), await statusOf(here, 'rate', 'other').take(1)],
        endpoints: await endpoints.failingEndpoints(),
        tools: await tools.tools(),
        objects: new Set(await Promise.all(['identity', 'rate', 'endpoints', 'code-tools'].map(keysOf))),
      }).toEqual({
        identities: 1,
        rates: [null, expect.any(Number), null],
        endpoints: [expect.objectContaining(report)],
        tools: { setAside: [], suspects: ['loop'] },
        objects: new Set(['identity', 'emptyAt', 'endpoints', 'deaths']),
      });
    },
  },
};

test.each(Object.entries(SMOKE).map(([name, { does, check }]) => ({ name, does, check })))(
  '$name: $does',
  async ({ check }) => {
    await check();
  },
);
