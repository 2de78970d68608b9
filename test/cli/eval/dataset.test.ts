/** Datasets of evaluations: what is refused, and what identifies a case (O3). */
import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { digestOfCase, digestOfDataset, readDataset } from '../../../cli/eval/dataset.ts';
import type { EvalCase } from '../../../cli/eval/dataset.ts';

const one = (text: string): string => `cases: [{name: a, message: m, ${text}}]`;

describe('[O3] datasets', () => {
  test.each([
    ['cases: []', 'cases: must be at least 1 items long, found'],
    ['cases: 1', 'cases: must be a list, found'],
    ['cases: [{message: m, expect: [{exact: x}]}]', 'cases[0].name: is missing; it must be text'],
    ['casses: []', 'Did you mean "cases"?'],
    [one('expect: [{contains: x}], mesage: y'), 'cases[0]: "mesage" is unknown (known: name, message,'],
    [one('expect: [{contans: x}]'), 'cases[0].expect[0]: "contans" is unknown (known: exact, contains, matches,'],
    [one('expect: [{contans: x}]'), 'Did you mean "contains"?'],
    [one('expect: [{}]'), 'must be a map with one of exact, contains, matches, json, cel, judge'],
    [one('expect: [{contains: x, exact: y}]'), 'must be a map with one of exact,'],
    [one('expect: []'), 'cases[0].expect'],
    [
      one('expect: [{judge: {criterion: x}}]'),
      'cases[0].expect[0].judge: "criterion" is unknown (known: criteria, votes, verdict)',
    ],
    [one('expect: [{judge: {criteria: x, votes: 2}}]'), 'must be odd'],
    [one('expect: [{judge: {criteria: x, votes: 11}}]'), 'cases[0].expect[0].judge.votes: must be at most 9, found'],
    [one('expect: [{judge: " "}]'), 'cases[0].expect[0].judge.criteria: must be at least 1 characters long'],
    [one('expect: [{cel: "actions.exists(a, a.name =="}]'), 'cases[0].expect[0].cel: '],
    [one('expect: [{cel: "1 + 1"}]'), 'cases[0].expect[0].cel: The condition is of the type int'],
    [one('expect: [{contains: x}, {matches: "(a"}]'), 'cases[0].expect[1].matches: is not a regular expression'],
    [one('expect: [{matches: "(?=a)b"}]'), 'cases[0].expect[0].matches: '],
    [`${one('expect: [{exact: x}]')}\n---\n${one('expect: [{exact: y}]')}`, 'line 3: has a second YAML document'],
    [one('expect: [{exact: x}], history: [{role: user, contents: x}]'), 'cases[0].history[0]: "contents" is unknown'],
    [
      one('expect: [{exact: x}], history: [{role: system, content: x}]'),
      'cases[0].history[0].role: "system" is not allowed (allowed: user, assistant)',
    ],
    [one('expect: [{exact: x}], approvals: maybe'), 'cases[0].approvals'],
    [one('answer: a, variables: {x: 1}, expect: [{exact: x}]'), 'cases[0].variables: has no effect'],
    [one('expect: [{judge: {criteria: x, verdict: good}}]'), 'cases[0].expect[0].judge.verdict'],
    ['cases: [{name: a, message: m, expect: [{exact: x}]}, {name: a, message: m, expect: [{exact: x}]}]', 'two cases'],
    ['a: [', 'line 1'],
  ])('%s is refused: %s', (yaml, message) => {
    expect(() => readDataset(yaml)).toThrow(message);
  });

  test('a judge is criteria, or a map with votes', () => {
    const judges = readDataset(one('expect: [{judge: polite}, {judge: {criteria: polite, votes: 3}}]')).cases[0]
      ?.expect;
    expect(judges).toEqual([
      { judge: { criteria: 'polite', votes: 1, verdict: 'pass' } },
      { judge: { criteria: 'polite', votes: 3, verdict: 'pass' } },
    ]);
  });

  test('docs/evaluation.md has the manifest of the shipped judge', () => {
    const [, ...manifest] = readFileSync('manifests/agents/eval_judge.yaml', 'utf8').split('\n');
    expect(readFileSync('docs/evaluation.md', 'utf8')).toContain(`\`\`\`yaml\n${manifest.join('\n')}\`\`\``);
  });

  test('the examples of docs/evaluation.md are datasets', () => {
    const page = readFileSync('docs/evaluation.md', 'utf8');
    const examples = [...page.matchAll(/^```yaml\n([^]*?)^```$/gm)].map(([, yaml = '']) => yaml);
    const datasets = examples.filter((yaml) => yaml.includes('cases:'));
    expect(datasets.length).toBeGreaterThan(0);
    for (const yaml of datasets) expect(readDataset(yaml).cases.length).toBeGreaterThan(0);
  });
});

describe('[O3] the digest of a case', () => {
  const read = (text: string): EvalCase => readDataset(one(text)).cases[0] as EvalCase;
  const digest = digestOfCase(read('variables: {x: 1, y: 2}, expect: [{exact: x}]'));

  test('does not depend on its name and the order of members', () => {
    expect(digestOfCase(read('expect: [{exact: x}], variables: {y: 2, x: 1}'))).toBe(digest);
    expect(digestOfCase({ ...read('variables: {x: 1, y: 2}, expect: [{exact: x}]'), name: 'b' })).toBe(digest);
  });

  test.each([
    'variables: {x: 1, y: 3}, expect: [{exact: x}]',
    'variables: {x: 1, y: 2}, expect: [{contains: x}]',
    'variables: {x: 1, y: 2}, expect: [{exact: x}, {exact: x}]',
    'variables: {x: 1, y: 2}, agent: other, expect: [{exact: x}]',
  ])('depends on everything else: %s', (text) => {
    expect(digestOfCase(read(text))).not.toBe(digest);
  });

  test('that of a dataset depends on names, not on the order', () => {
    const [a, b] = ['{name: a, message: m, expect: [{exact: x}]}', '{name: b, message: n, expect: [{exact: x}]}'];
    const of = (yaml: string): string => digestOfDataset(readDataset(`cases: [${yaml}]`));
    expect(of(`${a}, ${b}`)).toBe(of(`${b}, ${a}`));
    expect(of(`${a}, ${b.replace('name: b', 'name: c')}`)).not.toBe(of(`${a}, ${b}`));
  });
});
