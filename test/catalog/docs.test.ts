import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { loadManifests } from '../../src/catalog/load.ts';
import { formatProblem } from '../../src/catalog/check/problem.ts';
import { readManifestFiles } from '../../scripts/manifest-files.ts';

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
  expect(blocks).toHaveLength(3);
  const { problems, warnings, catalog } = loadManifests([...readManifestFiles('manifests'), ...files, ...blocks]);
  expect([...problems, ...warnings].map(formatProblem)).toEqual([]);
  expect([...(catalog.agent('tutor')?.tools.keys() ?? [])]).toEqual(['calculator', 'dice']);
});
