/** Patterns in manifests, and those that docs/redaction.md recommends (C9). */
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { Redaction } from '../../src/bounded/redaction.ts';
import { formatProblem } from '../../src/catalog/check/problem.ts';
import type { LoadedManifests } from '../../src/catalog/load.ts';
import { agent as agentOf, load as loadFiles, workflow } from '../support/manifests.ts';

const load = (text: string): LoadedManifests => loadFiles({ 'a.yaml': text });
const agent = (redact: string): string => agentOf('a', `redact: ${redact}`);

describe('[C9] redact in a manifest', () => {
  test('is a list of patterns, each counted once', () => {
    const { catalog, problems } = load(agent(String.raw`['\d{16}', 'abc', 'abc']`));
    expect(problems).toEqual([]);
    expect(catalog.agent('a')?.agent.redact).toEqual([String.raw`\d{16}`, 'abc']);
  });

  test('of a workflow is the same', () => {
    const steps = 'steps: [{name: s, type: value, value: 1}]';
    const { catalog, problems } = load(workflow('w', `${steps}\nredact: ['a{2}']`));
    expect(problems).toEqual([]);
    expect(catalog.workflow('w')?.workflow.redact).toEqual(['a{2}']);
  });

  test('is absent without patterns', () => {
    expect(load(agent('[]')).catalog.agent('a')?.agent).not.toHaveProperty('redact');
  });

  test.each([
    ["['a+']", '"a+" has no greatest length: write {1,64} instead of +'],
    ["['ok', '^a']", 'has the anchor ^'],
    ['[5]', 'redact'],
    ['a', 'redact'],
    [`[${Array.from({ length: 17 }, (_, at) => `a${at}`).join(', ')}]`, 'redact'],
    [`['${'a'.repeat(241)}']`, 'redact'],
    [
      `[${Array.from({ length: 16 }, (_, at) => `'[a-z]{${480 + at}}'`).join(', ')}]`,
      'the patterns of the manifest are too large in total',
    ],
  ])('%s is refused', (redact, message) => {
    const { catalog, problems } = load(agent(redact));
    expect(problems.map(formatProblem).join('\n')).toContain(message);
    expect(catalog.agent('a')).toBeNull();
  });
});

describe('[C9] the patterns of docs/redaction.md', () => {
  const docs = readFileSync(new URL('../../docs/redaction.md', import.meta.url), 'utf8');
  const patterns = new Map(
    [...docs.matchAll(/^- ([\w -]+):\n\n {2}```text\n {2}(.+)\n {2}```$/gm)].map(([, what = '', pattern = '']) => [
      what,
      pattern,
    ]),
  );

  test.each([
    ['e-mail address', 'Write to joe.doe+x@mail.example.co.uk.', 'Write to [redacted].'],
    ['e-mail address', 'user @ home, a@b', 'user @ home, a@b'],
    ['card number', 'pay with 4111 1111 1111 1111 or 4111-1111-1111-1111', 'pay with [redacted] or [redacted]'],
    ['card number', 'order 12345678 of 2026-11-27', 'order 12345678 of 2026-11-27'],
    ['IBAN', 'to DE89 3704 0044 0532 0130 00, please', 'to [redacted], please'],
    ['IBAN', 'GB82WEST12345698765432', '[redacted]'],
    ['phone number', 'call +49 (30) 901820-12 or +1 555.010.9999!', 'call [redacted] or [redacted]!'],
    ['phone number', '1 + 2 = 3, +5 points', '1 + 2 = 3, +5 points'],
    ['API key', 'key: sk-abcDEF0123456789abcd.', 'key: [redacted].'],
    ['API key', 'a sk-ill', 'a sk-ill'],
  ])('%s in "%s"', (what, text, shown) => {
    const pattern = patterns.get(what);
    if (pattern === undefined) throw new Error(`the page has no ${what}`);
    expect(new Redaction([pattern], () => undefined).text(text)).toBe(shown);
  });

  test('are five, and the manifest and the setting in the text are valid', () => {
    expect(patterns.size).toBe(5);
    const manifest = /```yaml\n([^]*?)```/.exec(docs)?.[1] ?? '';
    expect(load(manifest).problems).toEqual([]);
    const setting = /REDACT='(.*)'/.exec(docs)?.[1] ?? '';
    expect(new Redaction(JSON.parse(setting) as string[], () => undefined).sources).toHaveLength(1);
  });
});
