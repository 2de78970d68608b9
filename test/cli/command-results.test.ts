/** Exit codes and JSON of commands that talk to a system, with one that answers by a table; and of those that need none. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { dispatched } from './dispatched.ts';
import type { Dispatched } from './dispatched.ts';
import { folderOfFile, serverOfFile } from './scene.ts';

const folder = folderOfFile();
const SESSION = `ses_${'1'.repeat(32)}`;
const RUN = 'run_1';
const APPROVAL = {
  approval_id: 'apr_1',
  session_id: SESSION,
  parent_session_id: null,
  run_id: RUN,
  agent: 'clerk\u001B[2K',
  action_id: 'p',
  type: 'python',
  name: null,
  requested_at: 0,
  expires_at: 0,
  complete: true,
  parameters: { code: 'print(1)' },
  inputs: {},
  question: { from: 'the \u001Bairline', message: 'Go on?\n  approve? [y/N]' },
};

/** Answers by method and path. */
const ANSWERS: Readonly<Record<string, unknown>> = {
  'GET /approvals': { approvals: [APPROVAL], next: null },
  [`GET /agent/session/${SESSION}/approvals`]: {
    approvals: [APPROVAL, { ...APPROVAL, approval_id: 'apr_2' }],
    next: null,
  },
  [`POST /agent/session/${SESSION}/approvals/apr_1`]: {},
  'GET /agent/clerk/memory': {
    facts: [{ key: 'city', value: 'Rome \u001B[2K', updated_at: 0, session_id: null, run_id: null }],
  },
  'DELETE /agent/clerk/memory': { forgotten: 2 },
  'DELETE /agent/clerk/memory/city': { forgotten: 1 },
  'GET /sessions': { sessions: [], next: null },
  [`DELETE /agent/session/${SESSION}`]: { deleted: true },
};

const seen: { path: string; body: string }[] = [];
const server = serverOfFile((asked, answer) => {
  let body = '';
  asked.on('data', (chunk: Buffer) => (body += chunk.toString()));
  asked.on('end', () => {
    seen.push({ path: `${asked.method} ${asked.url}`, body });
    const found = ANSWERS[`${asked.method} ${asked.url?.split('?')[0]}`];
    const isKnown = asked.headers.authorization === 'Bearer right-key';
    const problem = (status: number, code: string): void =>
      void answer
        .writeHead(status, { 'content-type': 'application/problem+json' })
        .end(JSON.stringify({ code, detail: `${code}!` }));
    if (!isKnown) problem(401, 'unauthorized');
    else if (found === undefined) problem(404, 'unknown_session');
    else answer.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(found));
  });
});

const cortex = async (args: readonly string[], key = 'right-key'): Promise<Dispatched> =>
  await dispatched(args, { CORTEX_URL: server.url, CORTEX_API_KEY: key });

const MEMORY = ['memory', '--agent=clerk', '--user=zoë'];

const REMOTE = [
  ['run', 'clerk', 'hello'],
  ['tail', SESSION],
  ['approve'],
  ['sessions'],
  ['sessions', 'show', SESSION],
  ['sessions', 'export', SESSION],
  ['replay', SESSION],
  ['export', '--out', join(folder, 'copy')],
  ['prompt', 'clerk'],
  MEMORY,
];

describe.each(REMOTE)('[K4] cortex %s %s %s', (...given) => {
  const args = given.filter((arg) => typeof arg === 'string');

  test('exits with 3 if the system does not accept the key, and does not print it', async () => {
    const wrong = await cortex(args, 'wrong-key');
    expect([wrong.out, wrong.code]).toEqual(['', 3]);
    expect(wrong.err).toContain('does not know this API key');
    expect(wrong.err).not.toContain('wrong-key');
    const json = await cortex([...args, '--json'], 'wrong-key');
    expect(json.code).toBe(3);
    expect(JSON.parse(json.out)).toEqual({ error: { code: 'unauthorized', message: expect.any(String) } });
  });

  test('exits with 3 if no system answers', async () => {
    const nothing = await cortex([...args, '--json', '--url', 'http://127.0.0.1:1']);
    expect(nothing.code).toBe(3);
    expect(JSON.parse(nothing.out)).toEqual({
      error: { code: 'unreachable', message: expect.stringContaining('127.0.0.1:1') },
    });
  });
});

