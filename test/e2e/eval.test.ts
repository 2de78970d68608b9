/** `cortex eval` against a real system, with a scripted model server and a judge (O3). */
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readDataset } from '../../cli/eval/dataset.ts';
import type { EvalReport } from '../../cli/eval/report.ts';
import { answer, startScriptedLlm } from '../../cli/scripted-llm/server.ts';
import type { ScriptedLlm, ScriptedReply, SeenRequest } from '../../cli/scripted-llm/server.ts';
import { freePort } from '../../cli/system/services.ts';
import { startSystem } from '../../cli/system/system.ts';
import type { System } from '../../cli/system/system.ts';
import { cortexHere, cortex as runProgram } from '../support/cortex.ts';
import type { CortexResult } from '../support/cortex.ts';

const KEY = 'the-key-of-ann-in-this-test';
const folder = mkdtempSync(join(tmpdir(), 'cortex-eval-e2e-'));
const work = join(folder, 'work');
let system: System;
let llm: ScriptedLlm;
/** Whether the model computes wrongly. */
let isBroken = false;

const final = (text: string): ScriptedReply => answer(`<response final="true">${text}</response>`, 20);

/** A model that calculates with the tool, greets whom it knows from the conversation, and judges greetings. */
function reply({ body }: SeenRequest): ScriptedReply {
  const messages = (Array.isArray(body['messages']) ? body['messages'] : []) as { role: string; content: string }[];
  const asked = messages.findLast(({ role }) => role === 'user')?.content ?? '';
  const [, code] = /Copy the code:\n\{"code": "([0-9a-f]+)"/.exec(asked) ?? [];
  if (code !== undefined) {
    const [, judged = ''] = new RegExp(`<answer-${code}>\n([^]*)\n</answer-${code}>`).exec(asked) ?? [];
    const verdict = judged.includes('Ada') ? 'pass' : 'fail';
    return final(`{"code": "${code}", "verdict": "${verdict}", "reason": "it is a ${verdict}"}`);
  }
  if (asked.includes('denied')) return final('I was not allowed to.');
  if (asked.includes('python')) {
    return answer('<action type="python" mode="async" id="p">{"code": "print(3**4)"}</action>', 20);
  }
  if (asked.includes('calculate')) {
    const expression = isBroken ? '6 * 6' : '6 * 7';
    return answer(
      `<action type="tool" name="calculator" mode="async" id="c">{"expression": "${expression}"}</action>` +
        '<response final="true">It is $c.</response>',
      20,
    );
  }
  const known = messages.some(({ content }) => content.includes('My name is Ada'));
  return final(known ? 'Hello Ada!' : 'Hello!');
}

beforeAll(async () => {
  const stateDir = join(folder, 'state');
  for (const each of [stateDir, work]) mkdirSync(each);
  llm = await startScriptedLlm(reply);
  system = await startSystem({
    port: await freePort(),
    runnerPort: 0,
    stateDir,
    vars: {
      LLM_BASE_URL: llm.baseUrl,
      LLM_MODEL: 'scripted',
      API_KEYS: `ann:admin:${KEY}`,
      // None answers there: no program runs in these cases.
      RUNNER_URLS: 'http://127.0.0.1:1',
      RUNNER_SECRET: 'r'.repeat(40),
    },
    ownRunner: false,
    progress: () => undefined,
  });
});
afterAll(async () => {
  await system?.stop();
  await llm?.[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

async function cortex(...args: string[]): Promise<CortexResult> {
  const env = { CORTEX_URL: system.url, CORTEX_API_KEY: KEY };
  const result = await cortexHere(args, { cwd: work, env });
  expect(`${result.out}${result.err}`).not.toContain(KEY);
  return result;
}

const write = (name: string, text: string): void => writeFileSync(join(work, name), text);
const reportIn = ({ out }: CortexResult): EvalReport => JSON.parse(out) as EvalReport;

const PAGE = readFileSync('docs/evaluation.md', 'utf8');
const [, EXAMPLE = ''] = /^```yaml\n([^]*?)^```$/m.exec(PAGE) ?? [];
const GREETS = `
agent: assistant
cases:
  - name: knows the name
    message: hello
    history:
      - { role: user, content: My name is Ada. }
      - { role: assistant, content: Good day. }
    expect:
      - judge: greets the user by name
  - name: knows no name
    message: hello
    expect:
      - judge: { criteria: greets the user by name, votes: 3 }
`;

test('[O3] runs the dataset of docs/evaluation.md, and writes the report', async () => {
  write('example.yaml', EXAMPLE);
  const good = await cortex('eval', 'example.yaml', '--repeat', '2', '--json', '--out', 'report.json');
  expect([good.err, good.code]).toEqual(['', 0]);
  const report = reportIn(good);
  expect(report).toMatchObject({ version: 1, passed: 4, failed: 0, errors: 0, system: system.url });
  expect(report.models).toEqual(['scripted']);
  expect(report.results[0]?.session_id).toMatch(/^ses_/);
  expect(JSON.parse(readFileSync(join(work, 'report.json'), 'utf8'))).toEqual(report);
});

test('[O3] says what got worse in an agent that calculates wrongly', async () => {
  isBroken = true;
  try {
    const bad = await cortex('eval', 'example.yaml', '--compare', 'report.json', '--fail-on', 'worse');
    expect(bad.out).toContain('✗ multiplies');
    expect(bad.out).toContain('the answer does not contain "42": "It is 36."');
    expect(bad.out).toContain('1 of 2 runs passed, 1 failed: 50 %');
    expect(bad.out).toContain('2 cases: 0 better, 1 worse; pass rate: −50');
    expect([bad.err, bad.code]).toEqual(['1 of 2 cases pass less often than before\n', 1]);
  } finally {
    isBroken = false;
  }
});

test('[O3] a case may have a history, and an agent of the system judges', async () => {
  write('greets.yaml', GREETS);
  const { results, judge, tokens } = reportIn(await cortex('eval', 'greets.yaml', '--json'));
  expect(results).toMatchObject([
    { outcome: 'passed', response: 'Hello Ada!', judgements: [{ votes: { passed: 1 } }] },
    {
      outcome: 'failed',
      reasons: ['the judge says fail (3 of 3 votes): it is a fail'],
      judgements: [{ votes: { failed: 3 } }],
    },
  ]);
  expect(judge).toMatchObject({ judgements: 2, errors: 0, models: ['scripted'] });
  expect(judge?.tokens).toBeGreaterThan(tokens?.total ?? Infinity);
});

test('[O3] a run that waits for an approval is cancelled, unless the case decides', async () => {
  const one = (name: string, more: string): string =>
    `  - { name: ${name}, message: compute 3**4 in python, expect: [{ cel: 'actions[0].error.code == "approval_denied"' }, { contains: not allowed }]${more} }\n`;
  write('waits.yaml', `cases:\n${one('waits', '')}${one('denied', ', approvals: deny')}`);
  const { results } = reportIn(await cortex('eval', 'waits.yaml', '--agent', 'careful_assistant', '--json'));
  expect(results[0]).toMatchObject({ outcome: 'failed', reasons: expect.arrayContaining(['the run is cancelled']) });
  expect(results[1]).toMatchObject({ outcome: 'passed', response: 'I was not allowed to.' });
});

test('[O3] a refused request is an error, not a failure of the agent', async () => {
  const { out, err, code } = await cortex('eval', 'example.yaml', '--agent', 'nobody');
  expect(out).toContain('0 of 0 runs passed, 0 failed, 2 without a result');
  expect([err, code]).toEqual(['2 of 2 runs could not be made or judged, so the evaluation is incomplete\n', 1]);
});

test('[O3] a case that is recorded from a session passes when it is run', async () => {
  const first = await cortex('run', 'assistant', 'My name is Ada.');
  const [session = ''] = /ses_[0-9a-f]{32}/.exec(first.err) ?? [];
  await cortex('run', 'hello', '--session', session);
  await cortex('run', 'calculate it', '--session', session);
  const { out: runs } = await cortex('sessions', 'show', session, '--json');
  const [, greeting] = (JSON.parse(runs) as { runs: { run_id: string }[] }).runs.map(({ run_id: id }) => id).sort();
  const last = await cortex('eval', 'record', session, '--out', 'recorded.yaml');
  expect([last.out, last.err, last.code]).toEqual(['added "calculate it" to recorded.yaml\n', '', 0]);
  expect((await cortex('eval', 'record', session, '--run', greeting ?? '', '--out', 'recorded.yaml')).code).toBe(0);

  const { cases } = readDataset(readFileSync(join(work, 'recorded.yaml'), 'utf8'));
  expect(cases).toMatchObject([
    {
      message: 'calculate it',
      history: [{ content: 'My name is Ada.' }, { role: 'assistant' }, { content: 'hello' }, { content: 'Hello Ada!' }],
      expect: [{ cel: expect.stringContaining('"6 * 7"') }, { contains: 'It is 42.' }],
    },
    { message: 'hello', history: { length: 2 }, expect: [{ contains: 'Hello Ada!' }] },
  ]);
  expect(reportIn(await cortex('eval', 'recorded.yaml', '--json'))).toMatchObject({ passed: 2, failed: 0, errors: 0 });
  isBroken = true;
  try {
    expect(reportIn(await cortex('eval', 'recorded.yaml', '--json'))).toMatchObject({ passed: 1, failed: 1 });
  } finally {
    isBroken = false;
  }
});

test('[O3] --script starts a system with a scripted model, and removes it', async () => {
  write('script.yaml', 'replies: [{ text: "<response final=\\"true\\">It is 42, scripted.</response>" }]');
  write(
    'small.yaml',
    'cases: [{ name: a, message: calculate 6 * 7, expect: [{ contains: 42 scripted }, { contains: "42, scripted" }] }]',
  );
  const temporary = join(folder, 'temporary');
  mkdirSync(temporary);
  const built = process.env['CORTEX_BUILT_WORKER'] ?? '';
  const { out, err, code } = await runProgram(['eval', 'small.yaml', '--script', 'script.yaml', '--json'], {
    cwd: work,
    env: { TMPDIR: temporary, ...(built === '' ? {} : { CORTEX_BUILT_WORKER: built }) },
  });
  expect(err).toContain('starting a system for the evaluation');
  const report = JSON.parse(out) as EvalReport;
  expect(report).toMatchObject({ system: 'temporary', models: ['scripted'], failed: 1, errors: 0 });
  expect(report.results[0]?.reasons).toEqual(['the answer does not contain "42 scripted": "It is 42, scripted."']);
  expect(code).toBe(1);
  expect(readdirSync(temporary).filter((name) => name.startsWith('cortex-'))).toEqual([]);
});
