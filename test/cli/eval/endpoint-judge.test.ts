/** A judge at an endpoint, with a real HTTP server that answers like a provider (O3). */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { dispatch } from '../../../cli/dispatch.ts';
import { endpointJudge } from '../../../cli/eval/endpoint-judge.ts';
import { judge } from '../../../cli/eval/judge.ts';
import { chosenJudge } from '../../../cli/eval/judge-options.ts';
import { startScriptedLlm } from '../../../cli/scripted-llm/server.ts';
import type { ScriptedReply, SeenRequest } from '../../../cli/scripted-llm/server.ts';

const CODE = 'abcdef';
const verdict = (word: string): ScriptedReply => ({
  stream: [
    `{"code": "${CODE}", "verdict": "${word}", "reason": "so it is"}`,
    { finish: 'stop' },
    { usage: { prompt_tokens: 900, completion_tokens: 100 } },
  ],
});

const judged = { history: [], message: 'hi', answer: 'hello' };
const criteria = { criteria: 'greets', votes: 1, verdict: 'pass' } as const;

test('[O3] asks the model with the key, and reports tokens and cost', async () => {
  await using llm = await startScriptedLlm([verdict('pass')]);
  const ask = endpointJudge({ baseUrl: llm.baseUrl, model: 'gpt-4.1', apiKey: 'judge-key' }, () => 0.5);
  const found = await judge(criteria, judged, ask, () => CODE);
  expect(found).toMatchObject({ outcome: 'passed', tokens: 1_000, models: ['gpt-4.1'], session_ids: [] });
  expect(found.cost).toBeCloseTo((900 * 2 + 100 * 8) / 1_000_000, 10);
  const [seen] = llm.requests as readonly [SeenRequest];
  expect(seen.headers.authorization).toBe('Bearer judge-key');
  expect(seen.body['model']).toBe('gpt-4.1');
  expect(JSON.stringify(seen.body['messages'])).toContain(`answer-${CODE}`);
});

test('[O3] an endpoint that refuses is an error, without its key in the reason', async () => {
  await using llm = await startScriptedLlm([{ status: 401, body: { error: { message: 'bad key judge-key' } } }]);
  const ask = endpointJudge({ baseUrl: llm.baseUrl, model: 'm', apiKey: 'judge-key' }, () => 0.5);
  const found = await judge(criteria, judged, ask, () => CODE);
  expect(found.outcome).toBe('error');
  expect(found.reason).toContain('the judge could not be asked');
  expect(found.reason).toContain('JUDGE_API_KEY');
  expect(found.reason).not.toContain('judge-key');
});

const call = (
  values: Readonly<Record<string, string>>,
  environment: Readonly<Record<string, string>> = {},
): Parameters<typeof chosenJudge>[0] => ({
  values,
  environment,
  positionals: [],
  json: false,
  print: () => undefined,
  tell: () => undefined,
});

test('[O3] the options choose the judge', () => {
  expect(chosenJudge(call({})).label).toBe('agent eval_judge');
  expect(chosenJudge(call({ 'judge-agent': 'mine' })).label).toBe('agent mine');
  const endpoint = { 'judge-base-url': 'https://api.example.com/v1', 'judge-model': 'm' };
  expect(chosenJudge(call(endpoint, { JUDGE_API_KEY: 'secret' })).label).toBe('m at api.example.com');
});

test.each([
  [{ 'judge-model': 'm' }, 'needs both'],
  [{ 'judge-base-url': 'https://api.example.com/v1' }, 'needs both'],
  [{ 'judge-agent': 'a', 'judge-model': 'm' }, '--judge-agent excludes'],
  [{ 'judge-base-url': 'nowhere', 'judge-model': 'm' }, '--judge-base-url: "nowhere" is not an HTTP(S) URL'],
  [
    { 'judge-base-url': 'https://a:b@api.example.com/v1', 'judge-model': 'm' },
    '--judge-base-url must not contain a user',
  ],
])('[O3] %j is refused: %s', (values, message) => {
  expect(() => chosenJudge(call(values))).toThrow(message);
});

