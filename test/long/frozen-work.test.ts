/** Work that freezes the Worker each time it is resumed, with real processes (J2, S10). */
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, expect, test } from 'vitest';
import { LIGHT_SANDBOX } from '../../container-runner/test/support/levels.ts';
import { signalAll } from '../../container-runner/test/support/processes.ts';
import { limits } from '../../src/domain/limits.ts';
import type { RunResult } from '../../src/view/result.ts';
import { cleanUp, exitOf, post, processesOf, start, stateFolder, stop, withCommand } from '../support/npm-start.ts';
import type { Started } from '../support/npm-start.ts';

const LATER = { timeout: 120_000, interval: 100 };
const SLOW = `<action type="tool" id="p" timeout="3000">${JSON.stringify({ name: 'echo', parameters: { delay_ms: 2_000_000 } })}</action><response final="true">$p</response>`;

afterAll(cleanUp);

/** The recorded lives of work in progress, of every session on disk, by the session's id. */
function notes(stateDir: string): Map<string, number[]> {
  const folder = join(stateDir, 'worker');
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter(({ name }) =>
    name.endsWith('.sqlite'),
  );
  const found = new Map<string, number[]>();
  for (const { parentPath, name } of files) {
    const database = new DatabaseSync(join(parentPath, name), { readOnly: true });
    try {
      const session = database.prepare(`SELECT data FROM session`).get()?.['data'];
      const note = database.prepare(`SELECT lives FROM taken_up WHERE work = 'run 1'`).get()?.['lives'];
      if (typeof session !== 'string' || typeof note !== 'string') continue;
      found.set((JSON.parse(session) as { session_id: string }).session_id, JSON.parse(note) as number[]);
    } catch {
      // It contains no session, or no work in progress.
    } finally {
      database.close();
    }
  }
  return found;
}

const lifeOf = (stateDir: string): number =>
  (JSON.parse(readFileSync(join(stateDir, 'lives.json'), 'utf8')) as { life: number }).life;

async function begin(system: Started): Promise<string> {
  const response = await fetch(`${system.url}/execute/direct`, {
    method: 'POST',
    body: JSON.stringify({ protocol_text: SLOW }),
  });
  await response.body?.cancel();
  return response.headers.get('x-session-id') ?? '';
}

const result = async (system: Started, session: string): Promise<RunResult> =>
  (await (await fetch(`${system.url}/executions/${session}`)).json()) as RunResult;

test('[J2] a run in progress at three frozen starts is quarantined by name; other runs continue, and new runs work', async () => {
  const env = { ...LIGHT_SANDBOX, CORTEX_STATE_DIR: stateFolder() };
  const first = await start(env);
  const [poison, innocent] = [await begin(first), await begin(first)];
  await expect.poll(async () => (await result(first, innocent)).actions[0]?.status ?? '', LATER).toBe('running');
  // This first stop is not evidence against the run.
  first.process.kill('SIGKILL');
  await exitOf(first);
  const system = await start(env);
  for (let freeze = 1; freeze <= limits.frozenStarts; freeze += 1) {
    await expect
      .poll(() => notes(env.CORTEX_STATE_DIR).get(poison) ?? [], LATER)
      .toContain(lifeOf(env.CORTEX_STATE_DIR));
    signalAll(withCommand(processesOf(system), '/workerd serve'), 'SIGSTOP');
    await expect
      .poll(() => system.output().match(/(?:has not answered|froze while)/g)?.length ?? 0, LATER)
      .toBe(freeze);
    await expect.poll(() => system.output().match(/The Worker is running again/g)?.length ?? 0, LATER).toBe(freeze);
  }
  await expect
    .poll(async () => await result(system, poison), LATER)
    .toMatchObject({
      status: 'failed',
      error: { code: 'recovery_exhausted' },
    });
  await expect
    .poll(() => system.output(), LATER)
    .toContain(`of session ${poison} is quarantined: the host froze at ${limits.frozenStarts} starts`);
  expect((await result(system, innocent)).status).toBe('running');
  const served = await post<RunResult>(`${system.url}/execute/direct`, {
    stream: false,
    protocol_text: '<response final="true">served</response>',
  });
  expect(served).toMatchObject({ status: 'completed', response: 'served' });
  await fetch(`${system.url}/executions/${innocent}/cancel`, { method: 'POST' });
  await stop(system);
}, 600_000);