test.each([
  [['run', 'clerk', 'hello']],
  [['tail', SESSION, '--until-idle']],
  [['sessions', 'show', SESSION]],
  [['replay', SESSION]],
])('[K4] cortex %j exits with 1 if the system refuses', async (args) => {
  expect(await cortex(args)).toMatchObject({ out: '', err: 'unknown_session: unknown_session!\n', code: 1 });
  const json = await cortex([...args, '--json']);
  expect(JSON.parse(json.out)).toEqual({ error: { code: 'unknown_session', message: 'unknown_session!' } });
});

describe('[C10] cortex memory', () => {
  test('lists facts without control characters', async () => {
    expect((await cortex(MEMORY)).out).toBe('1970-01-01 00:00:00  city: Rome \\u{1b}[2K\n');
    expect(seen.at(-1)?.path).toBe('GET /agent/clerk/memory?user_id=zo%C3%AB');
    expect(JSON.parse((await cortex([...MEMORY, '--json'])).out)).toMatchObject({ facts: [{ key: 'city' }] });
  });

  test('forgets one fact, or all', async () => {
    expect((await cortex([...MEMORY, 'forget', 'city'])).out).toBe('forgotten: 1 fact\n');
    expect(seen.at(-1)?.path).toBe('DELETE /agent/clerk/memory/city?user_id=zo%C3%AB');
    expect((await cortex([...MEMORY, 'forget', '--all'])).out).toBe('forgotten: 2 facts\n');
    expect(seen.at(-1)?.path).toBe('DELETE /agent/clerk/memory?user_id=zo%C3%AB');
  });

  test.each([
    [['memory'], 'memory needs --agent'],
    [['memory', '--agent=clerk'], 'memory needs --user'],
    [[...MEMORY, 'forget'], 'memory forget takes one key, or --all'],
    [[...MEMORY, 'forget', 'city', '--all'], 'memory forget takes one key, or --all'],
    [[...MEMORY, 'list', '--all'], 'memory list takes no key and no --all'],
    [[...MEMORY, 'learn'], 'memory "learn" is unknown (known: list, forget)'],
  ])('%j is refused, and nothing is asked', async (args, said) => {
    const before = seen.length;
    const { err, code } = await cortex(args);
    expect(err).toContain(said);
    expect([code, seen.length]).toEqual([2, before]);
  });
});

describe('[K4] cortex approve', () => {
  test('lists what waits, with its parameters, and without control characters', async () => {
    const { out, code } = await cortex(['approve']);
    expect(out).toContain(`apr_1  p (python), agent clerk\\u{1b}[2K, ${SESSION}\n`);
    expect(out).toContain('    the \\u{1b}airline asks\n    │ {\n    │   "message": "Go on?\\n  approve? [y/N]"');
    expect(out).toContain('"code": "print(1)"');
    expect(code).toBe(0);
    expect(JSON.parse((await cortex(['approve', '--json'])).out)).toEqual({ approvals: [APPROVAL] });
  });

  test.each([
    [[], { approve: true }, 'approved'],
    [['--deny', '--note', 'too red'], { approve: false, note: 'too red' }, 'denied'],
    [['--content', '{"seats": 2}'], { approve: true, content: { seats: 2 } }, 'approved'],
  ])('decides one request with %j', async (more, body, decision) => {
    const { out, code } = await cortex(['approve', 'apr_1', ...more, '--json']);
    expect(code).toBe(0);
    expect(JSON.parse(seen.at(-1)?.body ?? '')).toEqual(body);
    const { approval_id, session_id, run_id, action_id } = APPROVAL;
    const note = 'note' in body ? body.note : null;
    expect(JSON.parse(out)).toEqual({ approval_id, session_id, run_id, action_id, decision, note });
  });

  test.each([
    [['--deny'], 2, '--deny, --note and --content need the id'],
    [['apr_1', '--content', '[1]'], 2, '--content must be a JSON object'],
    [['apr_9'], 1, 'no open request has the id "apr_9"'],
    [[SESSION], 2, `2 requests of ${SESSION} wait; name the id of one`],
  ])('%j is refused with %i, and nothing is decided', async (args, exit, said) => {
    const before = seen.length;
    const { err, code } = await cortex(['approve', ...args]);
    expect(err).toContain(said);
    expect(code).toBe(exit);
    expect(seen.slice(before).filter(({ path }) => path.startsWith('POST'))).toEqual([]);
  });
});

