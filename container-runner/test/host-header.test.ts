/** Requests with a malformed `Host` (R1). */
import { afterAll, beforeAll, expect, test } from 'vitest';

import { MALFORMED_HOSTS, sendRaw } from '../../test/support/raw-http.ts';
import { startRunner, type TestRunner } from './support/test-runner.ts';

let runner: TestRunner;
beforeAll(async () => {
  runner = await startRunner();
});
afterAll(() => runner.close());

const portOf = (): number => Number(new URL(runner.url).port);

test.each(MALFORMED_HOSTS)('[R1] %s: 400 with a problem document', async (_name, hosts) => {
  const { status, head, body } = await sendRaw(portOf(), ['GET /health HTTP/1.1', ...hosts, 'Connection: close']);
  expect(status).toBe(400);
  expect(head).toContain('application/problem+json');
  expect(JSON.parse(body)).toMatchObject({ status: 400, code: 'invalid_request' });
});

test.each(['127.0.0.1:8790', 'localhost', '[::1]:8790', 'Runner_1.example'])(
  '[R1] the Host %s is served',
  async (host) => {
    expect((await sendRaw(portOf(), ['GET /health HTTP/1.1', `Host: ${host}`, 'Connection: close'])).status).toBe(200);
  },
);
