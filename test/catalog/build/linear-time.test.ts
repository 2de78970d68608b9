/** Texts of a folder that would take quadratic time if they were read naively (S8, M2). */
import { expect, test } from 'vitest';
import { loadManifests } from '../../../src/catalog/load.ts';

const RELIC = `kind: Relic
version: "1"
name: store
summary: s
implementation: { type: container, compose: compose.yml }
endpoints: [{ name: get, path: /get, method: GET }]
`;
const TOOL = `kind: Tool
version: "1"
name: count
summary: s
parameters: { type: object }
implementation: { type: script, runtime: python3, entrypoint: run.py }
`;

const relic = (compose: string, dockerfile = 'FROM python:3\n') => ({
  'relic.yml': RELIC,
  'compose.yml': `services: { store: { build: ., ports: [8000], ${compose} } }`,
  Dockerfile: dockerfile,
});
const tool = (script: string) => ({ 'tool.yml': TOOL, 'run.py': script });

test.each<[string, Readonly<Record<string, string>>]>([
  ['dots after from', tool(`from ${'.'.repeat(500_000)}\n`)],
  ['spaces after from', tool(`from ${' '.repeat(500_000)}\n`)],
  ['a long module', tool(`from ${'a.'.repeat(250_000)}b import c\n`)],
  ['many imports', tool('import a\n'.repeat(50_000))],
  ['open defaults in a Compose file', relic(`command: "${'${A-'.repeat(60_000)}"`)],
  ['empty lines in a Dockerfile', relic('', `FROM python:3\n${'\n'.repeat(500_000)}`)],
  ['many COPY in a Dockerfile', relic('', `FROM python:3\n${'COPY . .\n'.repeat(50_000)}`)],
  ['a line separator in a Dockerfile', relic('', `FROM python:3\nCOPY ${' '.repeat(200_000)}a\u2028b\n`)],
])('[S8] %s take linear time', (_what, files) => {
  const begun = performance.now();
  const loaded = loadManifests(Object.entries(files).map(([path, text]) => ({ path, text })));
  expect(performance.now() - begun).toBeLessThan(5_000);
  // It was read: it loads, or its last line is refused.
  expect([...loaded.entries, ...loaded.problems]).toHaveLength(1);
});
