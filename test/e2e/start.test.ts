/** `npm start` with a real Worker, a real runner, real sandboxes and real signals; and docs/cli.md, whose examples run there. */
import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync, readdirSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { isAlive } from '../../container-runner/test/support/processes.ts';
import { readEvents } from '../../cli/terminal/event-client.ts';
import type { SessionEvent } from '../../src/domain/event.ts';
import { freePort } from '../../cli/system/services.ts';
import type { RunResult } from '../../src/view/result.ts';
import { cortexHere, installCortex } from '../support/cortex.ts';
import { guardsOf } from '../support/listener-guards.ts';
import { listenersOf } from '../support/listeners.ts';
import { cleanUp, exitOf, launch, post, processesOf, start, stateFolder } from '../support/npm-start.ts';
import type { Started } from '../support/npm-start.ts';
import { answer, startScriptedLlm } from '../../cli/scripted-llm/server.ts';
import type { ScriptedLlm } from '../../cli/scripted-llm/server.ts';
import { eventually } from '../support/eventually.ts';
import { difference, PageShell, readExamples } from '../support/page-examples.ts';
import { lacks, PAGE_PROGRAMS } from '../support/programs.ts';

const POWER = '1606938044258990275541962092341162602522202993782792835301376';

function overlap(result: RunResult, ids: readonly string[]): boolean {
  const [a, b] = ids.map((id) => result.actions.find((action) => action.id === id));
  return Number(a?.started_at) < Number(b?.ended_at) && Number(b?.started_at) < Number(a?.ended_at);
}

afterAll(cleanUp);

/** Of one system after the other; the first one builds its Worker from the sources, as a user's does. */
const state = { CORTEX_STATE_DIR: stateFolder() };
const executions: string[] = [];

async function expectExecutions(url: string, headers: Record<string, string> = {}): Promise<void> {
  const text = '<response final="true">kept</response>';
  const ran = await post<RunResult>(`${url}/execute/direct`, { stream: false, protocol_text: text }, headers);
  executions.push(ran.run_id);
  for (const id of executions) {
    const found = (await (await fetch(`${url}/executions/${id}`, { headers })).json()) as RunResult;
    expect(found).toMatchObject({ status: 'completed', response: 'kept' });
  }
}

async function expectEnd(system: Started, signal: 'SIGINT' | 'SIGTERM'): Promise<void> {
  const children = processesOf(system);
  expect(children.length).toBeGreaterThan(1);
  system.process.kill(signal);
  expect(await exitOf(system)).toBe(0);
  await expect.poll(() => children.filter(isAlive)).toEqual([]);
  await expect(fetch(`${system.url}/health`)).rejects.toThrow();
}

/** A session that is made without keys. */
let keyless = '';
const CLERK =
  'kind: Agent\nversion: "1"\nname: clerk\nsummary: Helps.\npersona: You help.\nimport: {relics: [notes]}\n';
const note = (call: string, parameters: unknown): unknown => ({
  agent: 'notes_keeper',
  stream: false,
  protocol_text: `<action type="relic" id="r">${JSON.stringify({ name: `notes.${call}`, parameters })}</action><response final="true">$r</response>`,
});

const EXAMPLES = readExamples(readFileSync('docs/cli.md', 'utf8'));

/** A shell with the program `cortex`, in an empty folder. */
async function shellOf({ url }: Started): Promise<PageShell> {
  const [work, bin] = ['work', 'bin'].map((name) => join(stateFolder(), name)) as [string, string];
  mkdirSync(work);
  installCortex(bin);
  const shell = new PageShell(url, work);
  // A port without a system, where no address is given.
  await shell.run(`PATH="${bin}:$PATH"\nPORT=${await freePort()}`);
  return shell;
}

test('[K4] docs/cli.md has examples', () => {
  expect(EXAMPLES.length).toBeGreaterThan(0);
});

