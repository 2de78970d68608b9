/** What requests read of a session, in slices: nobody's long session holds up others of the thread. */
import { describe, expect, test } from 'vitest';
import type { Clock } from '../../../src/domain/ports.ts';
import { limits } from '../../../src/domain/limits.ts';
import { ThreadShare, FairQueue } from '../../../src/domain/fair-queue.ts';
import { checkVariables } from '../../../src/engine/session/session-variables.ts';
import { createSessionApp } from '../../../src/http/session-app.ts';
import { Journal } from '../../../src/journal/journal.ts';
import { FakeClock } from '../../support/fake-clock.ts';
import { fillSession } from '../../support/long-session.ts';
import type { LongSession } from '../../support/long-session.ts';
import { openNodeSql } from '../../support/node-sql.ts';
import type { NodeSql } from '../../support/node-sql.ts';
import { runText, sessionKit } from '../../support/session-kit.ts';
import { newJournal } from '../../journal/journal-kit.ts';

const RUN = (run: number): string => `run_${'a'.repeat(32)}_${run}`;
const LARGE: LongSession = { runs: 4, actions: 300, output: JSON.stringify('x'.repeat(1_000)) };

interface Surface {
  readonly sql: NodeSql;
  readonly session: Awaited<ReturnType<typeof sessionKit>>['session'];
  readonly journal: Journal;
  /** Characters that each turn read, in order. */
  readonly turns: number[];
  /** Done while others have their turn. */
  meanwhile: () => void;
  get(path: string): Promise<Response>;
}

/** A session with much in it; its clock's pauses pass at once, and are where turns end. */
async function surface(long: LongSession, fill: (journal: Journal) => void = () => undefined): Promise<Surface> {
  const sql = openNodeSql();
  newJournal(sql).setVariable('x', 1);
  fillSession(sql, long);
  fill(new Journal(sql));
  const turns = [0];
  const counted: NodeSql = {
    ...sql,
    exec(text, ...parameters) {
      const rows = sql.exec(text, ...parameters);
      for (const row of rows) {
        for (const value of Object.values(row)) {
          turns[turns.length - 1] = (turns.at(-1) ?? 0) + (typeof value === 'string' ? value.length : 0);
        }
      }
      return rows;
    },
  };
  let now = 0;
  const clock: Clock = {
    now: () => now,
    schedule(delayMs, callback) {
      setImmediate(() => {
        now += delayMs;
        turns.push(0);
        made.meanwhile();
        callback();
      });
      return () => undefined;
    },
  };
  const { session } = await sessionKit({ sql: counted, share: new ThreadShare(new FairQueue(clock), () => null) });
  const app = createSessionApp({
    session,
    clock: new FakeClock(),
    destroy: async () => undefined,
    log: () => undefined,
  });
  const made: Surface = {
    sql,
    session,
    journal: new Journal(sql),
    turns,
    meanwhile: () => undefined,
    get: async (path) => await app.fetch(new Request(`http://session${path}`)),
  };
  return made;
}

describe('[X2] a long session is read in turns', () => {
  const chars = LARGE.runs * LARGE.actions * 1_000;
  test.each([
    ['/history', 0],
    [`/runs/${RUN(1)}`, chars / LARGE.runs],
    ['/-/latest-run', chars / LARGE.runs],
    ['/artifacts', 0],
    ['/export', chars],
    [`/events?run=${RUN(3)}`, chars / LARGE.runs],
    ['/transcript', -1],
  ])('%s', async (path, least) => {
    const { get, turns } = await surface(LARGE);
    const response = await get(path);
    expect(response.status).toBe(200);
    expect((await response.text()).length).toBeGreaterThan(least);
    // A page that is read to its end, beside the slice.
    expect(Math.max(...turns)).toBeLessThan(2 * limits.sliceChars);
    expect(turns.length).toBeGreaterThan(least / limits.sliceChars);
  });

  test('/state', async () => {
    const value = JSON.stringify('x'.repeat(limits.variableBytes - 10));
    const { get, turns } = await surface({ ...LARGE, runs: 1 }, (journal) => {
      for (let n = 0; n < 15; n += 1) journal.setVariable(`v${n}`, JSON.parse(value) as string);
    });
    const { variables } = (await (await get('/state')).json()) as { variables: Record<string, unknown> };
    expect(Object.keys(variables)).toHaveLength(16);
    expect(variables['v14']).toBe(JSON.parse(value));
    expect(turns.length).toBeGreaterThan(7);
  });

  test('passing over what belongs to other runs takes turns, too', async () => {
    const { get, turns, sql } = await surface({ runs: 20, actions: 1_000, output: '1' });
    // An action of the first run has not ended: the rest of the journal is looked through for its end.
    sql.exec(`DELETE FROM events WHERE seq = 4`);
    expect(((await (await get(`/runs/${RUN(1)}`)).json()) as { actions: unknown[] }).actions).toHaveLength(1_000);
    const other = await surface({ runs: 20, actions: 1_000, output: '1' });
    await (await other.get(`/runs/${RUN(2)}`)).text();
    // What has ended is not looked for.
    expect(other.turns.length).toBeLessThan(turns.length - 2);
  });

  test('a session that fits into a slice is read at once', async () => {
    const { get, turns } = await surface({ runs: 2, actions: 10, output: '"small"' });
    for (const path of ['/history', `/runs/${RUN(1)}`, '/artifacts', '/export', `/events?run=${RUN(2)}`, '/state']) {
      await (await get(path)).text();
    }
    expect(turns).toHaveLength(1);
  });

  test('an output of megabytes is sent as it is stored, and its files are found', async () => {
    const deep = `${'['.repeat(100)}${']'.repeat(100)}`;
    const junk = JSON.parse(`[${`${deep},`.repeat(5_000)}1]`) as never;
    const output = {
      junk,
      files: [
        { name: 'a.txt', text: 'héllo', more: junk },
        { name: 'b', base64: '!' },
      ],
    };
    const at = { runId: RUN(1), iteration: 1, at: 1, actionId: 'big', actionName: 'echo' };
    const { get } = await surface({ runs: 1, actions: 1, output: '1' }, (journal) => {
      journal.append({ ...at, type: 'action_completed', data: { output, ms: 1, attempt: 1 } });
      void journal.sync();
    });
    const { artifacts } = (await (await get('/artifacts')).json()) as { artifacts: { id: string; name: string }[] };
    expect(artifacts.map(({ name }) => name)).toEqual(['big.json', 'a.txt']);
    const [whole = '', file = ''] = artifacts.map(({ id }) => id);
    expect(await (await get(`/artifacts/${file}`)).text()).toBe('héllo');
    expect(await (await get(`/artifacts/${whole}`)).text()).toBe(JSON.stringify(output));
    expect(await (await get('/export')).text()).toContain(`"data":{"output":${JSON.stringify(output)},"ms":1`);
  });
});

