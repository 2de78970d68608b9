/** The program `cortex` against a system at an address, from a folder without a project (K4). */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { SessionEvent } from '../../src/domain/event.ts';
import { cortexHere, cortex as runProgram } from '../support/cortex.ts';
import type { CortexResult } from '../support/cortex.ts';
import { startCuttingProxy } from '../support/cutting-proxy.ts';
import { sharedPart } from '../support/shared.ts';

const KEY = 'the-key-of-ann-in-this-test';
const folder = mkdtempSync(join(tmpdir(), 'cortex-cli-'));
const work = join(folder, 'work');
let url = '';

beforeAll(async () => {
  mkdirSync(work);
  url = await sharedPart('system');
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function cortex(...args: string[]): Promise<CortexResult> {
  const result = await cortexHere(args, { cwd: work, env: { CORTEX_URL: url, CORTEX_API_KEY: KEY } });
  expect(`${result.out}${result.err}`).not.toContain(KEY);
  return result;
}

const eventsIn = (text: string): SessionEvent[] =>
  text
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as SessionEvent);
const sessionIn = (text: string): string => /ses_[0-9a-f]{32}/.exec(text)?.[0] ?? '';

/** A run of an agent that waits for an approval. */
async function waitingRun(power: number): Promise<{ session: string; run: string; err: string }> {
  const { out, err, code } = await cortex('run', 'careful_assistant', `compute 3**${power} in python`, '--json');
  expect(code).toBe(4);
  const [first] = eventsIn(out);
  return { session: first?.session_id ?? '', run: first?.run_id ?? '', err };
}

test('[K4] run prints the answer on stdout and the session on stderr, and continues it', async () => {
  const first = await cortex('run', 'assistant', 'What is 6 times 7?');
  expect(first.code).toBe(0);
  expect(first.out).toContain('42\n');
  const session = sessionIn(first.err);
  const second = await cortex('run', 'assistant', 'What is 3 + 4?', '--session', session, '--no-stream', '--json');
  expect(JSON.parse(second.out)).toMatchObject({ session_id: session, status: 'completed' });
  const other = await cortex('run', 'builder', 'hi', '--session', session);
  expect(other).toMatchObject({
    code: 2,
    err: expect.stringContaining('is with the agent "assistant", not "builder"'),
  });
  const shown = await cortex('sessions', 'show', session, '--json');
  expect(JSON.parse(shown.out)).toMatchObject({ session: { agent: 'assistant', runs: 2 }, more_runs: false });
});

test('[K4] run reads the message from standard input', async () => {
  const options = { cwd: work, input: 'What is 5 times 5?' };
  const { out, code } = await runProgram(['run', 'assistant', '-', '--url', url, '--key', KEY], options);
  expect([code, out]).toEqual([0, expect.stringContaining('25')]);
});

test('[K4] a run that waits exits with 4; its approval continues it, and tail shows it to its end', async () => {
  const { session, run, err } = await waitingRun(5);
  const approval = /cortex approve (apr_\w+)/.exec(err)?.[1] ?? '';
  expect(err).toContain(`cortex tail ${session} --run ${run}`);
  const listed = JSON.parse((await cortex('approve', '--json')).out) as { approvals: { approval_id: string }[] };
  expect(listed.approvals.map(({ approval_id: id }) => id)).toContain(approval);
  const tailed = cortex('tail', session, '--run', run, '--json');
  expect((await cortex('approve', approval)).code).toBe(0);
  const { out, code } = await tailed;
  expect(code).toBe(0);
  const events = eventsIn(out);
  expect(events.at(-1)).toMatchObject({ type: 'agent_completed', data: { response: expect.stringContaining('243') } });
  const journaled = events.flatMap(({ seq }) => seq ?? []);
  expect(journaled).toEqual(journaled.map((_, at) => at + 1));
  expect((await cortex('approve', approval)).err).toContain(`no open request has the id "${approval}"`);
});

test('[K4] a denial and its note reach the model', async () => {
  const { session } = await waitingRun(6);
  await cortex('approve', session, '--deny', '--note', 'too large');
  const { out, code } = await cortex('tail', session, '--until-idle');
  expect(code).toBe(0);
  expect(out).toContain('approval_denied');
  expect(out).toContain('too large');
});

test('[K4] tail resumes over a connection that is cut: each event comes once', async () => {
  const { session } = await waitingRun(7);
  await using proxy = await startCuttingProxy({ target: url, eventsOf: () => 3 });
  const tailed = cortex('tail', session, '--until-idle', '--json', '--url', proxy.url);
  await cortex('approve', session);
  const { out, code } = await tailed;
  expect(code).toBe(0);
  expect(proxy.cuts()).toBeGreaterThan(0);
  const journaled = eventsIn(out).flatMap(({ seq }) => seq ?? []);
  expect(journaled).toEqual(journaled.map((_, at) => at + 1));
  const rest = await cortex('tail', session, '--until-idle', '--json', '--after', '4');
  expect(eventsIn(rest.out).flatMap(({ seq }) => seq ?? [])).toEqual(journaled.slice(4));
});

test('[K4] a replay from the system and one from an export are the same', async () => {
  const { err } = await cortex('run', 'assistant', 'wait 1 second and 1 second in parallel');
  const session = sessionIn(err);
  const exported = await cortex('sessions', 'export', session);
  writeFileSync(join(work, 'session.jsonl'), exported.out);
  const [live, file] = [await cortex('replay', session), await cortex('replay', 'session.jsonl')];
  expect([live.code, live.err]).toEqual([0, '']);
  expect(file.out).toBe(live.out);
  expect(file.out).toMatch(/│ *·*█+/);
});

test('[K4] sessions are filtered and deleted', async () => {
  const { session } = await waitingRun(8);
  const listed = async (...filter: string[]): Promise<string[]> => {
    const { out } = await cortex('sessions', '--json', '--limit', '100', ...filter);
    return (JSON.parse(out) as { sessions: { session_id: string }[] }).sessions.map(({ session_id: id }) => id);
  };
  await expect.poll(() => listed('--agent', 'careful_assistant', '--status', 'waiting')).toContain(session);
  const { code } = await cortex('run', 'assistant', 'hello');
  expect(code).toBe(0);
  const others = await listed('--agent', 'assistant');
  expect(others).not.toEqual([]);
  expect(others).not.toContain(session);
  expect((await cortex('sessions', 'delete', session)).code).toBe(0);
  expect((await cortex('sessions', 'show', session)).code).toBe(1);
});

test('[K4] a failed request has its exit code', async () => {
  expect(await cortex('run', 'nobody', 'hi')).toMatchObject({ code: 1, err: expect.stringContaining('unknown_agent') });
});

test('[K4] prompt, grammar and plan ask the system that is named', async () => {
  expect((await cortex('prompt', 'assistant')).err).toContain(`from the running system at ${url}`);
  expect((await cortex('grammar', 'assistant', '--json')).code).toBe(0);
  const planned = await runProgram(['plan', '-', 'assistant', '--json'], {
    cwd: work,
    input: '<action name="ecko" id="a">{}</action>',
    env: { CORTEX_URL: url, CORTEX_API_KEY: KEY },
  });
  expect(JSON.parse(planned.out)).toMatchObject({ actions: [{ id: 'a' }], warnings: [{ code: 'unknown_name' }] });
});
