/** Which options start a system for an evaluation, and which are refused before (O3). */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { dispatch } from '../../../cli/dispatch.ts';
import { modelSettings } from '../../../cli/eval/temporary-system.ts';

const folder = mkdtempSync(join(tmpdir(), 'cortex-eval-options-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const file = (name: string, text: string): string => {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
};
const dataset = file('d.yaml', 'cases: [{name: a, message: m, expect: [{exact: x}]}]');

async function cortex(
  args: readonly string[],
  environment: Readonly<Record<string, string>> = {},
): Promise<{ out: string; err: string; code: number }> {
  const said = { out: '', err: '' };
  const code = await dispatch(['eval', ...args], environment, {
    out: (text) => void (said.out += text),
    err: (text) => void (said.err += text),
  });
  return { ...said, code };
}

test.each([
  [[dataset, '--script', 's.yaml', '--model', 'm'], '--script is the model'],
  [[dataset, '--model', 'm', '--url', 'https://x.example'], 'exclude --url and --key'],
  [[dataset, '--base-url', 'https://x.example/v1'], '--base-url needs --model'],
  [[dataset, '--base-url', 'nowhere', '--model', 'm'], '--base-url: "nowhere" is not an HTTP(S) URL'],
  [[dataset, '--base-url', 'https://a:b@x.example/v1', '--model', 'm'], '--base-url must not contain a user'],
  [[dataset, '--out', folder], `--out "${folder}" cannot be written: EISDIR`],
  [[dataset, '--out', join(folder, 'none', 'r.json')], 'r.json" cannot be written: ENOENT'],
  [[dataset, '--script', 'nowhere.yaml'], 'nowhere.yaml: no such file'],
  [[dataset, '--script', file('bad.yaml', 'replies: []')], 'bad.yaml: '],
  [[dataset, '--fail-on', 'worse'], '--fail-on worse needs --compare <report>'],
  [[dataset, '--fail-on', 'anything'], 'known: failure, worse, regression'],
  [
    [dataset, '--compare', file('report.json', '{"version": 7}')],
    'report.json is a report of version 7 (supported: 1)',
  ],
  [[dataset, '--judge-model', 'm'], 'needs both --judge-base-url and --judge-model'],
  [[file('not.yaml', 'cases: 1')], 'not.yaml: cases:'],
  [['record'], 'eval record takes'],
  [[dataset, dataset], 'eval takes one dataset'],
  [[dataset, '--run', 'run_1'], '--run is an option of eval record'],
])('[O3] cortex eval %j is refused with exit code 2: %s', async (args, message) => {
  const { out, err, code } = await cortex(args);
  expect([out, code]).toEqual(['', 2]);
  expect(err).toContain(message);
});

test('[O3] a usage error is not followed by all options', async () => {
  const { err } = await cortex([dataset, '--repeat', '0']);
  expect(err.split('\n')).toEqual([
    '--repeat "0" is not a whole number from 1 to 100',
    'usage: cortex eval …; cortex eval --help lists the options',
    '',
  ]);
});

test('[O3] a script starts no system if no case needs one', async () => {
  const answered = file('answered.yaml', 'cases: [{name: a, message: m, answer: x, expect: [{exact: x}]}]');
  const { out, err, code } = await cortex([answered, '--script', file('s.yaml', 'replies: [{text: x}]'), '--json']);
  expect([JSON.parse(out), err, code]).toEqual([expect.objectContaining({ system: 'none', passed: 1 }), '', 0]);
});

test('[O3] without a system, nothing runs and the exit code is 3', async () => {
  const { err, code } = await cortex([dataset, '--url', 'http://127.0.0.1:9']);
  expect(code).toBe(3);
  expect(err).toContain('no system at http://127.0.0.1:9');
});

describe('[O3] the model of a system for an evaluation', () => {
  const project = {
    LLM_PROVIDER: 'groq',
    LLM_BASE_URL: 'https://groq.example/v1',
    LLM_API_KEY: 'project-key',
    LLM_MODEL: 'old',
    API_KEYS: 'ann:admin:abc',
    TOOL_WEATHER_KEY: 'w',
  };
  const settings = (
    values: Readonly<Record<string, string>>,
    given: Readonly<Record<string, string>> = project,
    scriptUrl: string | null = null,
  ): Record<string, string> =>
    modelSettings({ values, environment: { EVAL_API_KEY: 'eval-key' }, tell: () => undefined }, given, scriptUrl);

  test('--model keeps the endpoint and the key of the project', () => {
    expect(settings({ model: 'new' })).toEqual({
      LLM_PROVIDER: 'groq',
      LLM_BASE_URL: 'https://groq.example/v1',
      LLM_API_KEY: 'project-key',
      LLM_MODEL: 'new',
      TOOL_WEATHER_KEY: 'w',
    });
  });

  test('another endpoint gets EVAL_API_KEY and never the key of the project', () => {
    const other = { model: 'new', 'base-url': 'https://other.example/v1' };
    expect(settings(other)).toEqual({
      LLM_BASE_URL: 'https://other.example/v1',
      LLM_API_KEY: 'eval-key',
      LLM_MODEL: 'new',
      TOOL_WEATHER_KEY: 'w',
    });
    expect(modelSettings({ values: other, environment: {}, tell: () => undefined }, project, null)).not.toHaveProperty(
      'LLM_API_KEY',
    );
  });

  test('a key that would be sent to another machine without encryption is warned about', () => {
    const said: string[] = [];
    const call = { environment: { EVAL_API_KEY: 'eval-key' }, tell: (line: string) => void said.push(line) };
    for (const url of ['https://a.example/v1', 'http://127.0.0.1/v1', 'http://b.example/v1']) {
      modelSettings({ ...call, values: { model: 'm', 'base-url': url } }, project, null);
    }
    expect(said).toEqual(['warning: the API key is sent to b.example without encryption; use https']);
  });

  test('a script gets no key', () => {
    expect(settings({ script: 's.yaml' }, project, 'http://127.0.0.1:1/v1')).toEqual({
      LLM_BASE_URL: 'http://127.0.0.1:1/v1',
      LLM_API_KEY: 'none',
      LLM_MODEL: 'scripted',
      TOOL_WEATHER_KEY: 'w',
    });
  });

  test.each([[{}], [{ LLM_PROVIDER: 'demo' }]])('--model without an endpoint is refused: %j', (given) => {
    expect(() => settings({ model: 'new' }, given)).toThrow('--model needs an endpoint: --base-url, or LLM_BASE_URL');
  });
});
