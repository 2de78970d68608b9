/** `cortex fluency` as a command, against scripted models over HTTP. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { parse as parseYaml } from 'yaml';
import { KINDS } from '../../../cli/fluency/tasks/dataset.ts';
import { startScriptedLlm } from '../../../cli/scripted-llm/server.ts';
import { against, cortex } from './command-kit.ts';
import type { EndpointOptions } from './endpoint.ts';
import { dataset } from './kit.ts';
import { callsOnly, gibberish, perfect, waiting } from './models.ts';
import type { Model } from './models.ts';
import { folderOfFile } from '../scene.ts';

const folder = folderOfFile();

const FEW = ['--tasks', 'two-stations,diamond,meter-that-fails-once'];

describe('[O4] the report', () => {
  test('for people: the need before, progress, scores by form, and a manifest', async () => {
    const { out, err, code } = await against(perfect, FEW);
    expect(code).toBe(0);
    expect(err).toMatch(/^grammar is not measured: it is not known how this endpoint takes a grammar: .*\n/);
    expect(err).toMatch(
      /\n9 runs \(3 tasks, forms: full, compact, tool_calls\): at least 17 model calls and about \d+ thousand tokens; more /,
    );
    expect(err.match(/^✓ .* of 9\)$/gm)).toHaveLength(9);
    expect(out).toMatch(
      /^scripted at http:\/\/127\.0\.0\.1:\d+: 3 tasks\n\n +full +compact +tool_calls\nscore \(0-100\) +100\.0/,
    );
    expect(out).toMatch(/\n {2}plan \(20 %\) +100 +100 +100\n/);
    expect(out).toMatch(/\n {2}references \(10 %\) +100 +100 +–\n/);
    expect(out).toContain('grammar was not measured: it is not known how');
    const yaml = parseYaml(out.slice(out.indexOf('\nprotocol:'))) as unknown;
    expect(yaml).toEqual({ protocol: { form: 'full', dialect: 'auto' } });
    expect(out).toContain('\n  Differences between forms do not count with fewer than 10 tasks.\n');
  });

  test('mistakes, with what the model wrote and what the runtime said', async () => {
    const misspelling: Model = (situation) =>
      situation.generation === 1
        ? { text: '<action type="tool" id="x">{"name": "employees"}</action>' }
        : perfect({ ...situation, generation: situation.generation - 1 });
    const { out } = await against(misspelling, ['--tasks', 'diamond', '--forms', 'full']);
    expect(out).toContain(
      'Mistakes in full:\n  1 × unknown_name, such as in diamond: No tool is called "employees" (did you mean "employee"?)\n      wrote: <action',
    );
  });

  test('as JSON, alone on stdout, and in a file', async () => {
    const file = join(folder, 'report.json');
    const args = [...FEW, ...'--forms full --repeat 2 --json --out'.split(' '), file];
    const { out, code } = await against(perfect, args);
    const document = JSON.parse(out) as Record<string, unknown>;
    expect(code).toBe(0);
    expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual(document);
    expect(document).toMatchObject({
      version: 1,
      model: 'scripted',
      tasks: 3,
      repeat: 2,
      omitted_runs: 0,
      usage: { model_calls: 8, cost: null, estimated: true },
      forms: [{ form: 'full', unavailable: null, runs: 6, solved: 6, score: 100, parts: { plan: 100 } }],
      recommendation: { form: 'full', protocol: { form: 'full', dialect: 'auto' } },
    });
    expect(document['runs']).toHaveLength(6);
    const diamond = { task: 'diamond', form: 'full', repetition: 1, solved: true, generations: 1, mistakes: [] };
    const [first] = document['runs'] as unknown[];
    expect(first).toMatchObject({ ...diamond, calls: { needed: 4, made: 4 }, nominal_ms: 3_300, ideal_ms: 3_300 });
  });

  test('compared with an earlier one', async () => {
    const file = join(folder, 'earlier.json');
    await against(perfect, [...FEW, '--forms', 'full', '--out', file]);
    const { out } = await against(waiting, [...FEW, '--forms', 'full', '--compare', file]);
    expect(out).toMatch(/\nsince the earlier report +−\d+(\.\d)? ± \d+(\.\d)? points\n/);
    const json = await against(waiting, [...FEW, '--forms', 'full', '--compare', file, '--json']);
    const difference = expect.toSatisfy((value) => value < 0);
    expect(JSON.parse(json.out)).toMatchObject({
      comparison: { model: 'scripted', tasks: 3, forms: [{ form: 'full', tasks: 3, difference }] },
    });
  });
});

describe('[O4] an earlier report is refused, without a request', () => {
  const common = { version: 1, model: 'm', runs: [{ task: 'diamond', form: 'full', score: 90 }] };
  test.each<[string, object, string]>([
    ['of other tasks', { ...common, task_digests: {}, runs: [] }, 'has no task in common'],
    [
      'of tasks that have changed',
      { ...common, task_digests: { diamond: '00000000' } },
      'has no task in common with this measurement, because the tasks have changed since then',
    ],
    ['of another command', { version: 1, dataset: {}, cases: [] }, '(it is a report of "cortex eval")'],
    ['of a run', { session_id: 's', run_id: 'r' }, '(it is a run of "cortex run")'],
    ['without digests', common, 'is not a report of "cortex fluency --json" in version 1 (task_digests: '],
  ])('%s', async (_, document, message) => {
    const file = join(folder, 'other.json');
    writeFileSync(file, JSON.stringify(document));
    const { code, err, calls } = await against(perfect, [...FEW, '--compare', file]);
    expect([code, err, calls]).toEqual([2, expect.stringContaining(message), 0]);
  });
});

describe('[O4] what the endpoint cannot do is said, and the rest is measured', () => {
  test.each<[string, EndpointOptions, string[], string]>([
    [
      'functions',
      { calls: false },
      ['full', 'tool_calls'],
      'tool_calls was not measured: the endpoint does not accept functions: ',
    ],
    [
      'a refused grammar',
      { grammar: 'refuses' },
      ['full', 'grammar'],
      'grammar was not measured: the endpoint refuses the grammar in "grammar": ',
    ],
    [
      'an ignored grammar',
      { grammar: 'ignores' },
      ['full', 'grammar'],
      'grammar was not measured: the endpoint ignores the grammar in "grammar"',
    ],
  ])('%s', async (_, options, forms, line) => {
    const args = ['--tasks', 'diamond', '--forms', forms.join(), '--grammar-parameter', 'grammar'];
    const { out, code } = await against(perfect, args, options);
    expect(out).toContain(`\n${line}`);
    expect(out).toContain('Recommended, from 1 task: protocol text, full form');
    expect(code).toBe(0);
  });

  test('a grammar is sent in the field of the preset', async () => {
    const args = ['--tasks', 'diamond', '--forms', 'grammar', '--provider', 'llama.cpp'];
    expect((await against(perfect, args)).out).toContain('\n    grammar: |\n');
  });

  test('runs that the endpoint fails are counted and not scored', async () => {
    const options = { refuses: 'diamond', refusesWith: 403 };
    const { out } = await against(perfect, [...FEW, '--forms', 'full', '--json'], options);
    expect(JSON.parse(out)).toMatchObject({ forms: [{ runs: 2, solved: 2, endpoint_errors: 1, score: 100 }] });
    const shown = await against(perfect, [...FEW, '--forms', 'full'], options);
    expect(shown.out).toMatch(/\nfull: the endpoint failed 1 run, such as: .*this is not allowed/);
  });

  test('no form that is good enough: exit code 1', async () => {
    const { out, code } = await against(gibberish, ['--tasks', 'diamond', '--forms', 'full']);
    expect([code, out]).toEqual([
      1,
      expect.stringContaining('No recommendation.\n  In no form does the model solve 50 %'),
    ]);
  });
});

describe('[O4] budgets', () => {
  test('--max-tokens starts no run that may exceed it; the forms stay comparable', async () => {
    const args = ['--forms', 'full,compact', '--concurrency', '1', '--max-tokens', '20000', '--json'];
    const { out, err } = await against(perfect, args);
    const {
      usage,
      runs,
      omitted_runs: omitted,
    } = JSON.parse(out) as {
      usage: Record<string, number>;
      runs: { form: string; kind: string }[];
      omitted_runs: number;
    };
    expect(err).toContain('--max-tokens 20000 ends it earlier');
    expect((usage['prompt_tokens'] ?? 0) + (usage['completion_tokens'] ?? 0)).toBeLessThanOrEqual(20_000);
    expect(new Set(runs.map(({ kind }) => kind))).toEqual(new Set(KINDS));
    expect(runs.length + omitted).toBe(2 * dataset.tasks.length);
    const counts = ['full', 'compact'].map((form) => runs.filter((run) => run.form === form).length);
    expect(Math.abs((counts[0] ?? 0) - (counts[1] ?? 0))).toBeLessThanOrEqual(1);
  });

  test('after a run that does not fit, no smaller one is taken: it would prefer the short tasks', async () => {
    // The first task needs more than the others.
    const args = ['--forms', 'full', '--tasks', 'json-catalogue,two-stations,three-stocks', '--concurrency', '2'];
    const { out, code } = await against(perfect, [...args, '--max-tokens', '1300', '--json']);
    expect(JSON.parse(out)).toMatchObject({
      runs: [],
      omitted_runs: 3,
      forms: [{ unavailable: 'the budget allowed no run' }],
    });
    expect(code).toBe(1);
    const alone = await against(perfect, ['--forms', 'full', '--tasks', 'two-stations', '--max-tokens', '1300']);
    expect(alone.code).toBe(0);
  });

  test('--max-cost with --price', async () => {
    const args = ['--forms', 'full', '--concurrency', '1', '--price', '1,2', '--max-cost', '0.004', '--json'];
    const { out } = await against(perfect, args);
    const { usage, omitted_runs: omitted } = JSON.parse(out) as { usage: { cost: number }; omitted_runs: number };
    expect(usage.cost).toBeGreaterThan(0.001);
    expect(usage.cost).toBeLessThanOrEqual(0.004);
    expect(omitted).toBeGreaterThan(0);
  });
});

test.each<[string, string[], string]>([
  ['no endpoint', ['--model', 'm'], 'name the endpoint: --base-url'],
  ['no model', ['--base-url', 'http://127.0.0.1:1/v1'], 'name the model: --model'],
  ['an unknown provider', ['--provider', 'opnai', '--model', 'm'], 'did you mean openai?'],
  ['an unknown form', ['--forms', 'ful'], '--forms "ful" is unknown (did you mean full?'],
  ['an unknown task', ['--tasks', 'paralel'], '--tasks "paralel" is unknown (did you mean parallel'],
  ['no names of tasks', ['--tasks', ' ,'], '--tasks needs at least one name'],
  ['a budget without a price', ['--max-cost', '1'], '--max-cost needs --price'],
  ['a wrong price', ['--price', '1'], '--price "1" is not two numbers'],
  ['no field', ['--grammar-parameter', 'a b'], '--grammar-parameter "a b" is not a field'],
  ['an unset key', ['--key-env', 'NOTHING'], 'the variable NOTHING is not set'],
])('[O4] %s: exit code 2, and no request', async (name, args, message) => {
  const whole = /endpoint|model|provider/.test(name)
    ? args
    : ['--base-url', 'http://127.0.0.1:1/v1', '--model', 'm', ...args];
  expect(await cortex(whole)).toMatchObject({ code: 2, out: '', err: expect.stringContaining(message) });
});

test('[O4] a file that is no JSON is refused', async () => {
  const file = join(folder, 'broken.json');
  writeFileSync(file, '{');
  const { code, err } = await cortex(['--base-url', 'http://127.0.0.1:1/v1', '--model', 'm', '--compare', file]);
  expect([code, err]).toEqual([2, expect.stringContaining('broken.json')]);
});

test('[O4] an endpoint that refuses the key: exit code 3', async () => {
  await using server = await startScriptedLlm([{ status: 401, body: { error: { message: 'wrong key' } } }]);
  const { code, out } = await cortex(['--base-url', server.baseUrl, '--model', 'm', '--json']);
  expect(code).toBe(3);
  expect(JSON.parse(out)).toEqual({ error: { code: 'unauthorized', message: expect.stringContaining('wrong key') } });
});

test('[O4] good at native calls only: the manifest says so', async () => {
  const { out } = await against(callsOnly, [...FEW, '--forms', 'compact,tool_calls']);
  expect(parseYaml(out.slice(out.indexOf('\nprotocol:')))).toEqual({
    protocol: { form: 'full', dialect: 'tool_calls' },
  });
});
