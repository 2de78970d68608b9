/** The Worker and its runners as real processes: containers, relics, and lost runners (R2, R5, R7). */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { withSnapshot } from '../../container-runner/test/support/python-snapshot.ts';
import { dockerSocket, reasonToSkip } from '../../container-runner/test/support/levels.ts';
import { connectEngine } from '../../container-runner/sandbox/docker-engine.ts';
import { freePort } from '../../cli/system/services.ts';
import { PACKAGE_ROOT } from '../../cli/project/folders.ts';
import { startSystem } from '../../cli/system/system.ts';
import type { System } from '../../cli/system/system.ts';
import type { RunResult } from '../../src/engine/run/run-result.ts';
import { incarnationIn, sessionKey } from '../../src/domain/session.ts';
import { answer, startScriptedLlm } from '../../cli/scripted-llm/server.ts';
import type { ScriptedLlm } from '../../cli/scripted-llm/server.ts';
import { eventually } from '../support/eventually.ts';

/** The scope of a session's relics (T5). */
const spaceOf = ({ session_id, run_id }: RunResult): string =>
  sessionKey({ session_id, incarnation: incarnationIn(run_id) ?? '' });

const SECRET = 'of the end-to-end tests, long enough for anyone';
const skip = reasonToSkip('docker');
/** The first start of a sandbox can exceed the default timeout of an action. */
const PATIENT = 'timeout="200"';

interface RunnerProcess {
  readonly url: string;
  readonly stateDir: string;
  readonly child: ChildProcess;
}

const folders: string[] = [];
function folder(): string {
  const made = mkdtempSync(join(tmpdir(), 'cortex-runner-e2e-'));
  folders.push(made);
  return made;
}