describe('the system with the best sandbox', () => {
  let system: Started;
  let shell: PageShell | null = null;

  const runnerPort = freePort();

  beforeAll(async () => {
    system = await start({ ...state, CORTEX_BUILT_WORKER: '', RUNNER_PORT: String(await runnerPort) });
    // The first Python of a sandbox is slow: on a busy machine slower than the timeout of an action.
    const text = '<action type="python" id="p" timeout="200">{"code": "print(1)"}</action>';
    await post<RunResult>(`${system.url}/execute/direct`, { stream: false, protocol_text: text });
  });

  test('[H1] health and the start screen report the active parts', async () => {
    const health = (await (await fetch(`${system.url}/health`)).json()) as { executors: string[]; model: string };
    expect(health).toMatchObject({ status: 'healthy', service: 'cortex-edge' });
    expect(health.executors).toEqual(expect.arrayContaining(['tool', 'python', 'shell']));
    expect(health.model).toContain('demo');
    expect(system.output()).toMatch(/sandbox\s+python3: (docker|bubblewrap|wasm)/);
    expect(system.output()).toMatch(/auth\s+none: only this machine may call/);
  });

  test('[L3] the demo computes in python and lists files in shell at the same time', async () => {
    const { session_id: id } = await post<{ session_id: string }>(`${system.url}/agent/assistant/session`, {
      user_id: 'e2e',
    });
    const result = await post<RunResult>(`${system.url}/agent/session/${id}/message`, {
      content: 'compute 2**200 in python and list the files in shell at the same time, then sum it up',
      stream: false,
    });
    expect(result.status).toBe('completed');
    expect(result.response).toContain(POWER);
    const python = result.actions.find(({ type }) => type === 'python');
    const shell = result.actions.find(({ type }) => type === 'shell');
    expect([python?.status, shell?.status]).toEqual(['completed', 'completed']);
    expect(overlap(result, [python?.id ?? '', shell?.id ?? ''])).toBe(true);
  });

  test('[P14] values reach python and shell as data, whatever they contain', async () => {
    const nasty = '"; import os; os.system("id") #$(id)`id`\n$other';
    const result = await post<RunResult>(`${system.url}/execute/direct`, {
      stream: false,
      context: { nasty },
      protocol_text: [
        `<action type="tool" id="a">${JSON.stringify({ name: 'echo', parameters: { text: '$nasty' }, output_key: 'said' })}</action>`,
        `<action type="python" id="p" timeout="200">${JSON.stringify({ code: 'print(inputs["said"]["text"])', depends_on: ['a'] })}</action>`,
        `<action type="shell" id="s">${JSON.stringify({ command: 'printf "%s" "$nasty"' })}</action>`,
        '<response final="true">$p|$s</response>',
      ].join('\n'),
    });
    expect(result.actions.map(({ status }) => status)).toEqual(['completed', 'completed', 'completed']);
    expect(result.response).toBe(`${nasty}|${nasty}`);
  });

  test('[R3] the script tool measures a text', async () => {
    const result = await post<RunResult>(`${system.url}/execute/direct`, {
      stream: false,
      protocol_text: `<action type="tool" id="t" timeout="200">${JSON.stringify({ name: 'text_stats', parameters: { text: 'One two three. Four five!' } })}</action>`,
    });
    expect(result.actions[0]).toMatchObject({ status: 'completed', output: { words: 5, sentences: 2 } });
  });

  test('[F3] the system monitor sees the output of its script in the prompt', async () => {
    const { session_id: id } = await post<{ session_id: string }>(`${system.url}/agent/system_monitor/session`, {});
    await post(`${system.url}/agent/session/${id}/message`, { content: 'how is the machine', stream: false });
    await eventually(async () => {
      const { feeds } = (await (await fetch(`${system.url}/agent/session/${id}/feeds`)).json()) as {
        feeds: { id: string; value: { processors: number } | null; error: string | null }[];
      };
      expect(feeds[0]).toMatchObject({
        id: 'system',
        error: null,
        value: { processors: expect.any(Number) as number },
      });
    });
  });

  test('[S8] a timeout kills the processes that python started', async () => {
    const result = await post<RunResult>(`${system.url}/execute/direct`, {
      stream: false,
      protocol_text: '<action type="python" id="p" timeout="1">{"code": "while True: pass"}</action>',
    });
    expect(result.actions[0]).toMatchObject({ status: 'failed', error: { code: 'timeout' } });
  });

  test('[H2] events stream during the run, and the stream ends with it', async () => {
    const response = await fetch(`${system.url}/execute/direct`, {
      method: 'POST',
      body: JSON.stringify({
        protocol_text:
          '<thought>Testing</thought><action type="shell" id="s">{"command":"echo one; echo two"}</action><response final="true">$s</response>',
      }),
    });
    const all: SessionEvent[] = [];
    for await (const event of readEvents(response)) all.push(event);
    const types = all.map(({ type }) => type);
    expect(types[0]).toBe('agent_started');
    expect(types).toEqual(
      expect.arrayContaining(['thought_completed', 'action_queued', 'action_started', 'progress', 'action_completed']),
    );
    expect(all.at(-1)).toMatchObject({ type: 'agent_completed', data: { response: 'one\ntwo' } });
  });

  test('[J1] an execution is found', async () => expectExecutions(system.url));

  // In order: later examples use the variables and files of earlier ones.
  test.skipIf(lacks(...PAGE_PROGRAMS)).each(EXAMPLES)(
    '[K4] docs/cli.md: the example in line $line',
    async ({ commands, expected }) => {
      shell ??= await shellOf(system);
      expect(difference(expected, await shell.run(commands))).toBeNull();
    },
  );

  // After the page, whose export has no manifests.
  test('[T4] a session, a manifest and a note are made without keys', async () => {
    keyless = (await post<{ session_id: string }>(`${system.url}/agent/assistant/session`, {})).session_id;
    expect((await fetch(`${system.url}/manifests/agent/clerk`, { method: 'PUT', body: CLERK })).status).toBe(201);
    const kept = await post<RunResult>(
      `${system.url}/execute/direct`,
      note('set', { key: 'milk', value: 'two bottles' }),
    );
    expect(kept.status).toBe('completed');
  });

  test('[K5] doctor recognises the system that runs on the ports of a project, and its runner', async () => {
    const ports = { PORT: new URL(system.url).port, RUNNER_PORT: String(await runnerPort) };
    const { out } = await cortexHere(['doctor', '--json'], { cwd: stateFolder(), env: ports });
    const { findings } = JSON.parse(out) as { findings: { check: string; problem?: string; message: string }[] };
    expect(findings.filter(({ check }) => check === 'ports')).toEqual([
      expect.objectContaining({ problem: 'port_of_system', message: `PORT ${ports.PORT} is in use` }),
      expect.objectContaining({ problem: 'port_of_system', message: `RUNNER_PORT ${ports.RUNNER_PORT} is in use` }),
    ]);
  });

  test('a state folder in use is reported', async () => {
    const second = launch({ ...state, PORT: String(await freePort()), RUNNER_PORT: String(await freePort()) });
    expect(await exitOf(second)).toBe(1);
    expect(second.output()).toContain(`${state.CORTEX_STATE_DIR} is in use by another npm start`);
  });

  test('SIGINT stops both services and leaves no process and no port behind', async () => expectEnd(system, 'SIGINT'));
});