describe('[J4] what is read in several turns is one view', () => {
  const late = { iteration: 1, at: 9, data: { content: 'late', final: true, segment: 1 } } as const;

  test.each(['/history', `/runs/${RUN(20)}`, '/export'])('%s', async (path) => {
    const long = { ...LARGE, runs: 20 };
    const before = await (await (await surface(long)).get(path)).text();
    const made = await surface(long);
    let appended = 0;
    made.meanwhile = () => {
      if (appended > 3) return;
      appended += 1;
      made.journal.append({ ...late, runId: RUN(20), type: 'response_completed' });
      made.journal.runs.create({ type: 'message', content: 'later' }, 9, 'queued');
    };
    expect(await (await made.get(path)).text()).toBe(before);
    expect(appended).toBeGreaterThan(0);
  });

  test('a run that goes on is exported as it was', async () => {
    const made = await surface(LARGE, (journal) => {
      journal.runs.create({ type: 'message', content: 'waits' }, 5, 'queued');
    });
    made.meanwhile = () => made.sql.exec(`UPDATE runs SET status = 'completed', ended_at = 7, open = 0 WHERE run = 5`);
    const read = made.session.export()[Symbol.asyncIterator]();
    let text = '';
    made.meanwhile();
    for (let next = await read.next(); next.done !== true; next = await read.next()) text += next.value;
    expect(text).toContain(`{"run":{"run_id":"${RUN(5)}","status":"queued"`);
  });

  test('a session that is deleted meanwhile is not there any more', async () => {
    const made = await surface({ ...LARGE, runs: 20 });
    made.meanwhile = () => void made.session.close('deleted');
    const response = await made.get('/history');
    expect([response.status, await response.json()]).toMatchObject([404, { code: 'unknown_session' }]);
  });
});

describe('[J6] the variables of a session', () => {
  const most = 'x'.repeat(limits.variableBytes - 100);
  const full = Object.fromEntries(
    Array.from({ length: limits.variablesBytes / limits.variableBytes }, (_, n) => [`v${n}`, most]),
  );
  const set = (key: string, value: string): string =>
    `<action type="internal" name="set_variable" id="${key}">${JSON.stringify({ key, value })}</action>`;

  test('have four megabytes together; what does not grow is taken on', async () => {
    const sql = openNodeSql();
    const filled = newJournal(sql);
    for (const [key, value] of Object.entries(full)) filled.setVariable(key, value);
    await filled.sync();
    const kit = await sessionKit({ sql });
    const drop = '<action type="internal" name="delete_variable" id="d">{"key":"v1"}</action>';
    const { actions } = await runText(
      kit,
      `${set('more', most)}<action type="internal" name="set_variable" id="v0">{"key":"v0","value":1}</action>${drop}`,
    );
    expect(actions.map(({ id, status, error }) => [id, status, (error as { code: string } | null)?.code])).toEqual([
      ['more', 'failed', 'variables_quota'],
      ['v0', 'completed', undefined],
      ['d', 'completed', undefined],
    ]);
    expect((await runText(kit, set('more', most))).actions).toMatchObject([{ status: 'completed' }]);
  });

  test('a session does not begin with more', () => {
    expect(() => checkVariables(full)).not.toThrow();
    const refused = expect.objectContaining({ code: 'variables_quota', status: 413 }) as unknown;
    expect(() => checkVariables({ ...full, more: most })).toThrow(refused as Error);
  });
});
