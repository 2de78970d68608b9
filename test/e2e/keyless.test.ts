/** API_KEYS and OWNER_OF_KEYLESS with `npm start` and one state folder (T4). */
import { spawn } from 'node:child_process';
import { afterAll, expect, test } from 'vitest';
import { cleanUp, post, start, stateFolder, stop } from '../support/npm-start.ts';
import type { RunResult } from '../../src/engine/run/run-result.ts';

afterAll(cleanUp);

const state = { CORTEX_STATE_DIR: stateFolder(), LLM_PROVIDER: 'demo' };
const KEYS =
  'ann:admin:key-of-ann-in-this-test@home,app:run:key-of-app-in-this-test@home,eve:run:key-of-eve-in-this-test';
const bearer = (who: 'ann' | 'app' | 'eve'): Record<string, string> => ({
  authorization: `Bearer key-of-${who}-in-this-test`,
});

const AGENT =
  'kind: Agent\nversion: "1"\nname: clerk\nsummary: Helps.\npersona: You help.\nimport: {relics: [notes]}\n';
const note = (call: string, parameters: unknown): unknown => ({
  agent: 'notes_keeper',
  stream: false,
  protocol_text: `<action type="relic" id="r">${JSON.stringify({ name: `notes.${call}`, parameters })}</action><response final="true">$r</response>`,
});

/** Sends one line to `npm run chat`. */
async function chat(url: string, environment: Record<string, string>, ...given: string[]): Promise<string> {
  const child = spawn(process.execPath, ['cli/main.ts', 'chat', ...given], {
    env: { PATH: process.env['PATH'], PORT: new URL(url).port, NO_COLOR: '1', ...environment },
  });
  const chunks: string[] = [];
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => chunks.push(String(chunk)));
  child.stdin.end('hello\n');
  await new Promise((resolve) => child.once('close', resolve));
  return chunks.join('');
}

test('[T4] what was made without keys is hidden by API_KEYS, announced, and given to a namespace by OWNER_OF_KEYLESS', async () => {
  const open = await start(state);
  const { session_id: id } = await post<{ session_id: string }>(`${open.url}/agent/assistant/session`, {});
  const uploaded = await fetch(`${open.url}/manifests/agent/clerk`, { method: 'PUT', body: AGENT });
  expect(uploaded.status).toBe(201);
  await post<RunResult>(`${open.url}/execute/direct`, note('set', { key: 'milk', value: 'two bottles' }));
  expect(open.output()).not.toContain('made without keys');
  await stop(open);

  const closed = await start({ ...state, API_KEYS: KEYS });
  expect(closed.output()).toContain(
    'API keys: ann (admin, namespace home), app (run, namespace home), eve (run, namespace eve)',
  );
  expect(closed.output()).toContain(
    'made without keys and hidden from all keys: 2 sessions, 1 manifest, 1 shared relic; OWNER_OF_KEYLESS=<namespace> gives them to a namespace',
  );
  expect(closed.output()).not.toContain('in-this-test');
  for (const who of ['ann', 'app', 'eve'] as const) {
    expect((await fetch(`${closed.url}/agent/session/${id}`, { headers: bearer(who) })).status).toBe(404);
  }
  const own = await post<{ session_id: string }>(`${closed.url}/agent/assistant/session`, {}, bearer('app'));
  expect(await chat(closed.url, {})).toContain('requires an API key');
  expect(await chat(closed.url, { CORTEX_API_KEY: 'key-of-app-in-this-test' }, 'clerk')).toContain(
    'No agent is called "clerk"',
  );
  expect(await chat(closed.url, {}, '--key', 'key-of-app-in-this-test')).toContain('session ses_');
  await stop(closed);

  const given = await start({ ...state, API_KEYS: KEYS, OWNER_OF_KEYLESS: 'home' });
  expect(given.output()).toContain('ann (admin, namespace home, with what was made without keys)');
  expect(given.output()).toContain('hidden because of OWNER_OF_KEYLESS: 2 sessions that the namespace home had before');
  const status = async (who: 'ann' | 'app' | 'eve', session: string): Promise<number> =>
    (await fetch(`${given.url}/agent/session/${session}`, { headers: bearer(who) })).status;
  expect([await status('ann', id), await status('app', id), await status('eve', id)]).toEqual([200, 200, 404]);
  expect(await status('app', own.session_id)).toBe(404);
  const kept = await post<RunResult>(`${given.url}/execute/direct`, note('get', { key: 'milk' }), bearer('app'));
  expect(kept.response).toContain('two bottles');
  expect(await chat(given.url, { CORTEX_API_KEY: 'key-of-app-in-this-test' }, 'clerk')).toMatch(
    /session ses_.* with clerk/,
  );
  const others = await post<RunResult>(`${given.url}/execute/direct`, note('get', { key: 'milk' }), bearer('eve'));
  expect(others.response).not.toContain('two bottles');
});
