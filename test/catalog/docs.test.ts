import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { withSecrets } from '../../src/catalog/check/secrets.ts';
import type { JsonObject } from '../../src/domain/json.ts';
import { createOutboundFetch } from '../../src/executors/outbound/outbound.ts';
import { toolExecutor } from '../../src/executors/tool.ts';
import { callOf, contextOf } from '../executors/support.ts';
import { VirtualClock } from '../../testing/virtual-clock.ts';
import { loadManifests } from '../../src/catalog/load.ts';
import { formatProblem } from '../../src/catalog/check/problem.ts';
import { readManifestFiles } from '../../cli/project/manifest-files.ts';

const NO_NAMES = { agent: [], tool: [], relic: [], workflow: [] };
const page = readFileSync('docs/manifests.md', 'utf8');

test('[M8] the field tables and the editor schemas match what the loader checks', () => {
  const { status, stderr } = spawnSync(process.execPath, ['scripts/manifest-schemas.ts', '--check'], {
    encoding: 'utf8',
  });
  expect([status, stderr]).toEqual([0, '']);
  for (const field of [
    'context_feeds[].source.action',
    'implementation.resources.cpu',
    'steps[].on_failure',
    'endpoints.<name>.path',
  ])
    expect(page).toContain(`| \`${field}\` |`);
});

/** The examples of HTTP tools, with the calls and requests that the text promises. */
test('[M3] the examples of HTTP tools send what docs/manifests.md says', async () => {
  const section = page.slice(page.indexOf('### HTTP tools'), page.indexOf('### Parameters'));
  const blocks = [...section.matchAll(/```yaml\n([\s\S]*?)```/g)].map(([, text = ''], index) => ({
    path: `${index}.yaml`,
    text,
  }));
  const promised = [...section.matchAll(/The call `(\{.*?\})` sends\s+`(\w+) (\S+)`(?:\s+with the body\s+`(.*?)`)?/g)];
  expect(promised).toHaveLength(2);
  const { catalog, problems } = loadManifests(blocks);
  expect(problems).toEqual([]);
  const tools = new Map(
    ['read_ticket', 'add_note'].flatMap((name) => {
      const tool = catalog.tool(name);
      return tool === null ? [] : [[name, tool] as const];
    }),
  );
  const ready = withSecrets(
    { tools, agents: new Map(), relics: new Map(), workflows: new Map(), knownNames: NO_NAMES },
    [],
    { owner: null, owners: [], lookup: (name) => (name === 'TOOL_SUPPORT' ? 'sesame' : null) },
  );

  const seen: string[] = [];
  const server = createServer((request, response) => {
    let body = '';
    request.on('data', (piece) => (body += String(piece)));
    request.on('end', () => {
      seen.push([request.headers.authorization, request.method, request.url, body].join(' '));
      response.setHeader('content-type', 'application/json').end('{"id":"T-1","status":"open"}');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  try {
    const { port } = server.address() as AddressInfo;
    const fetch = createOutboundFetch({
      fetch: (url, init) =>
        globalThis.fetch(url.replace('https://support.example.com', `http://127.0.0.1:${port}`), init),
      allowHosts: [],
      clock: new VirtualClock(),
    });
    for (const [index, tool] of [...ready.tools.values()].entries()) {
      const parameters = JSON.parse(promised[index]?.[1] ?? '') as JsonObject;
      const outcome = await toolExecutor.execute(callOf(parameters, { tool }), contextOf({ fetch }));
      expect(outcome).toEqual({ ok: true, output: { id: 'T-1', status: 'open' } });
    }
  } finally {
    await new Promise((resolve) => server.close(resolve));
  }
  const compact = (json: string | undefined): string => (json === undefined ? '' : JSON.stringify(JSON.parse(json)));
  expect(seen).toEqual(
    promised.map(([, , method = '', path = '', body]) => `Bearer sesame ${method} ${path} ${compact(body)}`),
  );
});

test('[M1] the examples in docs/manifests.md load without a warning', () => {
  const files = [...page.matchAll(/cat > (\S+) <<'END'\n([\s\S]*?)\nEND\n/g)].map(([, path = '', text = '']) => ({
    path,
    text,
  }));
  expect(files.map(({ path }) => path)).toEqual([
    'manifests/tools/dice/dice.py',
    'manifests/tools/dice.yaml',
    'manifests/agents/tutor.yaml',
    'poet.yaml',
  ]);
  const blocks = [...page.matchAll(/```yaml\n(kind:[\s\S]*?)```/g)].map(([, text = ''], index) => ({
    path: `manifests/example-${index}.yaml`,
    text,
  }));
  expect(blocks).toHaveLength(5);
  const { problems, warnings, catalog } = loadManifests([...readManifestFiles('manifests'), ...files, ...blocks]);
  expect([...problems, ...warnings].map(formatProblem)).toEqual([]);
  expect([...(catalog.agent('tutor')?.tools.keys() ?? [])]).toEqual(['calculator', 'dice']);
});
