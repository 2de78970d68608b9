/** `npm run chat` with a running system: asks for approvals, also for those that a joined session waits for (J8). */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { createServer } from 'node:http';
import type { ServerResponse } from 'node:http';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { PACKAGE_ROOT } from '../../cli/project/folders.ts';
import { answer, startScriptedLlm } from '../../cli/scripted-llm/server.ts';
import type { ScriptedLlm } from '../../cli/scripted-llm/server.ts';
import { modelAt, sharedNamespace, sharedPort } from '../support/shared.ts';
import type { Namespace } from '../support/shared.ts';

const TOOL =
  'kind: Tool\nversion: "1.0"\nname: seal\nsummary: Seals.\nimplementation: {type: builtin, entrypoint: echo}\nparameters: {text: string}\napproval: always\n';
const AGENT =
  'kind: Agent\nversion: "1.0"\nname: sealer\nsummary: Seals.\npersona: {agent: You seal.}\nclient_tools: allow\nimport: {tools: [seal, hold, release, echo]}\n';

const httpTool = (name: string, port: number, more: string): string =>
  `kind: Tool\nversion: "1.0"\nname: ${name}\nsummary: Calls.\nimplementation: {type: http, method: POST, url: "http://127.0.0.1:${port}/${name}"}\n${more}`;
/** A request of the tool `hold` is answered when the tool `release` is called. */
const held: ServerResponse[] = [];
const tools = createServer((request, response) => {
  if (request.url === '/hold') {
    held.push(response);
    return;
  }
  for (const other of held) other.end('"held"');
  response.end('"released"');
});

const folder = mkdtempSync(join(tmpdir(), 'cortex-chat-'));
let llm: ScriptedLlm;
let system: Namespace;

beforeAll(async () => {
  const toolPort = await sharedPort();
  await new Promise<void>((resolve) => tools.listen(toolPort, '127.0.0.1', resolve));
  llm = await startScriptedLlm(
    ({ body }) => {
      const { messages } = body as { messages: { content: string }[] };
      const last = messages.at(-1)?.content ?? '';
      if (last.includes('seal and tell')) {
        return answer(
          '<action type="tool" mode="async" id="s">{"name": "seal", "parameters": {"text": "ink"}}</action><response final="true">All of it is sealed: $s.text</response>',
        );
      }
      if (last.includes('hold and release')) {
        return answer(
          '<action type="tool" mode="async" id="h">{"name": "hold"}</action><action type="tool" mode="async" id="r">{"name": "release"}</action><response final="true">$h and $r</response>',
        );
      }
      if (last.includes('hold on')) return answer('<action type="tool" mode="async" id="h">{"name": "hold"}</action>');
      if (last.includes('note it')) {
        return answer(
          '<action type="tool" mode="async" id="n">{"name": "echo", "parameters": {"text": "ink"}}</action><response final="true">Noted: $n.text</response>',
        );
      }
      if (last.includes('where am I')) {
        return answer(
          '<action type="tool" mode="async" id="w">{"name": "get_location", "parameters": {"exact": true}}</action><response final="true">You are in $w</response>',
        );
      }
      const word = /please seal (\w+)/.exec(last)?.[1];
      return answer(
        word === undefined
          ? '<response final="true">**That is all about it.**</response>'
          : `<action type="tool" mode="async" id="s">{"name": "seal", "parameters": {"text": "${word}"}}</action>`,
      );
    },
    await sharedPort(),
  );
  system = await sharedNamespace();
  for (const [path, body] of [
    ['tool/seal', TOOL],
    ['tool/hold', httpTool('hold', toolPort, '')],
    ['tool/release', httpTool('release', toolPort, 'approval: always\n')],
    ['agent/sealer', `${AGENT}${modelAt(llm.baseUrl)}`],
  ]) {
    const init = { method: 'PUT', body: body ?? '', headers: system.authorization };
    expect((await fetch(`${system.url}/manifests/${path}`, init)).status).toBe(201);
  }
});

