/** Cases from recorded sessions (O3). */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { dispatch } from '../../../cli/dispatch.ts';
import { readDataset } from '../../../cli/eval/dataset.ts';
import type { EvalCase } from '../../../cli/eval/dataset.ts';
import { draftCase } from '../../../cli/eval/draft-case.ts';
import { readRecording } from '../../../cli/eval/recording.ts';
import type { Recording } from '../../../cli/eval/recording.ts';
import { score } from '../../../cli/eval/scorers.ts';
import type { Json, JsonObject } from '../../../src/domain/json.ts';

const folder = mkdtempSync(join(tmpdir(), 'cortex-record-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const SESSION = `ses_${'2'.repeat(32)}`;
const session = { session: { session_id: SESSION, agent: 'clerk' } };
const run = (id: string, content: Json, more: JsonObject = {}): object => ({
  run: { run_id: id, status: 'completed', started_at: 1, ended_at: 2, input: { type: 'message', content, ...more } },
});
let seq = 0;
const event = (id: string, type: string, data: object = {}, more: object = {}): object => ({
  seq: (seq += 1),
  type,
  session_id: SESSION,
  run_id: id,
  iteration: 1,
  timestamp: seq,
  ...more,
  data,
});
const answered = (id: string, response: string): object =>
  event(id, 'agent_completed', { response, iterations: 1, usage: {} });

/** Events of one completed action. */
function action(
  id: string,
  actionId: string,
  type: string,
  name: string,
  declared: JsonObject,
  executed?: JsonObject,
): object[] {
  const which = { action_id: actionId, action_name: name };
  return [
    event(id, 'action_queued', { type, mode: 'async', depends_on: [], output_key: null, parameters: declared }, which),
    event(id, 'action_started', { attempt: 1, ...(executed === undefined ? {} : { parameters: executed }) }, which),
    event(id, 'action_completed', { output: 1, ms: 1, attempt: 1 }, which),
  ];
}

async function* linesOf(lines: readonly object[]): AsyncGenerator<string> {
  for (const line of lines) yield JSON.stringify(line);
}
const recorded = async (lines: readonly object[], wanted?: string): Promise<Recording> =>
  await readRecording(linesOf(lines), wanted);
const drafted = async (lines: readonly object[], wanted?: string): Promise<EvalCase> =>
  draftCase(await recorded(lines, wanted), new Set(), 'clerk');

describe('[O3] a recorded run', () => {
  const lines = [
    session,
    { seeded: { role: 'user', content: 'My name is Ada.' } },
    { seeded: { role: 'assistant', content: null, tool_calls: [] } },
    run('run_1', 'first'),
    run('run_2', [{ type: 'text', text: 'second' }]),
    run('run_3', 'other second'),
    run('run_4', 'last'),
    event('run_1', 'agent_started'),
    event('run_1', 'variable_changed', { key: 'changed', value: 1 }),
    answered('run_1', 'one'),
    event('run_2', 'agent_started'),
    answered('run_2', 'two'),
    event('run_3', 'agent_started'),
    event('run_3', 'run_branched', { parent_run: 'run_1' }),
    answered('run_3', 'other two'),
    event('run_4', 'agent_started'),
    event('run_4', 'variable_changed', { key: 'changed', value: 2 }),
    event('run_4', 'variable_changed', { key: 'late', value: 3 }),
    answered('run_4', 'four'),
    { variables: { changed: 2, late: 3, constant: true } },
  ];

  test('follows its branch, with the seeded history before it', async () => {
    const { message, history, answer, agent, session_id: id } = await recorded(lines);
    expect([message, answer, agent, id]).toEqual(['last', 'four', 'clerk', SESSION]);
    expect(history).toEqual([
      { role: 'user', content: 'My name is Ada.' },
      { role: 'user', content: 'first' },
      { role: 'assistant', content: 'one' },
      { role: 'user', content: 'other second' },
      { role: 'assistant', content: 'other two' },
    ]);
  });

  test('has the variables of its beginning, and says which are unknown', async () => {
    const { variables, notes } = await recorded(lines);
    expect(variables).toEqual({ changed: 1, constant: true });
    expect(notes).toEqual([
      '1 messages of the seeded history without text are left out',
      'the first values of these variables are not recorded: late',
    ]);
  });

  test('may be any run', async () => {
    expect(await recorded(lines, 'run_2')).toMatchObject({ message: 'second', answer: 'two', history: { length: 3 } });
  });

  test('says what a case cannot hold', async () => {
    const content = [
      { type: 'text', text: 'see [redacted]' },
      { type: 'image', name: 'a.png' },
    ];
    const { message, notes } = await recorded([session, run('run_1', content, { tools: [], instructions: 'x' })]);
    expect(message).toBe('see [redacted]');
    expect(notes).toEqual([
      'the message has redacted text: write another text in its place',
      'the images and files of the message are left out',
      'the client tools of the message are left out',
      'the instructions of the application are left out',
    ]);
  });

  test('keeps how approvals were answered, if they were answered alike', async () => {
    const resolved = (approved: boolean, more: object = {}): object =>
      event('run_1', 'approval_resolved', { approval_id: 'apr_1', approved, ...more }, { action_id: 'a' });
    const of = async (...events: object[]): Promise<[string | undefined, readonly string[]]> => {
      const all = [session, run('run_1', 'm'), ...events, answered('run_1', 'x')];
      return [(await drafted(all)).approvals, (await recorded(all)).notes];
    };
    expect(await of()).toEqual([undefined, []]);
    expect(await of(resolved(true), resolved(true))).toEqual(['approve', []]);
    expect(await of(resolved(false))).toEqual(['deny', []]);
    expect(await of(resolved(true), resolved(false))).toEqual([
      undefined,
      ['some approvals were granted and others denied: set "approvals" to approve or deny'],
    ]);
    expect(await of(resolved(true, { content: { city: 'Oslo' } }))).toEqual([
      'approve',
      ['the values that answered questions are left out: a case only approves or denies'],
    ]);
  });

  test('leaves out redacted variables, and says what the history lacks', async () => {
    const image = { type: 'image', name: 'a.png' };
    const { variables, history, notes } = await recorded([
      session,
      { seeded: { role: 'user', content: [{ type: 'text', text: 'seeded' }, image] } },
      run('run_1', [image]),
      run('run_2', [{ type: 'text', text: 'call [redacted]' }, image]),
      run('run_3', 'last'),
      answered('run_1', 'one'),
      answered('run_2', 'two'),
      answered('run_3', 'three'),
      { variables: { city: 'Oslo', card: { number: '[redacted]' }, '[redacted 2]': 1 } },
    ]);
    expect(variables).toEqual({ city: 'Oslo' });
    expect(history.map(({ content }) => content)).toEqual(['seeded', 'call [redacted]', 'two']);
    expect(notes).toEqual([
      'earlier runs without a text message are left out of the history: 1',
      'the images and files of messages of the history are left out: 2 messages',
      'messages of the history have redacted text: 1; write another text in its place',
      'these variables have redacted text and are left out: card, [redacted 2]',
    ]);
  });

  test.each([
    [[session, { run: { run_id: 'run_1', input: { type: 'text', text: 'x' } } }], 'was not started by a message'],
    [[session, run('run_1', [{ type: 'image' }])], 'has no text'],
    [[session], 'contains no run'],
    [
      [
        session,
        run('run_1', 'one'),
        run('run_2', 'two'),
        { seq: 1, type: 'run_branched', run_id: 'run_1', data: { parent_run: 'run_2' } },
      ],
      'the run run_1 follows itself',
    ],
  ])('%j is refused: %s', async (bad, message) => {
    await expect(recorded(bad)).rejects.toThrow(message);
  });
});

describe('[O3] the draft', () => {
  const of = async (events: readonly object[], answer: string): Promise<EvalCase['expect']> =>
    (await drafted([session, run('run_1', 'm'), ...events, answered('run_1', answer)])).expect;

  test('expects the called tools with their simple parameters as executed, and the short answer', async () => {
    const events = [
      ...action(
        'run_1',
        'a',
        'tool',
        'calculator',
        { expression: '$x' },
        { expression: '6 "*" 7', exact: true, list: [1], odd: '\ud800' },
      ),
      ...action('run_1', 'b', 'python', 'python', { code: 'print(1)' }),
      ...action('run_1', 'c', 'internal', 'set_variable', { key: 'a' }),
      event('run_1', 'action_queued', { type: 'tool', parameters: {} }, { action_id: 'd', action_name: 'failed_tool' }),
    ];
    const expected = await of(events, 'It is 42.');
    expect(expected).toEqual([
      {
        cel: 'actions.exists(a, a.name == "calculator" && a.status == "completed" && a.parameters["expression"] == "6 \\"*\\" 7" && a.parameters["exact"] == true)',
      },
      { cel: 'actions.exists(a, a.type == "python" && a.status == "completed" && a.parameters["code"] == "print(1)")' },
      { contains: 'It is 42.' },
    ]);
    const document = {
      actions: [
        { name: 'calculator', type: 'tool', status: 'completed', parameters: { expression: '6 "*" 7', exact: true } },
        { name: null, type: 'python', status: 'completed', parameters: { code: 'print(1)' } },
      ],
    };
    const reasons = expected.map((one) => score(one, { response: 'It is 42.', document }));
    expect(reasons).toEqual([null, null, null]);
  });

  test('expects JSON as JSON, and a long answer by a judge', async () => {
    expect(await of([], '{"total": 60}')).toEqual([{ json: { total: 60 } }]);
    const long = 'word '.repeat(1_000);
    const [only] = await of([], long);
    expect(only?.judge?.criteria).toMatch(/^The answer says the same as this one, in any words\.\nword word/);
    expect(only?.judge?.criteria.length).toBeLessThan(2_200);
  });

  test('never expects redacted text', async () => {
    const events = action('run_1', 'a', 'tool', 'mail', { to: '[redacted]', cc: '[redacted 2]', subject: 'Hi' });
    expect(await of(events, 'Sent to [redacted].')).toEqual([
      { cel: 'actions.exists(a, a.name == "mail" && a.status == "completed" && a.parameters["subject"] == "Hi")' },
      {
        judge: {
          criteria: expect.stringContaining('Parts that read [redacted] may be anything'),
          votes: 1,
          verdict: 'pass',
        },
      },
    ]);
    expect(await of([], '{"to": "[redacted]"}')).toEqual([{ judge: expect.anything() }]);
  });

  test('a run without an answer leaves a task', async () => {
    const { expect: expected } = await drafted([session, run('run_1', 'm')]);
    expect(expected).toEqual([
      { judge: { criteria: expect.stringContaining('Replace this'), votes: 1, verdict: 'pass' } },
    ]);
  });

  test('has a name of its own, and the agent if it is another one', async () => {
    const lines = [session, run('run_1', `a\n${'b'.repeat(100)}`), answered('run_1', 'x')];
    const recording = await recorded(lines);
    const one = draftCase(recording, new Set(), 'clerk');
    expect(one.name).toBe(`a ${'b'.repeat(57)}…`);
    const emoji = [session, run('run_1', `${'a'.repeat(58)}😀${'b'.repeat(9)}`), answered('run_1', 'x')];
    expect((await drafted(emoji)).name).toBe(`${'a'.repeat(58)}…`);
    expect(one).not.toHaveProperty('agent');
    expect(draftCase(recording, new Set([one.name]), 'other')).toMatchObject({
      name: `${one.name} (2)`,
      agent: 'clerk',
    });
  });
});

describe('[O3] cortex eval record', () => {
  const file = join(folder, 'session.jsonl');
  const lines = [session, run('run_1', 'hello'), answered('run_1', 'Hello: you.'), { variables: { city: 'Oslo' } }];
  writeFileSync(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(''));

  async function cortex(...args: string[]): Promise<{ out: string; err: string; code: number }> {
    const said = { out: '', err: '' };
    const code = await dispatch(
      ['eval', 'record', ...args],
      {},
      {
        out: (text) => void (said.out += text),
        err: (text) => void (said.err += text),
      },
    );
    return { ...said, code };
  }

  test('prints a dataset', async () => {
    const { out, err, code } = await cortex(file);
    expect([err, code]).toEqual(['', 0]);
    expect(out).toContain(`# Recorded from ${SESSION}, run_1. Edit what is expected.`);
    expect(readDataset(out)).toEqual({
      agent: 'clerk',
      cases: [{ name: 'hello', message: 'hello', variables: { city: 'Oslo' }, expect: [{ contains: 'Hello: you.' }] }],
    });
  });

  test('reads a file that an editor has written: with a byte order mark, CRLF and empty lines', async () => {
    const edited = join(folder, 'edited.jsonl');
    writeFileSync(edited, `\u{feff}${lines.map((line) => `${JSON.stringify(line)}\r\n\r\n`).join('')}\r\n`);
    expect(await cortex(edited)).toEqual(await cortex(file));
  });

  test('prints nothing that a terminal obeys', async () => {
    const hostile = join(folder, 'hostile.jsonl');
    const escape = '\u001B]0;x\u0007';
    const id = { session: { session_id: `${escape}\nagent: other`, agent: 'clerk' } };
    writeFileSync(hostile, [id, ...lines.slice(1)].map((line) => `${JSON.stringify(line)}\n`).join(''));
    const { out, code } = await cortex(hostile);
    expect([out.includes('\u001B'), code]).toEqual([false, 0]);
    expect(readDataset(out).agent).toBe('clerk');
    const dataset = join(folder, 'hostile.yaml');
    writeFileSync(dataset, `cases: []\n"${String.raw`\e]0;x\a`}": 1\n`);
    const { err } = await cortex(file, '--out', dataset);
    expect(err).toContain('is unknown');
    expect(err).not.toContain('\u001B');
  });

  test('adds to a dataset, whose comments are kept', async () => {
    const out = join(folder, 'd.yaml');
    const written = '# mine\ncases:\n  - name: hello # first\n    message: m\n    expect: [{ exact: x }]\n';
    writeFileSync(out, written);
    expect(await cortex(file, '--out', out)).toEqual({ out: `added "hello (2)" to ${out}\n`, err: '', code: 0 });
    const text = readFileSync(out, 'utf8');
    expect(text).toContain('# mine\n');
    expect(text).toContain('name: hello # first');
    expect(readDataset(text).cases).toMatchObject([{ name: 'hello' }, { name: 'hello (2)', agent: 'clerk' }]);
  });

  test.each([
    [[file, '--repeat', '2'], 'eval record has no option --repeat'],
    [['nowhere'], '"nowhere" is neither a file nor the id of a session'],
    [[file, '--out', file], 'session.jsonl: '],
  ])('%j is refused: %s', async (args, message) => {
    const { err, code } = await cortex(...args);
    expect(code).toBe(2);
    expect(err).toContain(message);
  });
});