describe('[K4] cortex sessions', () => {
  test('passes its filters on', async () => {
    const filters = '--agent clerk --user u --status idle --limit 7'.split(' ');
    const { out } = await cortex(['sessions', ...filters, '--json']);
    expect(JSON.parse(out)).toEqual({ sessions: [], more: false });
    const query = Object.fromEntries(new URLSearchParams(seen.at(-1)?.path.split('?')[1]));
    expect(query).toEqual({ agent: 'clerk', user_id: 'u', status: 'idle', limit: '7' });
  });

  test('deletes one', async () => {
    const done = { out: `{"deleted":"${SESSION}"}\n`, err: '', code: 0 };
    expect(await cortex(['sessions', 'delete', SESSION, '--json'])).toEqual(done);
  });

  test.each([
    [['lst'], 'did you mean list?'],
    [['list', SESSION], 'takes no id'],
    [['show'], 'takes the id of one session'],
    [['show', 'ses_1'], 'is not the id of a session'],
    [['--limit', '0'], '--limit "0" is not a whole number from 1 to 10000'],
    [['--status', 'busy'], '--status "busy" is unknown (known: running, waiting, idle)'],
  ])('%j is wrong usage', async (args, said) => {
    const { err, code } = await cortex(['sessions', ...args]);
    expect(err).toContain(said);
    expect(code).toBe(2);
  });
});

test.each([
  [['run', 'clerk'], 'the message is missing'],
  [['tail', SESSION, '--after', '-1'], "Option '--after' argument is ambiguous"],
  [['tail', SESSION, '--after', 'x'], '--after "x" is not a whole number'],
  [['replay', 'nowhere.jsonl'], 'is neither a file nor the id of a session'],
  [['replay', SESSION, '--speed', 'fast'], '--speed "fast" is not a number'],
  [['export'], '--out is missing'],
  [['deploy', 'worker.ts'], '"worker.ts" is no option'],
])('[K4] cortex %j is wrong usage', async (args, said) => {
  const { out, err, code } = await cortex(args);
  expect([out, code]).toEqual(['', 2]);
  expect(err).toContain(said);
});

describe('[K4] JSON of commands that need no system', () => {
  const program = join(folder, 'program.xml');
  writeFileSync(program, '<action name="echo" id="a">{}</action>');

  test('plan', async () => {
    const { out, code } = await cortex(['plan', program, '--json']);
    expect(JSON.parse(out)).toMatchObject({ actions: [{ id: 'a', name: 'echo' }], rejected: [] });
    expect(code).toBe(0);
  });

  test('validate, with an error', async () => {
    const bad = join(folder, 'bad.yaml');
    writeFileSync(bad, 'kind: Tool\nversion: "1"\nname: bad\nsummary: s\n');
    const { out, code } = await cortex(['validate', bad, join(folder, 'nowhere'), '--json']);
    expect(code).toBe(1);
    expect(JSON.parse(out)).toMatchObject({
      valid: false,
      targets: [
        { target: bad, loaded: 'nothing loaded', errors: [{ file: bad }], skipped: [] },
        { target: join(folder, 'nowhere'), errors: [{ message: 'no such file or folder' }] },
      ],
    });
  });
});