describe('a second system over the same state folder, with wasm, API keys and a configured model', () => {
  const key = 'a-key-of-thirty-two-characters-or-so';
  const headers = { authorization: `Bearer ${key}` };
  let runnerPort = 0;
  let llm: ScriptedLlm;
  let system: Started;

  beforeAll(async () => {
    llm = await startScriptedLlm([
      answer(
        '<thought>Computing.<action type="python" mode="async" id="p">{"code": "print(6 * 7)"}</action></thought>',
      ),
      answer('<response final="true">It is $p.</response>'),
    ]);
    runnerPort = await freePort();
    system = await start({
      ...state,
      RUNNER_SANDBOX: 'wasm',
      RUNNER_PORT: String(runnerPort),
      OWNER_OF_KEYLESS: 'ci',
      API_KEYS: `ci:run:${key},eve:run:key-of-eve-in-this-test`,
      LLM_BASE_URL: llm.baseUrl,
      LLM_MODEL: 'scripted-1',
      LLM_API_KEY: 'sk-e2e',
    });
  });
  afterAll(async () => {
    await llm?.[Symbol.asyncDispose]();
  });

  test.skipIf(lacks('curl'))(
    '[H5] the example of the start screen works as it is printed, with the key in CORTEX_API_KEY',
    async () => {
      expect(system.output()).not.toContain(key);
      expect(system.output()).toContain('export CORTEX_API_KEY=<key>');
      const command = /Try: (.*)/.exec(system.output())?.[1] ?? '';
      const env = { ...process.env, CORTEX_API_KEY: key };
      const { stdout } = await promisify(execFile)('sh', ['-c', command], { env });
      expect(stdout).toContain(String(2n ** 64n));
    },
  );

  test('[L1] an OpenAI-compatible endpoint drives the loop; its key is sent nowhere else', async () => {
    expect(system.output()).toContain('scripted-1 at 127.0.0.1');
    expect(system.output()).not.toContain('sk-e2e');
    expect(system.output()).toContain(
      'API keys: ci (run, namespace ci, with what was made without keys), eve (run, namespace eve)',
    );
    expect(system.output()).not.toContain(key);
    const { session_id: id } = await post<{ session_id: string }>(`${system.url}/agent/assistant/session`, {}, headers);
    const result = await post<RunResult>(
      `${system.url}/agent/session/${id}/message`,
      { content: 'six times seven?', stream: false },
      headers,
    );
    expect(result).toMatchObject({
      status: 'completed',
      response: 'It is 42.',
      iterations: 2,
      usage: { model_calls: 2 },
    });
    expect(llm.requests.map(({ body }) => body['model'])).toEqual(['scripted-1', 'scripted-1']);
    expect(llm.requests[0]?.headers.authorization).toBe('Bearer sk-e2e');
    expect(JSON.stringify(llm.requests[1]?.body)).toContain('action_result');
  });

  test.runIf(process.platform === 'linux')(
    '[X1] every listener has a known guard, and workerd has no inspector and no debug port',
    async () => {
      const ports = { front: Number(new URL(system.url).port), runner: runnerPort, state: state.CORTEX_STATE_DIR };
      expect(await guardsOf(listenersOf(processesOf(system)), ports)).toEqual([
        'folder of this user',
        'front',
        'runner',
        'secret of miniflare',
      ]);
    },
  );

  test('[J1] earlier executions are found', async () => expectExecutions(system.url, headers));

  test('[T4] OWNER_OF_KEYLESS gives what was made without keys to its namespace, and to no other', async () => {
    const others = { authorization: 'Bearer key-of-eve-in-this-test' };
    const status = async (path: string, of: Record<string, string>): Promise<number> =>
      (await fetch(`${system.url}${path}`, { headers: of })).status;
    const told = async (of: Record<string, string>): Promise<string> =>
      (await post<RunResult>(`${system.url}/execute/direct`, note('get', { key: 'milk' }), of)).response;
    for (const path of [`/agent/session/${keyless}`, '/agents/clerk/prompt']) {
      expect([path, await status(path, headers), await status(path, others)]).toEqual([path, 200, 404]);
    }
    expect(await told(headers)).toContain('two bottles');
    expect(await told(others)).not.toContain('two bottles');
  });

  test('[H5] with keys, every route requires one, SIGTERM ends a system whose output is not read, and a token in a URL reaches no file', async () => {
    const status = async (path: string): Promise<number> => {
      const answered = await fetch(`${system.url}${path}`);
      await answered.arrayBuffer();
      return answered.status;
    };
    expect(await status(`/agent/session/ses_${'0'.repeat(32)}/events?token=nowhere-on-disk`)).toBe(401);
    // The development server's pages with the tables of the objects.
    for (const path of ['', '/api', '/api/local/workers', '/api/workers/durable_objects/namespaces']) {
      expect([path, await status(`/cdn-cgi/explorer${path}`)]).toEqual([path, 404]);
    }
    system.process.stdout?.destroy();
    system.process.stderr?.destroy();
    await expectEnd(system, 'SIGTERM');
    const files = readdirSync(state.CORTEX_STATE_DIR, { recursive: true, withFileTypes: true }).filter((entry) =>
      entry.isFile(),
    );
    expect(files.length).toBeGreaterThan(0);
    const found = files.filter(({ parentPath, name }) =>
      readFileSync(join(parentPath, name)).includes('nowhere-on-disk'),
    );
    expect(found.map(({ name }) => name)).toEqual([]);
  });
});

test('[U1] an unknown option is reported, and nothing starts', async () => {
  const started = launch({ CORTEX_STATE_DIR: stateFolder() }, [process.execPath, 'cli/main.ts', 'dev', '--opne']);
  expect(await exitOf(started)).toBe(2);
  expect(started.output()).toContain("Unknown option '--opne' (did you mean --open?)");
  expect(started.output()).toContain('usage: cortex dev [--open] [--inspect]');
});

test('a port in use is reported, with advice', async () => {
  const blocker = createServer();
  await new Promise<void>((resolve) => blocker.listen(0, '127.0.0.1', resolve));
  const address = blocker.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const started = launch({ PORT: String(port), CORTEX_STATE_DIR: stateFolder() });
  expect(await exitOf(started)).toBe(1);
  expect(started.output()).toContain(`Port ${port} is in use`);
  expect(started.output()).toMatch(/PORT=\d+ npm start/);
  blocker.close();
});