test('[O3] cases with given answers and a judge at an endpoint need no system', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'cortex-judge-'));
  try {
    const file = join(folder, 'd.yaml');
    writeFileSync(
      file,
      'cases: [{name: a, message: hi, answer: hello, expect: [{judge: greets}]}, {name: b, message: hi, answer: no, expect: [{judge: {criteria: greets, verdict: fail}}]}]',
    );
    await using llm = await startScriptedLlm(({ body }) => {
      const prompt = JSON.stringify(body['messages']);
      const [, code = ''] = /answer-([0-9a-f]{24})/.exec(prompt) ?? [];
      const word = prompt.includes('\\nhello\\n') ? 'pass' : 'fail';
      return { stream: [`{"code": "${code}", "verdict": "${word}"}`, { finish: 'stop' }] };
    });
    let out = '';
    const args = ['eval', file, '--judge-base-url', llm.baseUrl, '--judge-model', 'm', '--json'];
    const exit = await dispatch(args, {}, { out: (text) => void (out += text), err: () => undefined });
    expect(JSON.parse(out)).toMatchObject({ system: 'none', passed: 2, failed: 0, errors: 0, models: [] });
    expect(exit).toBe(0);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test('[O3] a report that can no longer be written is printed first', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'cortex-judge-'));
  try {
    const [file, report] = [join(folder, 'd.yaml'), join(folder, 'r.json')];
    writeFileSync(file, 'cases: [{name: a, message: hi, answer: hello, expect: [{judge: greets}]}]');
    await using llm = await startScriptedLlm(() => {
      mkdirSync(report);
      return { stream: ['no verdict', { finish: 'stop' }] };
    });
    const said = { out: '', err: '' };
    const args = ['eval', file, '--judge-base-url', llm.baseUrl, '--judge-model', 'm', '--out', report];
    const output = { out: (text: string) => void (said.out += text), err: (text: string) => void (said.err += text) };
    expect(await dispatch(args, {}, output)).toBe(1);
    expect(said.out).toContain('0 of 0 runs passed, 0 failed, 1 without a result');
    expect(said.err).toContain('EISDIR');
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test('[O3] Ctrl-C reports the runs that have ended, also to the file', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'cortex-judge-'));
  try {
    const [file, report] = [join(folder, 'd.yaml'), join(folder, 'r.json')];
    const one = (name: string): string => `{name: ${name}, message: hi, answer: hello, expect: [{judge: greets}]}`;
    writeFileSync(file, `cases: [${['a', 'b', 'c'].map(one).join(', ')}]`);
    let asked = 0;
    await using llm = await startScriptedLlm(({ body }) => {
      const [, code = ''] = /answer-([0-9a-f]{24})/.exec(JSON.stringify(body['messages'])) ?? [];
      asked += 1;
      if (asked === 2) process.emit('SIGINT');
      return { stream: [`{"code": "${code}", "verdict": "pass"}`, { finish: 'stop' }] };
    });
    const said = { out: '', err: '' };
    const options = ['--concurrency', '1', '--judge-base-url', llm.baseUrl, '--judge-model', 'm', '--out', report];
    const output = { out: (text: string) => void (said.out += text), err: (text: string) => void (said.err += text) };
    expect(await dispatch(['eval', file, ...options], {}, output)).toBe(1);
    expect(said.out).toContain('1 of 1 runs passed, 0 failed, 2 not made: 100 %');
    expect(said.err).toContain('the evaluation was stopped: 2 of 3 runs were not made');
    expect(JSON.parse(readFileSync(report, 'utf8'))).toMatchObject({
      passed: 1,
      omitted: 2,
      verdict: { result: 'stopped' },
    });
    expect(asked).toBe(2);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
