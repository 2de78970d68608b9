/** The present Worker goes on with what each kept Worker has left in the same state folder (J9). */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { freePort } from '../../cli/system/services.ts';
import { startSystem } from '../../cli/system/system.ts';
import type { RunResult } from '../../src/view/result.ts';
import { eventually } from '../support/eventually.ts';
import { keptWorkers, unpackWorker } from '../support/kept-worker.ts';

const folder = mkdtempSync(join(tmpdir(), 'cortex-upgrade-'));
const made: string[] = [folder];
afterAll(() => {
  for (const each of made) rmSync(each, { recursive: true, force: true });
});

const MANIFESTS = {
  'tool/seal': `implementation: {type: builtin, entrypoint: echo}\nparameters: {text: string}\napproval: always`,
  'agent/sealer': `persona: You seal.\nimport: {tools: [seal, echo]}`,
};

/** Runs a Worker on the state folder. @param builtWorker default: the present one */
async function withWorker<T>(stateDir: string, builtWorker: string | null, use: (ask: Ask) => Promise<T>): Promise<T> {
  const system = await startSystem({
    port: await freePort(),
    runnerPort: 0,
    stateDir,
    vars: { LLM_PROVIDER: 'demo', RATE_LIMIT: '1000' },
    ownRunner: false,
    ...(builtWorker === null ? {} : { builtWorker }),
    progress: () => undefined,
  });
  try {
    return await use(async <Body>(method: string, path: string, body?: unknown) => {
      const sent = typeof body === 'string' ? body : JSON.stringify(body);
      const response = await fetch(`${system.url}${path}`, { method, ...(body === undefined ? {} : { body: sent }) });
      const text = await response.text();
      if (!response.ok) throw new Error(`${method} ${path}: HTTP ${response.status} ${text}`);
      return (response.headers.get('content-type')?.includes('jsonl') === true ? text : JSON.parse(text)) as Body;
    });
  } finally {
    await system.stop();
  }
}

type Ask = <Body>(method: string, path: string, body?: unknown) => Promise<Body>;

/** What readers get of a session: its record and transcript, and everything that is stored of it. */
async function read(ask: Ask, id: string): Promise<readonly unknown[]> {
  const path = `/agent/session/${id}`;
  return await Promise.all([path, `${path}/transcript`, `${path}/export`].map(async (one) => await ask('GET', one)));
}

test('[J9] at most three Workers are kept, and one of them has schema 1', () => {
  expect(keptWorkers()).toContain('schema-1');
  expect(keptWorkers().length).toBeLessThanOrEqual(3);
});

describe.each(keptWorkers())('[J9] [J2] the data of %s', (name) => {
  test('is read as it was, and its sessions and runs go on', async () => {
    const stateDir = join(folder, name);
    const kept = unpackWorker(name);
    made.push(kept);
    const before = await withWorker(stateDir, kept, async (ask) => {
      for (const [ref, text] of Object.entries(MANIFESTS)) {
        const [kind, own] = ref.split('/');
        const head = `kind: ${kind === 'tool' ? 'Tool' : 'Agent'}\nversion: "1.0"\nname: ${own}\nsummary: Of a test.\n`;
        await ask('PUT', `/manifests/${ref}`, `${head}${text}\n`);
      }
      const { session_id: id } = await ask<{ session_id: string }>('POST', '/agent/assistant/session', {
        user_id: 'ann',
      });
      await ask('POST', `/agent/session/${id}/message`, { content: 'What is 6 times 7?', stream: false });
      const waiting = await ask<RunResult>('POST', '/execute/direct', {
        agent: 'sealer',
        stream: false,
        protocol_text:
          '<action type="tool" mode="async" id="x">{"name":"echo","parameters":{"text":"wax"}}</action>' +
          '<action type="tool" mode="async" id="a">{"name":"seal","parameters":{"text":"red $x.text"}}</action>' +
          '<response final="true">$a.text</response>',
      });
      expect(waiting.status).toBe('waiting');
      // The lists have both.
      await eventually(async () => {
        const { executions } = await ask<{ executions: object[] }>('GET', '/executions');
        expect(executions).toHaveLength(2);
      });
      return { id, waiting: waiting.session_id, seen: [await read(ask, id), await read(ask, waiting.session_id)] };
    });

    await withWorker(stateDir, null, async (ask) => {
      expect([await read(ask, before.id), await read(ask, before.waiting)]).toEqual(before.seen);
      const answer = await ask<RunResult>('POST', `/agent/session/${before.id}/message`, {
        content: 'And what is 7 times 8?',
        stream: false,
      });
      expect(answer).toMatchObject({ session_id: before.id, status: 'completed' });
      expect(await ask('GET', `/agent/session/${before.id}`)).toMatchObject({ runs: 2, user_id: 'ann' });

      const { approvals } = await ask<{ approvals: { approval_id: string; parameters: object }[] }>(
        'GET',
        '/approvals',
      );
      expect(approvals).toMatchObject([{ parameters: { text: 'red wax' } }]);
      const path = `/agent/session/${before.waiting}`;
      await ask('POST', `${path}/approvals/${approvals[0]?.approval_id}`, { decision: 'approve' });
      await eventually(async () => {
        const { executions } = await ask<{ executions: { session_id: string; status: string }[] }>(
          'GET',
          '/executions',
        );
        expect(executions.map(({ status }) => status)).toEqual(['completed', 'completed', 'completed']);
      });
      const { sessions } = await ask<{ sessions: { session_id: string }[] }>('GET', '/sessions');
      expect(sessions.map(({ session_id: id }) => id)).toContain(before.id);
      // Its agent is in the catalogue as it was uploaded.
      const next = await ask<RunResult>('POST', '/execute/direct', {
        agent: 'sealer',
        stream: false,
        protocol_text: '<response final="true">done</response>',
      });
      expect(next.response).toBe('done');
    });
  });
});
