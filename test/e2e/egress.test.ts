/** Requests of tools and models to addresses of this machine (X2): a real Worker, and a runner with test host names. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { SECRET } from '../../container-runner/test/support/test-runner.ts';
import { freePort } from '../../cli/system/services.ts';
import { startSystem } from '../../cli/system/system.ts';
import type { System } from '../../cli/system/system.ts';
import type { RunResult } from '../../src/view/result.ts';
import { PUBLIC, publicNames } from '../support/public-names.ts';
import type { PublicNames } from '../support/public-names.ts';

const NAMES: Readonly<Record<string, readonly string[]>> = {
  'good.example.com': [PUBLIC],
  'evil.example.com': ['127.0.0.1'],
  'half.example.com': [PUBLIC, '::1'],
};

let folder: string;
let served: PublicNames;
let seen: string[];
let system: System;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'cortex-egress-e2e-'));
  seen = [];
  served = await publicNames(NAMES, (asked, response) => {
    seen.push(asked.headers.host ?? '');
    if (asked.url === '/away') response.writeHead(302, { location: 'http://evil.example.com/' }).end();
    else response.writeHead(200, { 'content-type': 'text/plain' }).end('a public page');
  });
  system = await startSystem({
    port: await freePort(),
    runnerPort: 0,
    stateDir: folder,
    vars: {
      LLM_PROVIDER: 'demo',
      RUNNER_URLS: served.runner.url,
      RUNNER_SECRET: SECRET,
      ALLOW_HOSTS: `127.0.0.1:${served.port}`,
    },
    ownRunner: false,
    progress: () => undefined,
  });
});
afterAll(async () => {
  await system?.stop();
  await served?.close();
  rmSync(folder, { recursive: true, force: true });
});

async function fetched(url: string): Promise<RunResult['actions'][number] | undefined> {
  const body = JSON.stringify({ parameters: { url } });
  const response = await fetch(`${system.url}/execute/direct`, {
    method: 'POST',
    body: JSON.stringify({
      protocol_text: `<action type="tool" name="web_fetch" id="page">${body}</action><response final="true">$page</response>`,
      stream: false,
    }),
  });
  return ((await response.json()) as RunResult).actions[0];
}

describe('web_fetch', () => {
  test('[X2] reads a page of a public name, through the runner', async () => {
    expect(await fetched('http://good.example.com/')).toMatchObject({
      status: 'completed',
      output: { url: 'http://good.example.com/', text: 'a public page' },
    });
    expect(seen.length).toBe(1);
  });

  test.each(['http://evil.example.com/', 'http://half.example.com/', 'http://good.example.com/away'])(
    '[X2] %s has an address of this machine and is refused',
    async (url) => {
      const before = seen.length;
      expect(await fetched(url)).toMatchObject({ status: 'failed', error: { code: 'address_refused' } });
      // The page that redirects is read, and nothing else.
      const names = seen.slice(before).map((host) => host.replace(/:.*/, ''));
      expect(names).toEqual(url.endsWith('/away') ? ['good.example.com'] : []);
    },
  );

  test('[X2] reaches an address that the operator allows, without the runner', async () => {
    const { port } = served;
    expect(await fetched(`http://127.0.0.1:${port}/`)).toMatchObject({ status: 'completed' });
    expect(seen.at(-1)).toBe(`127.0.0.1:${port}`);
  });
});

describe('a model endpoint from a manifest', () => {
  async function answerOf(agent: string, endpoint: string): Promise<string> {
    const put = await fetch(`${system.url}/manifests/agents/${agent}`, {
      method: 'PUT',
      body: `kind: Agent\nversion: "1.0"\nname: ${agent}\nsummary: s\npersona: p\ncognitive_engine: {primary: {provider: openai, model: m, endpoint: "${endpoint}"}}\n`,
    });
    expect([200, 201], await put.clone().text()).toContain(put.status);
    const created = await fetch(`${system.url}/agent/${agent}/session`, { method: 'POST', body: '{}' });
    const { session_id: session } = (await created.json()) as { readonly session_id: string };
    const response = await fetch(`${system.url}/agent/session/${session}/message`, {
      method: 'POST',
      body: JSON.stringify({ content: 'hello', stream: false }),
    });
    return await response.text();
  }

  test('[X2] is refused if its name has an address of this machine', async () => {
    const before = seen.length;
    const said = await answerOf('private_model', 'http://evil.example.com/v1');
    expect(said).toContain('model_rejected');
    expect(said).toContain('a loopback address');
    expect(seen.length).toBe(before);
  });

  test('[X2] is called if its name is public', async () => {
    const before = seen.length;
    await answerOf('public_model', 'http://good.example.com/v1');
    expect(seen.slice(before).some((host) => host.startsWith('good.example.com'))).toBe(true);
  });
});

test('[X2] without a runner, a request to a name fails before anything is sent', async () => {
  await served.runner.stop();
  expect(await fetched('http://other.example.com/')).toMatchObject({
    status: 'failed',
    error: { code: 'egress_unavailable' },
  });
});
