import { describe, expect, test } from 'vitest';
import { loadManifests } from '../../../src/catalog/load.ts';
import { readYaml } from '../../../src/catalog/read/yaml-file.ts';
import { limits } from '../../../src/domain/limits.ts';

const lines = (count: number, line: (index: number) => string): string =>
  Array.from({ length: count }, (_, index) => line(index)).join('\n');
const firstFault = (text: string): string => readYaml(text).errors[0]?.message ?? 'none';

describe('[M1] YAML that costs more than linear time is refused before it is composed', () => {
  test.each([
    ['explicit keys in explicit keys', `${'? '.repeat(400)}x`],
    ['the same on separate lines', lines(400, (index) => `${' '.repeat(index)}?`)],
    ['explicit keys in a flow map', `{${'? '.repeat(400)}x: 1}`],
    ['one explicit key', '? a\n: b'],
  ])('%s', (_what, text) => {
    expect(firstFault(text)).toBe('explicit keys (? key) are not supported; write "key: value"');
  });

  test.each([
    ['flow lists', '['.repeat(60_000)],
    ['flow maps', '{'.repeat(60_000)],
    ['flow maps as keys of flow maps', `${'{'.repeat(2_000)}a${': 1}'.repeat(2_000)}`],
    ['flow maps in flow maps', '{a: '.repeat(2_000)],
    ['lists on one line', '- '.repeat(9_000)],
    ['values without keys', ': '.repeat(9_000)],
    ['maps, each one column further', lines(1_000, (index) => `${' '.repeat(index % 500)}a:`)],
    ['lists, each one column further', lines(500, (index) => `${' '.repeat(index)}-`)],
  ])('%s nested too deep', (_what, text) => {
    expect(firstFault(text)).toMatch(/^the file is nested deeper than 64 levels$|^not valid YAML/);
  });

  test.each([
    ['21,000 keys in one map', lines(21_000, (index) => `k${index}: 1`)],
    ['21,000 keys in a flow map', `{${lines(21_000, (index) => `k${index}: 1,`)}}`],
    ['21,000 items', '- a\n'.repeat(21_000)],
    ['commas', `[${','.repeat(21_000)}`],
    ['anchors', `${'&a '.repeat(21_000)}x`],
    ['tags', `${'!a '.repeat(21_000)}x`],
    ['comments', '# a\n'.repeat(21_000)],
    ['documents', '---\na: 1\n'.repeat(21_000)],
    ['document end markers', '...\n'.repeat(21_000)],
    ['closing brackets', ']\n'.repeat(21_000)],
    ['unclosed quotes', '"\n'.repeat(21_000)],
    ['Windows line ends', 'a: 1\r\n'.repeat(21_000)],
  ])('%s: more tokens than a file can have', (_what, text) => {
    expect(firstFault(text.slice(0, limits.yamlChars))).toBe(
      `the file has more than ${limits.yamlTokens} YAML tokens; split it into several files`,
    );
  });

  test.each([
    ['blank lines in a plain scalar', `a${'\n'.repeat(1_000_000)}b`],
    ['a literal block of blank lines', `|+\n${'\n'.repeat(1_000_000)}`],
    ['digits', '9'.repeat(1_000_000)],
  ])('%s: more characters than a file can have', (_what, text) => {
    expect(firstFault(text)).toBe(`the file has ${text.length} characters (allowed: ${limits.yamlChars})`);
  });

  test('a duplicate key is found among thousands, in any notation', () => {
    const wide = lines(2_000, (index) => `k${index}: 1`);
    expect(readYaml(wide).errors).toEqual([]);
    expect(readYaml(`${wide}\nk7: 2`).errors).toEqual([
      { line: 2_001, column: 1, message: 'not valid YAML: Map keys must be unique' },
    ]);
    expect(firstFault('a: [{1: x, "1": y}]')).toBe('not valid YAML: Map keys must be unique');
  });

  test.each([
    ['a list', '{[a, b]: 1}'],
    ['a map', '{{a: 1}: 1}'],
    ['an alias', 'a: &a x\n*a : 1'],
  ])('%s as a key is not valid JSON', (_what, text) => {
    expect(firstFault(text)).toBe('not valid YAML: Map keys must be text, not collections or aliases');
  });

  test.each(['%YAML 1.1\n---\na: yes', '%TAG !e! tag:e:\n---\na: 1'])('the directive in %j is refused', (text) => {
    expect(firstFault(text)).toBe('the only supported directive is "%YAML 1.2"');
  });

  test('a %YAML 1.2 directive is accepted, and a percent sign elsewhere is text', () => {
    expect(readYaml('%YAML 1.2\n---\na: "%x"\nb: %y\nc: |\n  %z\n  ? w\n').documents[0]?.value ?? null).toBeNull();
    expect(readYaml('%YAML 1.2\n---\na: "%x"\nc: |\n  %z\n  ? w\nd: what? ?\n').documents[0]?.value).toEqual({
      a: '%x',
      c: '%z\n? w\n',
      d: 'what? ?',
    });
  });

  test('an alias counts as the node that it refers to', () => {
    const wide = `a: &a [${'x,'.repeat(1_000)}]\nb: [${'*a,'.repeat(90)}]`;
    expect(firstFault(wide)).toMatch(/^the document has more than 20000 values with expanded aliases/);
    const long = `a: &a "${'x'.repeat(50_000)}"\nb: [${'*a,'.repeat(90)}]`;
    expect(firstFault(long)).toMatch(/^the document has more than 1048576 characters with expanded aliases/);
    expect(firstFault(`a: &a x\nb: [${'*a,'.repeat(101)}]`)).toBe('the file has more than 100 aliases');
  });
});

test('[M1] positions stay correct after the syntax tree is released', () => {
  const [document] = readYaml('a: 1\n---\nb:\n  - c: 2\n').documents.slice(1);
  const before = document?.place(['b', 0, 'c']);
  document?.release();
  expect(document?.place(['b', 0, 'c'])).toEqual(before);
  expect(before).toEqual({ line: 4, column: 8 });
});

test('[M4] the files of one load share a token quota, and each unread file is reported', () => {
  const dense = (name: string): string => `kind: Tool\nname: ${name}\nx: [${'[],'.repeat(4_000)}]`;
  const files = Array.from({ length: 70 }, (_, at) => ({ path: `tools/t${at}.yaml`, text: dense(`t${at}`) }));
  const { problems } = loadManifests(files);
  const unread = problems.filter(({ message }) => message.includes('YAML tokens in total'));
  expect(unread.length).toBeGreaterThan(10);
  expect(unread[0]?.message).toBe(
    `the manifests have more than ${limits.catalogTokens} YAML tokens in total; this file was not read`,
  );
});
