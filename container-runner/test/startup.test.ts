/** The answers of a runner during its start (R1, R2). */
import { afterEach, expect, test } from 'vitest';

import { freePort } from '../../cli/system/services.ts';
import { everywhere, type Sandbox } from '../sandbox/sandbox.ts';
import { Startup } from '../startup.ts';
import { FakeSandbox } from './support/fake-sandbox.ts';
import { job, startRunner, type TestRunner } from './support/test-runner.ts';
import { eventually } from '../../test/support/eventually.ts';

/** A sandbox whose probe takes as long as the test requires, like one that builds its images. */
class SlowSandbox extends FakeSandbox {
  readonly found = Promise.withResolvers<void>();

  override async probe(): ReturnType<Sandbox['probe']> {
    await this.found.promise;
    return everywhere({ ok: true });
  }
}

let runner: TestRunner | null = null;
afterEach(async () => {
  await runner?.close();
  runner = null;
});

test('[R1] while it probes its sandboxes it answers "starting" and refuses jobs', async () => {
  const sandbox = new SlowSandbox();
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const starting = startRunner({ sandboxes: [sandbox], port });
  const health = await eventually(async () => (await (await fetch(`${url}/health`)).json()) as object);
  expect(health).toMatchObject({ status: 'starting', executors: [], starting: { images: [] } });
  const refused = await fetch(`${url}/jobs/1`, {
    method: 'PUT',
    body: JSON.stringify(job({ kind: 'python', code: '' })),
  });
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '1']);
  expect(await refused.json()).toMatchObject({ code: 'starting' });
  sandbox.found.resolve();
  runner = await starting;
  expect(await (await fetch(`${url}/health`)).json()).toMatchObject({ status: 'healthy' });
  expect(sandbox.started).toEqual([]);
});

test('[R3] its health lists the images that it builds, with the elapsed time', async () => {
  let now = 1_000;
  const startup = new Startup(() => now);
  const images = async (): Promise<unknown> => {
    const said = (await startup.fetch(new Request('http://runner/health')).json()) as {
      starting: { images: unknown };
    };
    return said.starting.images;
  };
  for (const name of ['python3', 'shell']) startup.image(name, 'waiting');
  now += 50;
  startup.image('python3', 'building');
  now += 200;
  startup.image('shell', 'ready');
  now += 300;
  expect(await images()).toEqual([
    { name: 'python3', state: 'building', elapsed_ms: 500 },
    { name: 'shell', state: 'ready', elapsed_ms: 250 },
  ]);
  startup.image('python3', 'failed');
  now += 300;
  expect(await images()).toMatchObject([{ name: 'python3', state: 'failed', elapsed_ms: 500 }, {}]);
});
