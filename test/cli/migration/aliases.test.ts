/** Other names of fields and types of tools and relics (M3, R5). */
import { describe, expect, test } from 'vitest';
import { formatProblem } from '../../../src/catalog/check/problem.ts';
import { migrated } from '../../support/migrated.ts';
import { head } from '../../support/manifests.ts';

const tool = (rest: string) => migrated({ 't.yaml': `${head('Tool', 't')}${rest}\n` });

describe('notations of an implementation', () => {
  test.each([
    ['executor: {type: script, runtime: python3, script: x}', { type: 'script', runtime: 'python3', source: 'x' }],
    ['execution: {runtime: python, code: x}', { type: 'script', runtime: 'python3', source: 'x' }],
    ['executor: {type: python, script: x}', { type: 'script', runtime: 'python3' }],
    ['execution: {type: bash, script: x}', { type: 'script', runtime: 'shell', launch: { bash: true } }],
    ['implementation: {script: x, language: javascript}', { type: 'script', runtime: 'node' }],
    ['executor: {type: docker, image: a}', { type: 'container', image: 'a' }],
    ['executor: {image: a}', { type: 'container', image: 'a' }],
    ['execution: {url: "https://x.example"}', { type: 'http', url: 'https://x.example' }],
    ['executor: calculator', { type: 'builtin', entrypoint: 'calculator' }],
    ['execution: {entrypoint: echo}', { type: 'builtin', entrypoint: 'echo' }],
  ])('[M3] %s', (written, expected) => {
    const { catalog, problems } = tool(written);
    expect(problems).toEqual([]);
    expect(catalog.tool('t')?.implementation).toMatchObject(expected);
  });

  test.each([
    ['service: {image: store, port: 80}\nendpoints: [find]', { type: 'container', image: 'store' }],
    ['executor: kv', { type: 'edge', store: 'kv' }],
    ['execution: {type: sql}', { type: 'edge', store: 'sql' }],
  ])('[R5] %j', (written, expected) => {
    const { catalog, problems } = migrated({ 'r.yaml': `${head('Relic', 'r')}${written}\n` });
    expect(problems).toEqual([]);
    expect(catalog.relic('r')?.implementation).toMatchObject(expected);
  });

  test('[M1] issues name the field that the author wrote, at its position', () => {
    expect(tool('executor:\n  type: docker\n  imagee: a\n  image: 5').problems.map(formatProblem)).toEqual([
      't.yaml:7:3: executor.imagee: unknown field. Did you mean image?',
      't.yaml:8:10: executor.image: must be text, found number 5',
    ]);
    expect(tool('execution: {runtime: python, code: 5}').problems.map(formatProblem)).toEqual([
      't.yaml:5:36: execution.code: must be text, found number 5',
    ]);
  });

  test('[M3] input_schema, output_schema and timeout_seconds', () => {
    const { catalog, warnings } = tool(
      'executor: echo\ninput_schema: {q: string}\noutput_schema: {type: string}\ntimeout_seconds: 5',
    );
    expect(catalog.tool('t')).toMatchObject({
      parameters: { properties: { q: { type: 'string' } }, required: ['q'] },
      returns: { type: 'string' },
      timeoutMs: 5_000,
    });
    expect(warnings.map(({ line, field, message }) => `${line} ${field}: ${message}`)).toEqual([
      '5 executor: understood as implementation',
      '6 input_schema: understood as parameters',
      '7 output_schema: understood as returns',
      '8 timeout_seconds: understood as timeout',
    ]);
  });

  test('[K10] a field beside the one that it means is an error', () => {
    expect(tool('executor: echo\ntimeout: 3\ntimeout_seconds: 5').problems.map(formatProblem)).toEqual([
      't.yaml:7:1: timeout_seconds: unknown field.',
    ]);
  });
});
