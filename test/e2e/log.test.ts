/** What `npm start` prints about failed runs, refused webhooks and runners that are away (X5). */
import { createServer } from 'node:http';
import type { Server } from 'node:http';
import { afterAll, expect, test } from 'vitest';
import { freePort } from '../../cli/system/services.ts';
import type { RunResult } from '../../src/engine/run/run-result.ts';
import { cleanUp, post, start, stop } from '../support/npm-start.ts';

const KEY = 'the-key-of-the-model-endpoint';
const servers: Server[] = [];

afterAll(async () => {
  await cleanUp();
  for (const server of servers) server.closeAllConnections();
});

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

test('[X5] one line for each failed run, refused webhook and absent runner, with the time and without the raw entry', async () => {
  const [runnerPort, modelPort] = [await freePort(), await freePort()];
  const runner = await runnerOn(runnerPort);
  await modelOn(modelPort);
  const system = await start({
    LLM_BASE_URL: `http://127.0.0.1:${modelPort}/v1`,
    LLM_MODEL: 'm',
    LLM_API_KEY: KEY,
    RUNNER_URLS: `http://127.0.0.1:${runnerPort}`,
    RUNNER_SECRET: 'r'.repeat(40),
  });
  const lines = (text: string): string[] =>
    system
      .output()
      .split('\n')
      .filter((line) => line.includes(text));

  const { session_id: id } = await post<{ session_id: string }>(`${system.url}/agent/assistant/session`, {});
  const message = { content: 'a private question', stream: false };
  const run = await post<RunResult>(`${system.url}/agent/session/${id}/message`, message);
  expect(run.status).toBe('failed');
  await expect.poll(() => lines('run failed')).toHaveLength(1);
  expect(lines('run failed')[0]).toMatch(
    new RegExp(String.raw`^\d\d:\d\d:\d\d run failed: agent assistant, ${run.run_id}: ${run.error?.code ?? ''}: `),
  );

  for (let repeat = 0; repeat < 3; repeat += 1) await post(`${system.url}/webhooks/nothing`, {});
  await expect.poll(() => lines('webhook refused')).toHaveLength(1);

  const away = new Promise((resolve) => runner.close(resolve));
  runner.closeAllConnections();
  await away;
  await expect.poll(() => lines('runner unreachable')).toHaveLength(1);
  expect(await (await fetch(`${system.url}/health`)).json()).toMatchObject({
    status: 'degraded',
    parts: { runner: 'unreachable' },
  });
  await runnerOn(runnerPort);
  await expect.poll(() => lines('runner reachable')).toHaveLength(1);
  expect(lines('runner unreachable')[0]).toMatch(/^\d\d:\d\d:\d\d runner unreachable: http/);

  await stop(system);
  for (const absent of ['{"level"', 'private question', KEY]) expect(system.output()).not.toContain(absent);
});
