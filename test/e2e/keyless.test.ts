/**
 * Two starts with one state folder: what `npm start` prints about failed runs, refused webhooks and runners that are away
 * (X5), and API_KEYS (T4; start.test.ts has OWNER_OF_KEYLESS).
 */
import { spawn } from 'node:child_process';
import { createServer } from 'node:http';
import type { Server } from 'node:http';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { PACKAGE_ROOT } from '../../cli/project/folders.ts';
import { freePort } from '../../cli/system/services.ts';
import { cortexHere } from '../support/cortex.ts';
import { cleanUp, post, start, stateFolder, stop } from '../support/npm-start.ts';
import type { Started } from '../support/npm-start.ts';
import type { RunResult } from '../../src/view/result.ts';

const MODEL_KEY = 'the-key-of-the-model-endpoint';
const servers: Server[] = [];
const state = { CORTEX_STATE_DIR: stateFolder(), RUNNER_URLS: '', RUNNER_SECRET: 'r'.repeat(40) };
let runnerPort = 0;
let runner: Server;
/** The system without keys. Its model fails. */
let open: Started;

/** A runner that only says that it is healthy. */
async function runnerOn(port: number): Promise<Server> {
  const server = createServer((_request, response) => {
    response.setHeader('content-type', 'application/json');
    response.end(JSON.stringify({ status: 'healthy', sandbox: {}, executors: [], jobs: {} }));
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  return server;
}

/** A model endpoint that quotes the request in its error. */
async function modelOn(port: number): Promise<void> {
  const server = createServer((request, response) => {
    response.statusCode = 401;
    response.end(JSON.stringify({ error: { message: `wrong key ${request.headers.authorization ?? ''}` } }));
  });
  servers.push(server);
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
}

beforeAll(async () => {
  runnerPort = await freePort();
  const modelPort = await freePort();
  state.RUNNER_URLS = `http://127.0.0.1:${runnerPort}`;
  runner = await runnerOn(runnerPort);
  await modelOn(modelPort);
  open = await start({
    ...state,
    LLM_BASE_URL: `http://127.0.0.1:${modelPort}/v1`,
    LLM_MODEL: 'm',
    LLM_API_KEY: MODEL_KEY,
  });
});
afterAll(async () => {
  await cleanUp();
  for (const server of servers) server.closeAllConnections();
});

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

test('[X5] one line for each failed run, refused webhook and absent runner, with the time and without the raw entry', async () => {
  const lines = (text: string): string[] =>
    open
      .output()
      .split('\n')
      .filter((line) => line.includes(text));
  const { session_id: id } = await post<{ session_id: string }>(`${open.url}/agent/assistant/session`, {});
  const message = { content: 'a private question', stream: false };
  const run = await post<RunResult>(`${open.url}/agent/session/${id}/message`, message);
  expect(run.status).toBe('failed');
  await expect.poll(() => lines('run failed')).toHaveLength(1);
  expect(lines('run failed')[0]).toMatch(
    new RegExp(String.raw`^\d\d:\d\d:\d\d run failed: agent assistant, ${run.run_id}: ${run.error?.code ?? ''}: `),
  );

  for (let repeat = 0; repeat < 3; repeat += 1) await post(`${open.url}/webhooks/nothing`, {});
  await expect.poll(() => lines('webhook refused')).toHaveLength(1);

  const away = new Promise((resolve) => runner.close(resolve));
  runner.closeAllConnections();
  await away;
  await expect.poll(() => lines('runner unreachable')).toHaveLength(1);
  expect(await (await fetch(`${open.url}/health`)).json()).toMatchObject({
    status: 'degraded',
    parts: { runner: 'unreachable' },
  });
  await runnerOn(runnerPort);
  await expect.poll(() => lines('runner reachable')).toHaveLength(1);
  expect(lines('runner unreachable')[0]).toMatch(/^\d\d:\d\d:\d\d runner unreachable: http/);
  for (const absent of ['{"level"', 'private question', MODEL_KEY]) expect(open.output()).not.toContain(absent);
});

test('[T4] what was made without keys is hidden by API_KEYS, and announced', async () => {
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
    'made without keys and hidden from all keys: 3 sessions, 1 manifest, 1 shared relic; OWNER_OF_KEYLESS=<namespace> gives them to a namespace',
  );
  expect(closed.output()).not.toContain('in-this-test');
  for (const who of ['ann', 'app', 'eve'] as const) {
    expect((await fetch(`${closed.url}/agent/session/${id}`, { headers: bearer(who) })).status).toBe(404);
  }
  const refused = async (...args: string[]): Promise<string> =>
    (await cortexHere(args, { cwd: PACKAGE_ROOT, env: { CORTEX_URL: closed.url } })).err;
  expect(await refused('chat')).toContain('requires an API key');
  expect(await refused('chat', 'clerk', '--key', 'key-of-app-in-this-test')).toContain('No agent is called "clerk"');
  expect(await chat(closed.url, {}, '--key', 'key-of-app-in-this-test')).toContain('session ses_');
  await stop(closed);
});
