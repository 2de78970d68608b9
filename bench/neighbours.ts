/**
 * `npm run bench:neighbours`: the waiting time of one tenant while another one sends its worst input. All tenants of a
 * local system share one thread.
 *
 * Each input is sent while another tenant sends short messages one after the other. An exceeded bound takes the same
 * time in every attempt; a busy machine does not. Therefore the minimum of a few attempts is compared with the limit.
 * The exit code is 1 if an input delays the neighbour for longer, or gets an unexpected answer.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { answer, startScriptedLlm } from '../cli/scripted-llm/server.ts';
import { freePort } from '../cli/system/services.ts';
import { startSystem } from '../cli/system/system.ts';
import type { System } from '../cli/system/system.ts';
import { Journal } from '../src/journal/journal.ts';
import { fillSession } from '../test/support/long-session.ts';
import { openNodeSql } from '../test/support/node-sql.ts';
import { LONG_RUNS, WORST_INPUTS } from '../test/support/worst-inputs.ts';
import type { Tenant, WorstInput } from '../test/support/worst-inputs.ts';

/** The limit of a neighbour's message, and the number of attempts for an input that exceeds it. */
const LIMIT_MS = 500;
const TRIES = 8;

const stateDir = mkdtempSync(join(tmpdir(), 'cortex-neighbours-'));
const llm = await startScriptedLlm(() => answer('<response final="true">hello</response>'));
let system: System | null = null;
try {
  system = await startSystem({
    port: await freePort(),
    runnerPort: await freePort(),
    stateDir,
    vars: {
      API_KEYS: 'mallory:admin:mallory-of-the-tests,alice:run:alice-of-the-tests',
      LLM_BASE_URL: llm.baseUrl,
      LLM_MODEL: 'scripted',
    },
    ownRunner: true,
    progress: () => undefined,
  });
  process.exitCode = (await measure(system)) ? 0 : 1;
} finally {
  await system?.stop();
  await llm[Symbol.asyncDispose]();
  rmSync(stateDir, { recursive: true, force: true });
}

/** @returns whether every input stayed within the limit */
async function measure(running: System): Promise<boolean> {
  const mallory = tenant(running, 'mallory-of-the-tests');
  const longSession = await begun(mallory);
  await fill(running, longSession);
  const attacker: Tenant = { ...mallory, longSession };
  const alice = tenant(running, 'alice-of-the-tests');
  const session = await begun(alice);
  const neighbour = async (): Promise<number> => {
    const begin = performance.now();
    const answered = await alice.request('POST', `/agent/session/${session}/message`, {
      content: 'hello',
      stream: false,
    });
    assert.match(answered.text, /"status":"completed"/);
    return performance.now() - begin;
  };
  await neighbour();
  let keeps = true;
  console.log(`| input | longest wait of a neighbour (limit: ${LIMIT_MS} ms) | |\n| --- | ---: | --- |`);
  for (const input of WORST_INPUTS) {
    await input.prepare?.(attacker);
    let least = Infinity;
    let isAnswered = true;
    for (let at = 0; at < TRIES && least >= LIMIT_MS && isAnswered; at += 1) {
      const { slowest, text } = await tried(input, attacker, neighbour);
      isAnswered = input.answer.test(text);
      least = Math.min(least, slowest);
    }
    const fault = !isAnswered ? 'unexpected answer' : least >= LIMIT_MS ? 'too long' : '';
    keeps &&= fault === '';
    console.log(`| ${input.name} | ${Math.round(least)} ms | ${fault} |`);
  }
  return keeps;
}

async function begun({ request }: Pick<Tenant, 'request'>): Promise<string> {
  const created = await request('POST', '/agent/assistant/session', {});
  return (JSON.parse(created.text) as { session_id: string }).session_id;
}

/** Fills a session's database while the Worker is stopped: 300,000 events, and one run with sixteen megabytes of results. */
async function fill(running: System, session: string): Promise<void> {
  const worker = running.parts.find(({ name }) => name === 'Worker');
  await worker?.stop();
  const folder = join(stateDir, 'worker');
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.sqlite'));
  for (const file of files) {
    const sql = openNodeSql(join(folder, file));
    if (!new Set(sql.exec(`SELECT name FROM sqlite_master`).map(({ name }) => name)).has('session')) continue;
    const journal = new Journal(sql);
    if (journal.record?.session_id !== session) continue;
    journal.variables.set('x', 1);
    fillSession(sql, { runs: LONG_RUNS - 1, actions: 1_000, output: '{"n":1}' });
    fillSession(sql, { runs: 1, actions: 16, output: `[${'[],'.repeat(300_000)}1]` });
  }
  await worker?.start();
}

function tenant(running: System, key: string): Pick<Tenant, 'request'> {
  return {
    async request(method, path, body) {
      const response = await fetch(`${running.url}${path}`, {
        method,
        headers: { authorization: `Bearer ${key}` },
        ...(body === undefined
          ? {}
          : { body: typeof body === 'string' || body instanceof FormData ? body : JSON.stringify(body) }),
      });
      return { status: response.status, text: await response.text() };
    },
  };
}

/** @returns the neighbour's slowest message while the input was processed, and the answer to the input */
async function tried(
  input: WorstInput,
  attacker: Tenant,
  neighbour: () => Promise<number>,
): Promise<{ readonly slowest: number; readonly text: string }> {
  const sending = { done: false };
  const sent = input.send(attacker).finally(() => (sending.done = true));
  let slowest = 0;
  do slowest = Math.max(slowest, await neighbour());
  while (!sending.done);
  return { slowest, text: (await sent).text };
}