async function startRunner(env: Record<string, string> = {}): Promise<RunnerProcess> {
  const stateDir = withSnapshot(folder());
  const child = spawn(process.execPath, ['container-runner/main.ts'], {
    cwd: PACKAGE_ROOT,
    env: {
      PATH: process.env['PATH'],
      RUNNER_SECRET: `e2e=${SECRET}`,
      RUNNER_PORT: '0',
      RUNNER_DRAIN_SECONDS: '0',
      CORTEX_STATE_DIR: stateDir,
      ...(dockerSocket === null ? {} : { RUNNER_DOCKER: dockerSocket }),
      ...env,
    },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const [line] = (await once(createInterface(child.stdout), 'line')) as [string];
  return { url: (JSON.parse(line) as { url: string }).url, stateDir, child };
}

async function stop({ child }: RunnerProcess, signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill(signal);
  await once(child, 'exit');
}

async function startWorker(runners: string, vars: Record<string, string> = {}): Promise<System> {
  return await startSystem({
    port: await freePort(),
    runnerPort: 0,
    stateDir: folder(),
    vars: { RUNNER_URLS: runners, RUNNER_SECRET: `e2e=${SECRET}`, ...vars },
    ownRunner: false,
    progress: () => undefined,
  });
}

async function execute(system: System, agent: string, text: string): Promise<RunResult> {
  const response = await fetch(`${system.url}/execute/direct`, {
    method: 'POST',
    body: JSON.stringify({ agent, protocol_text: text, stream: false }),
  });
  return (await response.json()) as RunResult;
}

const action = (type: string, id: string, body: object, attributes = ''): string =>
  `<action type="${type}" id="${id}" ${attributes}>${JSON.stringify(body)}</action>`;

afterAll(() => {
  for (const made of folders) rmSync(made, { recursive: true, force: true });
});

describe.skipIf(skip !== null)(`one runner with a Docker engine${skip === null ? '' : ` (skipped: ${skip})`}`, () => {
  let docker: Awaited<ReturnType<typeof connectEngine>>;
  let runner: RunnerProcess;
  let system: System;
  let llm: ScriptedLlm;
  beforeAll(async () => {
    docker = await connectEngine(dockerSocket);
    runner = await startRunner({ RUNNER_SANDBOX: 'docker' });
    const set = action('relic', 's', { parameters: { key: 'k', value: 42 } }, 'name="key_value.set"');
    const get = action('relic', 'g', { parameters: { key: 'k' } }, 'name="key_value.get"');
    llm = await startScriptedLlm([
      answer(`${set}<response final="true">$s.version</response>`),
      answer(`${get}<response final="true">$g.value</response>`),
    ]);
    system = await startWorker(runner.url, { LLM_BASE_URL: llm.baseUrl, LLM_MODEL: 'scripted-1' });
  });
  afterAll(async () => {
    await llm[Symbol.asyncDispose]();
    await system.stop();
    await stop(runner);
    // all its containers are gone
    const owner = readFileSync(join(runner.stateDir, 'runner/instance'), 'utf8');
    const label = [`cortex-edge.runner=${owner}`];
    expect(await docker.listContainers({ all: true, filters: { label } })).toEqual([]);
    expect(await docker.listNetworks({ filters: { label } })).toEqual([]);
  });

  test('[P14] a docker action gets values as variables and arguments unchanged, and has no network', async () => {
    const text =
      action('python', 'who', { code: 'print("o\'clock; id")' }) +
      action('docker', 'd', {
        image: 'busybox',
        command: 'printf "%s|" "$who"; ip route | wc -l; printf "%s|"',
        args: ['$(id)', '; id'],
        depends_on: ['who'],
      }) +
      '<response final="true">$d</response>';
    const result = await execute(system, 'builder', text);
    expect(result.actions.map(({ status }) => status)).toEqual(['completed', 'completed']);
    expect(result.response).toBe("o'clock; id|0\n$(id)|; id|");
  });

  test('[X4] an agent without the capability cannot run containers', async () => {
    const result = await execute(system, 'assistant', action('docker', 'd', { image: 'busybox', command: 'id' }));
    expect(result.actions).toMatchObject([{ status: 'rejected' }]);
    expect(result.actions[0]?.error).toMatchObject({ code: 'not_allowed' });
  });

  test('[R5] relics start with the first call, work in parallel and answer references', async () => {
    const text =
      action('relic', 'set', { parameters: { key: 'city', value: { name: 'Bern' } } }, 'name="key_value.set"') +
      action(
        'relic',
        'table',
        { parameters: { endpoint: 'execute', sql: 'CREATE TABLE t (a)' } },
        'name="sql_store" mode="async"',
      ) +
      action(
        'relic',
        'get',
        { parameters: { key: 'city' }, depends_on: ['set'] },
        'name="key_value.get" mode="async"',
      ) +
      '<response final="true">$get.value.name $table.changes</response>';
    const result = await execute(system, 'archivist', text);
    expect(result.response).toBe('Bern 0');
    // an execution cannot be continued, so its relics are removed
    const label = [`cortex-edge.space=${spaceOf(result)}`];
    await eventually(async () => {
      expect(await docker.listContainers({ all: true, filters: { label } })).toEqual([]);
      expect((await docker.listVolumes({ filters: { label } })).Volumes).toEqual([]);
    });
  });

  test('[R5] a killed relic restarts with its state; the end of the session removes it', async () => {
    const created = await fetch(`${system.url}/agent/archivist/session`, { method: 'POST', body: '{"user_id":"e2e"}' });
    const { session_id: id } = (await created.json()) as { session_id: string };
    const ask = async (content: string): Promise<RunResult> => {
      const response = await fetch(`${system.url}/agent/session/${id}/message`, {
        method: 'POST',
        body: JSON.stringify({ content, stream: false }),
      });
      return (await response.json()) as RunResult;
    };
    const kept = await ask('keep it');
    expect(kept.response).toBe('1');
    const label = [`cortex-edge.space=${spaceOf(kept)}`];
    const found = await docker.listContainers({ filters: { label } });
    const service = found.find(({ HostConfig: host }) => host.NetworkMode.startsWith('container:'));
    await docker.getContainer(service?.Id ?? '').kill({ signal: 'SIGKILL' });
    expect((await ask('what was it?')).response).toBe('42');
    await fetch(`${system.url}/agent/session/${id}`, { method: 'DELETE' });
    await eventually(async () => {
      expect(await docker.listContainers({ all: true, filters: { label } })).toEqual([]);
      expect((await docker.listVolumes({ filters: { label } })).Volumes).toEqual([]);
    });
  });

  test('[M3] a wrong endpoint or wrong parameters are reported before anything starts', async () => {
    const text =
      action('relic', 'a', { parameters: {} }, 'name="key_value.steal"') +
      action('relic', 'b', { parameters: { key: 5 } }, 'name="key_value.get"') +
      action('relic', 'c', {}, 'name="nothing.get"');
    const result = await execute(system, 'archivist', text);
    expect(result.actions.map(({ error }) => (error as { code: string } | null)?.code)).toEqual([
      'unknown_name',
      'invalid_parameters',
      'unknown_name',
    ]);
  });
});

describe('a runner that is not reachable yet', () => {
  test('[S7] [H1] actions wait for the runner, and health reports that it is missing', async () => {
    const port = await freePort();
    const system = await startWorker(`http://127.0.0.1:${port}`);
    let runner: RunnerProcess | null = null;
    try {
      const ask = async (path: string): Promise<[number, { status: string; missing?: unknown }]> => {
        const response = await fetch(`${system.url}${path}`);
        return [response.status, (await response.json()) as { status: string }];
      };
      expect(await ask('/health')).toMatchObject([
        200,
        { status: 'starting', missing: [{ part: 'runner', reason: 'the runner does not answer' }] },
      ]);
      expect((await ask('/health?ready'))[0]).toBe(503);
      const response = await fetch(`${system.url}/execute/direct`, {
        method: 'POST',
        body: JSON.stringify({
          protocol_text: `${action('python', 'x', { code: 'print(6*7)' }, PATIENT)}<response final="true">$x</response>`,
        }),
      });
      let text = '';
      for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
        text += chunk;
        if (!text.includes('waiting for a runner') || runner !== null) continue;
        runner = await startRunner({ RUNNER_SANDBOX: 'wasm', RUNNER_PORT: String(port) });
      }
      expect(text).toContain('event: action_completed');
      expect(text).toContain('"response":"42"');
      expect(await ask('/health?ready')).toMatchObject([200, { status: 'healthy' }]);
      if (runner !== null) await stop(runner, 'SIGKILL');
      expect(await ask('/health')).toMatchObject([200, { status: 'degraded' }]);
    } finally {
      await system.stop();
      if (runner !== null) await stop(runner);
    }
  });
});

describe('two runners', () => {
  let runners: RunnerProcess[];
  let system: System;
  beforeAll(async () => {
    runners = await Promise.all([startRunner({ RUNNER_SANDBOX: 'wasm' }), startRunner({ RUNNER_SANDBOX: 'wasm' })]);
    system = await startWorker(runners.map(({ url }, at) => `${url}#node${at}`).join(','));
  });
  afterAll(async () => {
    await system.stop();
    await Promise.all(runners.map((runner) => stop(runner)));
  });

  test('[R7] health lists both, by their labels', async () => {
    const health = (await (await fetch(`${system.url}/health`)).json()) as { runner: { runners: unknown } };
    expect(health.runner.runners).toMatchObject([
      { labels: ['node0'], status: 'healthy' },
      { labels: ['node1'], status: 'healthy' },
    ]);
  });

  test('[R7] after one is killed, the other takes new jobs', async () => {
    const text = `${action('python', 'x', { code: 'print(6*7)' }, PATIENT)}<response final="true">$x</response>`;
    expect((await execute(system, 'assistant', text)).response).toBe('42');
    const [first] = runners;
    if (first !== undefined) await stop(first, 'SIGKILL');
    const answers = await Promise.all([1, 2, 3].map(() => execute(system, 'assistant', text)));
    expect(answers.map(({ response }) => response)).toEqual(['42', '42', '42']);
  });
});