afterAll(async () => {
  tools.closeAllConnections();
  tools.close();
  await llm?.[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

async function ask<T>(path: string, body?: unknown): Promise<T> {
  const response = await fetch(`${system.url}${path}`, {
    headers: system.authorization,
    ...(body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }),
  });
  return (await response.json()) as T;
}

/**
 * Runs the chat; writes each line after the output has the text before it; null ends the input, and a function gets the
 * process.
 *
 * @param expected its exit code
 * @returns the output, when it has ended
 */
async function chat(
  argument: string | readonly string[],
  lines: readonly (readonly [after: string, line: string | null | ((child: ChildProcess) => void)])[],
  expected = 0,
): Promise<string> {
  const child = spawn(process.execPath, ['cli/main.ts', 'chat', ...[argument].flat()], {
    cwd: PACKAGE_ROOT,
    env: { ...process.env, PORT: new URL(system.url).port, CORTEX_API_KEY: system.key, NO_COLOR: '1' },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  let output = '';
  let seen = 0;
  const left = [...lines];
  child.stdout.on('data', (chunk: Buffer) => {
    output += chunk.toString();
    for (const [after, line] of left.slice(0, 1)) {
      const at = output.indexOf(after, seen);
      if (at === -1) return;
      seen = at + after.length;
      left.shift();
      if (line === null) child.stdin.end();
      else if (typeof line === 'function') line(child);
      else child.stdin.write(`${line}\n`);
    }
  });
  // Only a chat that hangs takes so long; the message shows where.
  const timer = setTimeout(() => child.kill('SIGKILL'), 60_000);
  const code = await new Promise((resolve, reject) => child.on('close', resolve).on('error', reject));
  clearTimeout(timer);
  expect([code, left], output).toEqual([expected, []]);
  return output;
}

interface Approval {
  readonly status: string;
  readonly note: string | null;
}

test('[J8] asks for approvals, sends a reason with a denial, and shows the run to its end', async () => {
  const output = await chat('sealer', [
    ['Ctrl-D', 'please seal wax'],
    ['approve? [y/N]', 'n'],
    ['reason (optional)', 'too red'],
    ['That is all about it.', 'please seal paper'],
    ['approve? [y/N]', 'y'],
    ['That is all about it.', ''],
  ]);
  expect(output).toContain('"text": "wax"');
  expect(output).toContain('approval_denied: Action "s" was denied: too red');
  expect(output).toContain('✓ s (seal)');
  const session = /ses_[0-9a-f]{32}/.exec(output)?.[0] ?? '';
  const { runs } = await ask<{ runs: { status: string }[] }>(`/agent/session/${session}/runs`);
  expect(runs.map(({ status }) => status)).toEqual(['completed', 'completed']);
});

test('[C4] [C6] answers a message again, changes it, lists and switches branches, forks, and continues a listed session', async () => {
  const output = await chat('sealer', [
    ['Ctrl-D', 'tell me about ink'],
    ['That is all about it.', '/retry'],
    ['That is all about it.', '/edit tell me about paper'],
    ['That is all about it.', '/branches'],
    ['* 3. edited: tell me about paper → That is all about it. (current)', '/switch 1'],
    ['continues on branch 1:\n  > tell me about ink\n  That is all about it.', 'and about pens'],
    ['That is all about it.', '/BRANCHES'],
    ['* 3. tell me about ink → That is all about it. (1 more message) (current)', '/switch 9'],
    ['There is no 9; choose 1 to 3.', '/fork'],
    ['with the conversation so far', 'and about wax'],
    ['That is all about it.', '/retry no'],
    ['usage: /retry, with nothing after it', '/retry'],
    ['That is all about it.', '/sessions'],
    ['tell me about ink (sealer, idle', '/open 1'],
    ['(idle)', '/open nothing'],
    ['usage: /open', '/switch 1'],
    ['continues on branch 1', ''],
  ]);
  expect(output).toContain(
    '  1. tell me about ink → That is all about it.\n  2. retry: tell me about ink → That is all about it.\n',
  );
  expect(output).toMatch(/\(idle\).*\n {2}> and about wax\n {2}That is all about it\.\n/);
  const [first = '', fork = ''] = new Set(output.match(/ses_[0-9a-f]{32}/g));
  const runsOf = async (session: string): Promise<number[]> => {
    const { runs } = await ask<{ runs: { parent_run: string | null }[] }>(`/agent/session/${session}/runs`);
    return runs.map(({ parent_run: run }) => Number(/\d+$/.exec(run ?? '0')?.[0]));
  };
  expect(await runsOf(first)).toEqual([0, 0, 0, 1]);
  expect((await runsOf(fork)).slice(0, 4)).toEqual([0, 1, 2, 2]);
});

test('[C6] a command that cannot be done says why, and the chat stays where it is; nothing of it goes to the model', async () => {
  // A number counts without /sessions before it.
  const before = await chat('sealer', [
    ['Ctrl-D', '/open 1'],
    ['(idle)', 'tell me about wax'],
    ['That is all about it.', '/exit'],
  ]);
  expect(before).toMatch(/ses_[0-9a-f]{32}.*\(idle\)/);
  expect(before).not.toContain('usage');
  const output = await chat('sealer', [
    ['Ctrl-D', '/fork'],
    ['There is nothing to fork', '/branches'],
    ['This conversation has no messages yet.', '/retry'],
    ['This conversation has no messages yet.', '/open 99'],
    ['There is no 99; choose 1 to ', '/open ses_00000000000000000000000000000000'],
    ['not opened: unknown_session: ', '/nonsense of mine'],
    ['No command is called /nonsense. /help lists them.', '/switch1'],
    ['No command is called /switch1. Did you mean /switch?', '/'],
    ['No command is called /. ', '/Help'],
    ['/attach <path or URL>', ' /tmp is a folder'],
    ['That is all about it.', '/quit'],
  ]);
  const [session = ''] = output.match(/ses_[0-9a-f]{32}/) ?? [];
  expect(output).toContain(`You are still in session ${session}.`);
  const { messages } = await ask<{ messages: { content: string }[] }>(`/agent/session/${session}/history`);
  expect(messages.map(({ content }) => content)).toEqual(['/tmp is a folder', '**That is all about it.**']);
});

test('[C4] after an action that ran again, the last message is answered again and changed', async () => {
  const { session_id: session } = await ask<{ session_id: string }>('/agent/sealer/session', {});
  const path = `/agent/session/${session}`;
  const { run_id: first } = await ask<{ run_id: string }>(`${path}/message`, { content: 'note it', stream: false });
  const again = { action: 'n', stream: false };
  const { run_id: rerun } = await ask<{ run_id: string }>(`${path}/runs/${first}/retry`, again);
  await chat(session, [
    ['Run the action n (echo) again.', '/retry'],
    ['Noted: ink', '/edit tell me about clay'],
    ['That is all about it.', '/branches'],
    ['edited: tell me about clay', '/exit'],
  ]);
  const { runs } = await ask<{ runs: object[] }>(`${path}/runs`);
  expect(runs).toMatchObject([
    { run_id: first },
    { run_id: rerun, parent_run: first },
    { parent_run: null, retry_of: first },
    { parent_run: null },
  ]);
});

test('[C7] uploads, lists, downloads and deletes files, and asks before it replaces one', async () => {
  const local = join(folder, 'notes.md');
  writeFileSync(local, 'hello');
  const output = await chat(
    'sealer',
    [
      ['Ctrl-D', `/put '${local}' docs/`],
      ['uploaded docs/notes.md (5 bytes)', '/files'],
      ['All files have 5 of', `/get docs/notes.md '${local}'`],
      ['exists. Replace it? [y/N]', 'n'],
      ['not saved', `/get docs/notes.md '${folder}/copy'`],
      ['copy (5 bytes)', '/get docs/note.md'],
      ['did you mean "docs/notes.md"?', '/rm docs/'],
      ['Delete docs/ with 1 file? [y/N]', 'y'],
      ['deleted docs/notes.md', '/exit'],
    ],
    1,
  );
  expect(output).toContain('not done: unknown_file: The workspace has no file "docs/note.md"');
  expect(readFileSync(join(folder, 'copy'), 'utf8')).toBe('hello');
});

test('the first Ctrl-C stops the run and says so, and the next one ends the chat', async () => {
  const interrupt = (child: ChildProcess): void => void child.kill('SIGINT');
  const output = await chat('sealer', [
    ['Ctrl-D', 'hold on'],
    ['▶ h (hold)', interrupt],
    ['stopped; Ctrl-C again ends the chat', 'tell me about ink'],
    ['That is all about it.**\n> ', interrupt],
  ]);
  const [session = ''] = output.match(/ses_[0-9a-f]{32}/) ?? [];
  const { runs } = await ask<{ runs: { status: string }[] }>(`/agent/session/${session}/runs`);
  expect(runs.map(({ status }) => status)).toEqual(['cancelled', 'completed']);
});

test('[J8] asks when the text before the question is complete, also while another action runs; each answer of piped input ends its line', async () => {
  const output = await chat('sealer', [
    ['Ctrl-D', 'seal and tell'],
    ['approve? [y/N]', 'y'],
    ['sealed: ink', 'hold and release'],
    ['approve? [y/N]', 'y'],
    ['\nreleased', ''],
  ]);
  expect(output).toMatch(
    /> seal and tell\nAll of it is sealed: \[s: pending\]\n {2}\? s \(tool seal\) waits for your approval\n/,
  );
  expect(output).toContain('  approve? [y/N] y\n  ▶ s (seal)\n');
  expect(output.indexOf('r (tool release) waits for your approval')).toBeLessThan(output.indexOf('✓ h (hold)'));
  expect(output).toContain('r (tool release) waits for your approval');
});

test('[J8] the end of the input at a question prints how to decide, on its own line', async () => {
  const output = await chat('sealer', [
    ['Ctrl-D', 'seal and tell'],
    ['approve? [y/N]', null],
  ]);
  expect(output).toMatch(/approve\? \[y\/N\] \n {4}decide with: curl /);
});

test('[J8] joins a session and asks for what it waits for', async () => {
  const { session_id: session } = await ask<{ session_id: string }>('/agent/sealer/session', {});
  const path = `/agent/session/${session}`;
  const run = await ask<{ status: string }>(`${path}/message`, { content: 'please seal glass', stream: false });
  expect(run.status).toBe('waiting');
  const { approvals } = await ask<{ approvals: { approval_id: string }[] }>(`${path}/approvals`);
  const output = await chat(session, [
    ['approve? [y/N]', 'y'],
    ['That is all about it.', ''],
  ]);
  expect(output).toContain(`session ${session} with sealer (waiting)`);
  expect(output).toContain('"text": "glass"');
  const decided = await ask<Approval>(`${path}/approvals/${approvals[0]?.approval_id ?? ''}`);
  expect(decided).toMatchObject({ status: 'approved', note: null });
  expect(await ask(`${path}/approvals`)).toEqual({ approvals: [], next: null });
});

test('[C2] a message that is refused does not end the chat, and the exit code tells of it', async () => {
  const output = await chat(
    'sealer',
    [
      ['Ctrl-D', '/attach http://127.0.0.1:1/seal.png'],
      ['fetches it', 'look'],
      ['> ', 'please seal clay'],
      ['approve? [y/N]', 'y'],
      ['That is all about it.', ''],
    ],
    1,
  );
  expect(output).toMatch(/not sent: url_refused: .*content\[1\]/);
});

test('[C3] asks for the result of a client tool, and shows the run to its end', async () => {
  const output = await chat(
    ['sealer', '--tool', 'get_location'],
    [
      ['Ctrl-D', 'where am I'],
      ['message for an error)', 'Bern'],
      ['You are in Bern', 'where am I now'],
      ['message for an error)', '!no signal'],
      ['no signal', ''],
    ],
  );
  expect(output).toContain('? get_location waits for your result');
  expect(output).toContain('"exact": true');
});

test('[C3] a piped line that arrives before the question answers it', async () => {
  const output = await chat(['sealer', '--tool', 'get_location'], [['', 'where am I\nGeneva\n']]);
  expect(output).toContain('You are in Geneva');
});

test('[C3] joins a session and asks for the result that it waits for; the end of the input prints how to give it', async () => {
  const { session_id: session } = await ask<{ session_id: string }>('/agent/sealer/session', {});
  const run = await ask<{ status: string }>(`/agent/session/${session}/message`, {
    content: 'where am I',
    stream: false,
    tools: [{ name: 'get_location', description: 'The place.', parameters: { type: 'object' } }],
  });
  expect(run.status).toBe('waiting');
  const left = await chat(session, [['message for an error)', null]]);
  expect(left).toMatch(/answer with: curl .*\/calls\/call_/);
  const output = await chat(session, [
    ['message for an error)', '{"city": "Basel"}'],
    ['Basel', ''],
  ]);
  expect(output).toContain('You are in {"city":"Basel"}');
});
