import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { createCatalog } from '../../src/catalog/catalog.ts';
import { nearestNames } from '../../src/domain/nearest.ts';
import { formatProblem } from '../../src/catalog/check/problem.ts';
import { loadManifests } from '../../src/catalog/load.ts';
import { readManifestFiles } from '../../cli/project/manifest-files.ts';

const shipped = loadManifests(readManifestFiles('manifests'));

test('[M1] the shipped manifests load without an error or a warning', () => {
  expect([...shipped.problems, ...shipped.warnings].map(formatProblem)).toEqual([]);
});

test('[M3] the shipped agents import the built-ins; assistant has python and shell', () => {
  const { catalog } = shipped;
  const builtins = ['echo', 'calculator', 'web_fetch', 'web_extract', 'json_query'];
  expect([...(catalog.agent('assistant')?.tools.keys() ?? [])]).toEqual([...builtins, 'text_stats']);
  expect(catalog.agent('assistant')?.agent.capabilities).toEqual(['python', 'shell']);
  expect([...(catalog.agent('research_orchestrator')?.tools.keys() ?? [])]).toEqual(builtins);
});

test('[S7] the built-ins state their effects', () => {
  const effects = Object.fromEntries(shipped.catalog.data.tools.map((tool) => [tool.name, tool.effects]));
  expect(effects).toEqual({
    echo: 'pure',
    calculator: 'pure',
    json_query: 'pure',
    text_stats: 'pure',
    web_fetch: 'idempotent',
    web_extract: 'idempotent',
    system_status: 'idempotent',
  });
});

test('[M4] the bundled data is plain JSON that gives the same catalogue', () => {
  const { catalog } = shipped;
  const again = createCatalog(JSON.parse(JSON.stringify(catalog.data)) as typeof catalog.data);
  expect(again.agent('assistant')).toEqual(catalog.agent('assistant'));
  const tool = again.tool('text_stats');
  expect(tool?.implementation).toMatchObject({
    type: 'script',
    source: readFileSync('manifests/tools/text_stats/text_stats.py', 'utf8'),
  });
});

test('[X4] an agent sees only the tools that it imports; knownNames lists all of them', () => {
  const { catalog } = shipped;
  const resolved = catalog.agent('research_orchestrator');
  expect(resolved?.tools.has('text_stats')).toBe(false);
  expect(resolved?.knownNames.tool).toContain('text_stats');
  expect(catalog.agent('nobody')).toBeNull();
  expect(catalog.agent('__proto__')).toBeNull();
});

test.each([
  ['calculater', 'calculator'],
  ['Web-Fetch', 'web_fetch'],
  ['fetch', 'web_fetch'],
  ['zzz', undefined],
])('[M3] the nearest name to %s is %s', (name, expected) => {
  expect(shipped.catalog.nearest('tool', name)[0]).toBe(expected);
});

test('[M3] a name lookup is cheap for a very long name in a very large catalogue', () => {
  const names = Array.from({ length: 50_000 }, (_, index) => `tool_${index}`);
  expect(nearestNames('x'.repeat(1_000_000), names)).toEqual([]);
});
