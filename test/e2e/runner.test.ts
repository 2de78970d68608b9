/** The Worker and its runners as real processes: containers, relics, and lost runners (R2, R5, R7). */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';

import { afterAll, beforeAll, describe, expect, test } from 'vitest';

import { withSnapshot } from '../../container-runner/test/support/python-snapshot.ts';
import { dockerSocket, LIGHT_SANDBOX, reasonToSkip } from '../../container-runner/test/support/levels.ts';
import { connectEngine } from '../../container-runner/sandbox/docker-engine.ts';
import { freePort } from '../../cli/system/services.ts';
import { PACKAGE_ROOT } from '../../cli/project/folders.ts';
import { startSystem } from '../../cli/system/system.ts';
import type { System } from '../../cli/system/system.ts';
import type { RunResult } from '../../src/view/result.ts';
import { incarnationIn, sessionKey } from '../../src/domain/session.ts';
import { answer, startScriptedLlm } from '../../cli/scripted-llm/server.ts';
import type { ScriptedLlm } from '../../cli/scripted-llm/server.ts';
import { eventually } from '../support/eventually.ts';
import { modelAt, sharedPart, sharedPort } from '../support/shared.ts';

/** The scope of a session's relics (T5). */
const spaceOf = ({ session_id, run_id }: RunResult): string =>
  sessionKey({ session_id, incarnation: incarnationIn(run_id) ?? '' });

const SECRET = 'of the end-to-end tests, long enough for anyone';
const skip = reasonToSkip('docker');
/** The first start of a sandbox can exceed the default timeout of an action. */
const PATIENT = 'timeout="200"';

const folders: string[] = [];
function folder(): string {
  const made = mkdtempSync(join(tmpdir(), 'cortex-runner-e2e-'));
  folders.push(made);
  return made;
}

async function startRunner(port: number): Promise<ChildProcess> {
  const child = spawn(process.execPath, ['container-runner/main.ts'], {
    cwd: PACKAGE_ROOT,
    env: {
      PATH: process.env['PATH'],
      RUNNER_SECRET: `e2e=${SECRET}`,
      RUNNER_PORT: String(port),
      RUNNER_DRAIN_SECONDS: '0',
      CORTEX_STATE_DIR: withSnapshot(folder()),
      ...LIGHT_SANDBOX,
    },
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  await once(createInterface(child.stdout), 'line');
  return child;
}

/** Kills the process, if it runs. */
async function kill(child: ChildProcess | undefined): Promise<void> {
  if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
  child.kill('SIGKILL');
  await once(child, 'exit');
}

async function execute(system: Pick<System, 'url'>, agent: string, text: string): Promise<RunResult> {
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
  let system: { readonly url: string };
  let llm: ScriptedLlm;
  beforeAll(async () => {
    docker = await connectEngine(dockerSocket);
    system = { url: await sharedPart('system') };
    const set = action('relic', 's', { parameters: { key: 'k', value: 42 } }, 'name="key_value.set"');
    const get = action('relic', 'g', { parameters: { key: 'k' } }, 'name="key_value.get"');
    const replies = [
      answer(`${set}<response final="true">$s.version</response>`),
      answer(`${get}<response final="true">$g.value</response>`),
    ];
    llm = await startScriptedLlm(replies, await sharedPort());
    const agent = `kind: Agent\nversion: "1"\nname: keeper\nsummary: Keeps.\npersona: You keep.\nimport: {relics: [key_value]}\n`;
    const put = await fetch(`${system.url}/manifests/agent/keeper`, {
      method: 'PUT',
      body: agent + modelAt(llm.baseUrl),
    });
    expect(put.status).toBe(201);
  });
  afterAll(async () => {
    await llm?.[Symbol.asyncDispose]();
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
    const created = await fetch(`${system.url}/agent/keeper/session`, { method: 'POST', body: '{"user_id":"e2e"}' });
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
    expect((await docker.listVolumes({ filters: { label } })).Volumes).not.toEqual([]);
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

// In order: each test begins with the runners of the one before it.
describe('two runners', () => {
  const ports: number[] = [];
  const runners: ChildProcess[] = [];
  let system: System;
  beforeAll(async () => {
    ports.push(await freePort(), await freePort());
    system = await startSystem({
      port: await freePort(),
      runnerPort: 0,
      stateDir: folder(),
      vars: {
        RUNNER_URLS: ports.map((port, at) => `http://127.0.0.1:${port}#node${at}`).join(','),
        RUNNER_SECRET: `e2e=${SECRET}`,
      },
      ownRunner: false,
      progress: () => undefined,
    });
  });
  afterAll(async () => {
    await system?.stop();
    await Promise.all(runners.map(kill));
  });

  const SUM = `${action('python', 'x', { code: 'print(6*7)' }, PATIENT)}<response final="true">$x</response>`;

  async function ask(path: string): Promise<[number, { status: string; missing?: unknown; runner?: unknown }]> {
    const response = await fetch(`${system.url}${path}`);
    return [response.status, (await response.json()) as { status: string }];
  }

  test('[S7] [H1] that are not reachable yet: actions wait for one, and health reports that it is missing', async () => {
    expect(await ask('/health')).toMatchObject([
      200,
      { status: 'starting', missing: [{ part: 'runner', reason: 'the runner does not answer' }] },
    ]);
    expect((await ask('/health?ready'))[0]).toBe(503);
    const response = await fetch(`${system.url}/execute/direct`, {
      method: 'POST',
      body: JSON.stringify({ protocol_text: SUM }),
    });
    let text = '';
    for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      text += chunk;
      if (!text.includes('waiting for a runner') || runners.length > 0) continue;
      for (const port of ports) runners.push(await startRunner(port));
    }
    expect(text).toContain('event: action_completed');
    expect(text).toContain('"response":"42"');
    expect(await ask('/health?ready')).toMatchObject([200, { status: 'healthy' }]);
  });

  test('[R7] health lists both, by their labels', async () => {
    const [, health] = await ask('/health');
    expect(health).toMatchObject({
      runner: {
        runners: [
          { labels: ['node0'], status: 'healthy' },
          { labels: ['node1'], status: 'healthy' },
        ],
      },
    });
  });

  test('[R7] after one is killed, the other takes new jobs', async () => {
    await kill(runners[0]);
    const answers = await Promise.all([1, 2, 3].map(() => execute(system, 'assistant', SUM)));
    expect(answers.map(({ response }) => response)).toEqual(['42', '42', '42']);
  });

  test('[H1] after both are killed, the system is degraded', async () => {
    await kill(runners[1]);
    expect(await ask('/health')).toMatchObject([200, { status: 'degraded' }]);
  });
});
