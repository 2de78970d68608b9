import { describe, expect, test } from 'vitest';
import { namesInCondition, whyNotCel } from '../../src/catalog/check/condition-names.ts';
import { loadManifests } from '../../src/catalog/load.ts';
import { limits } from '../../src/domain/limits.ts';
import { agent, load, problemsOf, relic, said, tool, workflow } from '../support/manifests.ts';

const many = <T = string>(count: number, item: (index: number) => T): T[] =>
  Array.from({ length: count }, (_, index) => item(index));
const step = (rest: string, name = 's'): string => `{name: ${name}, type: llm, ${rest}}`;
const flow = (steps: readonly string[], rest = ''): string =>
  workflow('x', `${rest}\nsteps:\n${steps.map((one) => `  - ${one}`).join('\n')}`);
const problemsIn = (text: string): string[] => problemsOf({ 'x.yaml': text });

describe('[M1] checking a manifest takes bounded work', () => {
  test('the problems of one file stop at the limit, and the rest of the file is not checked', () => {
    for (const text of [
      tool('x', `parameters: {${many(2_000, (at) => `"?${at}": string`).join(',')}}`),
      many(500, (at) => `kind: Tool\nname: t${at}\n`).join('---\n'),
      many(500, (at) => `kind: Toll\nname: t${at}\n`).join('---\n'),
    ])
      expect(problemsIn(text)).toHaveLength(limits.manifestProblems);
  });

  test('for inputs with long names and outputs with almost the same names', () => {
    const long = 'y'.repeat(50);
    const inputs = `inputs: {${many(1_000, (at) => `k${at}${long}: string`).join(',')}}`;
    const outputs = `outputs: {${many(1_000, (at) => `k${at}: trigger.z${at}${long}`).join(',')}}`;
    expect(problemsIn(flow([step('')], `${inputs}\n${outputs}`))).toHaveLength(limits.manifestProblems);
  });

  test('for a reference that is all white space, and for an unclosed one', () => {
    const spaces = ' '.repeat(200_000);
    expect(problemsIn(flow([step(`parameters: {p: "$(${spaces}"}`)]))).toEqual([]);
    expect(problemsIn(flow([step(`parameters: {p: "$(a${spaces}("}`)]))).toEqual([]);
    expect(problemsIn(flow([step('parameters: {p: "$( steps.zz )"}')]))[0]).toContain('"zz"');
  });

  test('for a type that is a deeply nested list', () => {
    for (const type of [`string${'[]'.repeat(20_000)}`, `${'array<'.repeat(20_000)}string${'>'.repeat(20_000)}`]) {
      expect(problemsIn(tool('x', `parameters: {a: "${type}"}`))[0]).toMatch(/unknown type ".{80,90} \(allowed/);
    }
    expect(problemsIn(tool('x', 'parameters: {a: "string[][]"}'))).toEqual([]);
  });

  test('for schemas that refer to each other twice each', () => {
    const defs = many(30, (at) => `a${at}: {allOf: [{$ref: "#/$defs/a${at + 1}"}, {$ref: "#/$defs/a${at + 1}"}]}`);
    const schema = `{type: object, allOf: [{$ref: "#/$defs/a0"}], $defs: {${defs.join(', ')}, a30: {}}}`;
    expect(problemsIn(tool('x', `parameters: ${schema}`))[0]).toContain('too much work');
  });

  test('for long paths of imports and files, and absolute paths in a deep folder', () => {
    expect(problemsIn(agent('x', `import: {tools: ["/${'a/'.repeat(50_000)}x.yaml"]}`))[0]).toContain('at most 255');
    expect(
      problemsIn(agent('x').replace('persona: You help.', `persona: {file: "/${'a/'.repeat(50_000)}x"}`))[0],
    ).toContain('persona');
    const deep = `/${'d/'.repeat(100)}`;
    const { problems, catalog } = load({
      'a.yaml': agent('x', `import: {tools: ["/home/me${deep}t7.yaml"]}`),
      ...Object.fromEntries(many<[string, string]>(50, (at) => [`${deep}t${at}.yaml`, tool(`t${at}`)])),
    });
    expect([problems, catalog.agent('x')?.agent.imports.tools]).toEqual([[], ['t7']]);
  });

  test('for one file that is included many times', () => {
    const examples = many(100, () => '{file: big.txt}').join(', ');
    const text = agent('x').replace('persona: You help.', `persona: {agent: p, examples: [${examples}]}`);
    expect(problemsOf({ 'x.yaml': text, 'big.txt': 'x'.repeat(100_000) })).toEqual([
      expect.stringContaining(`more than ${limits.definitionChars} characters in total`),
    ]);
  });

  test('for the conditions of a workflow, counted together', () => {
    const wide = step(`condition: "${'a + '.repeat(490)}a"`);
    const steps = many(60, (at) => wide.replace('name: s', `name: s${at}`));
    expect(problemsIn(flow(steps))).toEqual([
      expect.stringContaining(`more than ${limits.workflowConditionChars} characters in total`),
    ]);
  });

  test('for many endpoints of a relic, and for many manifests of a folder', () => {
    const endpoints = many(limits.relicEndpoints + 1, (at) => `e${at}: {}`).join(', ');
    const large = relic('x', `implementation: {type: container, image: i}\nendpoints: {${endpoints}}`);
    expect(problemsIn(large)).toEqual([expect.stringContaining(`allowed: ${limits.relicEndpoints}`)]);
    const folder = Object.fromEntries(
      many(21, (file) => many(100, (at) => tool(`t${file}_${at}`)).join('---\n')).map((text, at) => [
        `${at}.yaml`,
        text,
      ]),
    );
    const { entries, problems } = load(folder);
    expect(entries).toHaveLength(limits.catalogDefinitions);
    expect(problems[0]?.message).toBe(`the folder has more than ${limits.catalogDefinitions} manifests`);
  });
});

test('[M6] conditions are read in linear time: unclosed quotes, comprehensions, has()', () => {
  expect(whyNotCel('"\\'.repeat(100_000))).not.toBeNull();
  expect(namesInCondition('.map(item,'.repeat(10_000))).toEqual([]);
  expect(namesInCondition('has(item) '.repeat(1_000))).toHaveLength(1_000);
  expect(namesInCondition('steps.a.map(item, item > 1) && item')).toMatchObject([
    { path: ['steps', 'a'] },
    { path: ['item'] },
  ]);
});

describe('[M4] unchanged files are not read again', () => {
  const files = [
    { path: 'a.yaml', text: agent('a', 'import: {tools: [t]}') },
    { path: 't.yaml', text: tool('t', 'implementation: {type: script, entrypoint: s.py}') },
    { path: 's.py', text: 'print(1)' },
  ];
  const first = loadManifests(files);
  const again = (changed: readonly { path: string; text: string }[]): ReturnType<typeof loadManifests> => {
    const rest = files.filter(({ path }) => !changed.some((one) => one.path === path));
    return loadManifests([...rest, ...changed], { read: first.read });
  };

  test('the same files give the same definitions', () => {
    const second = again([]);
    expect(second.read.get('t.yaml')).toBe(first.read.get('t.yaml'));
    expect(second.catalog.tool('t')).toBe(first.catalog.tool('t'));
    expect(second.catalog.data.agents[0]).toBe(first.catalog.data.agents[0]);
  });

  test('a change of an included file rebuilds the manifest', () => {
    const second = again([{ path: 's.py', text: 'print(2)' }]);
    expect(second.catalog.tool('t')?.implementation).toMatchObject({ source: 'print(2)' });
    expect(again([]).catalog.tool('t')?.implementation).toMatchObject({ source: 'print(1)' });
  });

  test('a removed import is reported at its importer again', () => {
    const second = again([{ path: 't.yaml', text: tool('other') }]);
    expect(said(second)).toEqual([expect.stringContaining('imports the tool "t", which does not exist')]);
    expect(again([]).problems).toEqual([]);
  });
});
