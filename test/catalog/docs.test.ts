import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { loadManifests } from '../../src/catalog/load.ts';
import { formatProblem } from '../../src/catalog/problem.ts';
import { agentSchema, toolSchema } from '../../src/catalog/schema.ts';
import { readManifestFiles } from '../../scripts/manifest-files.ts';

const page = readFileSync('docs/manifests.md', 'utf8');

/** Every field of a schema by its path, down to the leaves. */
function fieldsOf(schema: unknown, prefix = ''): string[] {
  if (typeof schema !== 'object' || schema === null) return [];
  const { properties, anyOf, oneOf } = schema as {
    properties?: Record<string, unknown>;
    anyOf?: unknown[];
    oneOf?: unknown[];
  };
  const fields = [...(anyOf ?? []), ...(oneOf ?? [])].flatMap((member) => fieldsOf(member, prefix));
  for (const [name, member] of Object.entries(properties ?? {})) {
    fields.push(`${prefix}${name}`, ...fieldsOf(member, `${prefix}${name}.`));
  }
  return fields;
}

test.each([
  ['Tool', toolSchema],
  ['Agent', agentSchema],
])('[M8] every field of a %s is on the page for authors', (_kind, schema) => {
  const json = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' });
  const fields = [...new Set(fieldsOf(json))];
  expect(fields.length).toBeGreaterThan(10);
  const words = [...new Set(page.match(/[a-z_0-9.]+/gi))];
  const missing = fields.filter((field) => {
    const last = field.split('.').at(-1) ?? '';
    return !words.some((word) => word === last || word === field || word.startsWith(`${field}.`));
  });
  expect(missing).toEqual([]);
});

test('[M1] the examples of the page load without a warning', () => {
  const blocks = [...page.matchAll(/```(yaml|python)\n([\s\S]*?)```/g)].map(([, language, text = '']) => ({
    language,
    text,
  }));
  const manifests = blocks.filter(({ text }) => text.startsWith('kind:'));
  const script = blocks.find(({ language }) => language === 'python');
  expect(manifests).toHaveLength(2);
  const { problems, warnings, catalog } = loadManifests([
    ...readManifestFiles('manifests'),
    { path: 'manifests/agents/tutor.yaml', text: manifests[0]?.text ?? '' },
    { path: 'manifests/tools/dice.yaml', text: manifests[1]?.text ?? '' },
    { path: 'manifests/tools/dice/dice.py', text: script?.text ?? '' },
  ]);
  expect([...problems, ...warnings].map(formatProblem)).toEqual([]);
  expect([...(catalog.agent('tutor')?.tools.keys() ?? [])]).toEqual(['calculator', 'dice']);
});
