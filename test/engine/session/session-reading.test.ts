/** Requests read a session in slices: a long session does not delay others on the same thread (X2). */
import { describe, expect, test } from 'vitest';
import type { Json, JsonObject } from '../../../src/domain/json.ts';
import type { Clock } from '../../../src/domain/ports/clock.ts';
import { OUTPUTS } from '../../../src/domain/workflow-actions.ts';
import { limits } from '../../../src/domain/limits.ts';
import { ThreadShare, FairQueue } from '../../../src/domain/fair-queue.ts';
import { SessionReading } from '../../../src/engine/session/session-reading.ts';
import { SessionVariables } from '../../../src/engine/session/session-variables.ts';
import { createSessionApp } from '../../../src/http/session-app.ts';
import { Journal } from '../../../src/journal/journal.ts';
import { anyData } from '../../support/events.ts';
import { VirtualClock } from '../../../testing/virtual-clock.ts';
import { instantClock } from '../../../testing/instant-clock.ts';
import { fillSession } from '../../support/long-session.ts';
import type { LongSession } from '../../support/long-session.ts';
import { openNodeSql } from '../../support/node-sql.ts';
import type { NodeSql } from '../../support/node-sql.ts';
import { sessionKit, textOf } from '../../support/session-kit.ts';
import { newJournal, SESSION_RECORD } from '../../journal/journal-kit.ts';

const RUN = (run: number): string => `run_${'a'.repeat(32)}_${run}`;
const LARGE: LongSession = { runs: 4, actions: 300, output: JSON.stringify('x'.repeat(1_000)) };

interface Surface {
  readonly sql: NodeSql;
  readonly session: Awaited<ReturnType<typeof sessionKit>>['session'];
  readonly journal: Journal;
  /** Number of characters that each turn read, in order. */
  readonly turns: number[];
  /** Runs between the turns, like the work of others. */
  meanwhile: () => void;
  get(path: string): Promise<Response>;
}

/** A large session; its clock's pauses pass at once and mark the ends of turns. */
async function surface(long: LongSession, fill: (journal: Journal) => void = () => undefined): Promise<Surface> {
  const sql = openNodeSql();
  newJournal(sql).variables.set('x', 1);
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
    clock: new VirtualClock(),
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

describe('[X2] a long session is read in several turns', () => {
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
    // A page that is read completely, in addition to the slice.
    expect(Math.max(...turns)).toBeLessThan(2 * limits.sliceChars);
    expect(turns.length).toBeGreaterThan(least / limits.sliceChars);
  });

  test('/state', async () => {
    const value = JSON.stringify('x'.repeat(limits.variableBytes - 10));
    const { get, turns } = await surface({ ...LARGE, runs: 1 }, (journal) => {
      for (let n = 0; n < 15; n += 1) journal.variables.set(`v${n}`, JSON.parse(value) as string);
    });
    const { variables } = (await (await get('/state')).json()) as { variables: Record<string, unknown> };
    expect(Object.keys(variables)).toHaveLength(16);
    expect(variables['v14']).toBe(JSON.parse(value));
    expect(turns.length).toBeGreaterThan(7);
  });

  test('skipping events of other runs takes several turns too', async () => {
    const { get, turns, sql } = await surface({ runs: 20, actions: 1_000, output: '1' });
    // An action of the first run has not ended: the rest of the journal is searched for its end.
    sql.exec(`DELETE FROM events WHERE seq = 4`);
    expect(((await (await get(`/runs/${RUN(1)}`)).json()) as { actions: unknown[] }).actions).toHaveLength(1_000);
    const other = await surface({ runs: 20, actions: 1_000, output: '1' });
    await (await other.get(`/runs/${RUN(2)}`)).text();
    // Ends of finished actions are not searched for.
    expect(other.turns.length).toBeLessThan(turns.length - 2);
  });

  test('a session that fits in a slice is read at once', async () => {
    const { get, turns } = await surface({ runs: 2, actions: 10, output: '"small"' });
    for (const path of ['/history', `/runs/${RUN(1)}`, '/artifacts', '/export', `/events?run=${RUN(2)}`, '/state']) {
      await (await get(path)).text();
    }
    expect(turns).toHaveLength(1);
  });

  test('an output of several megabytes is sent as stored, and its files are found', async () => {
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

describe('[J4] a view that is read in several turns is consistent', () => {
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

  test('a run that continues is exported in its initial state', async () => {
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

  test('a session deleted meanwhile is not found', async () => {
    const made = await surface({ ...LARGE, runs: 20 });
    made.meanwhile = () => void made.session.close('deleted');
    const response = await made.get('/history');
    expect([response.status, await response.json()]).toMatchObject([404, { code: 'unknown_session' }]);
  });
});

describe('values read for requests', () => {
  const head = (run: number): { runId: string; iteration: number; at: number; actionId: string } => ({
    runId: RUN(run),
    iteration: 1,
    at: 5,
    actionId: 'a',
  });
  const readingOf = (journal: Journal): SessionReading =>
    new SessionReading({
      journal,
      record: { ...SESSION_RECORD, owner: 'key1' },
      files: { read: async (sha256) => journal.blobs.get(sha256), hold: () => () => undefined },
      share: new ThreadShare(new FairQueue(instantClock()), () => null),
      isGone: () => false,
    });
  const queued = (journal: Journal, run: number, type: 'tool' | 'relic', parameters: JsonObject = {}): void =>
    void journal.append({
      ...head(run),
      type: 'action_queued',
      data: anyData({ type, mode: 'async', parameters }) as never,
    });
  const completed = (journal: Journal, run: number, output: Json): number =>
    journal.append({
      ...head(run),
      actionName: 'echo',
      type: 'action_completed',
      data: { output, ms: 1, attempt: 1 },
    }).seq;

  test('[R6] whether a run has called a relic so far', async () => {
    const journal = newJournal(openNodeSql());
    const [tools, relics] = [journal.runs.create({}, 1, 'running'), journal.runs.create({}, 2, 'running')];
    const before = readingOf(journal);
    queued(journal, 1, 'tool', { of: { type: 'relic' } });
    queued(journal, 2, 'relic');
    const reading = readingOf(journal);
    expect([await reading.calledRelic(tools), await reading.calledRelic(relics)]).toEqual([false, true]);
    expect(await before.calledRelic(relics)).toBe(false);
    // Events of one turn share a row.
    const mixed = journal.runs.create({}, 3, 'running');
    for (const type of ['tool', 'relic', 'tool'] as const) queued(journal, 3, type);
    expect(await readingOf(journal).calledRelic(mixed)).toBe(true);
  });

  test('[M6] the outputs of a workflow, and the number of its actions, including those of the runtime', async () => {
    const journal = newJournal(openNodeSql());
    const run = journal.runs.create({}, 1, 'running');
    queued(journal, 1, 'tool');
    completed(journal, 1, 'a step');
    const data = { output: { n: 1 }, ms: 1, attempt: 1 };
    expect(await readingOf(journal).outcome(run)).toMatchObject({ actions: 1, outputs: null });
    journal.append({ ...head(1), actionId: OUTPUTS, type: 'action_completed', data });
    expect(await readingOf(journal).outcome(run)).toMatchObject({
      actions: 2,
      outputs: { n: 1 },
      response: '',
      error: null,
    });
  });

  test('[H7] the answer of an unfinished run is its latest response', async () => {
    const journal = newJournal(openNodeSql());
    const run = journal.runs.create({}, 1, 'running');
    for (const content of ['first', 'second']) {
      const data = { content, final: false, segment: 1 };
      journal.append({ ...head(1), type: 'response_completed', data });
    }
    expect(await readingOf(journal).answer(run)).toBe('second');
    const usage = { prompt_tokens: 0, completion_tokens: 0, cached_tokens: 0, model_calls: 0, estimated: false };
    const data = { response: 'the answer', iterations: 1, usage };
    journal.append({ runId: RUN(1), iteration: 1, at: 6, type: 'agent_completed', data });
    journal.runs.end(1, 'completed', 6, false);
    const ended = readingOf(journal);
    expect(await ended.answer(journal.runs.require(1))).toBe('the answer');
  });

  test('[J8] events after the wait for an approval belong to the run', async () => {
    const journal = newJournal(openNodeSql());
    journal.runs.create({}, 1, 'running');
    queued(journal, 1, 'tool');
    journal.runs.end(1, 'waiting', 2, true);
    completed(journal, 1, 'approved');
    // More events than one slice has.
    for (let n = 0; n < limits.pageRows; n += 1) {
      journal.append({ runId: RUN(1), iteration: 1, at: 3, type: 'warning', data: { code: 'w', message: 'm' } });
    }
    const data = { content: 'the answer', final: true, segment: 1 };
    journal.append({ ...head(1), type: 'response_completed', data });
    const reading = readingOf(journal);
    const run = journal.runs.require(1);
    expect(await reading.answer(run)).toBe('the answer');
    expect(await reading.outcome(run)).toMatchObject({ response: 'the answer', actions: 1 });
  });

  test('[J6] a page of artifacts has a maximum number, and the next page begins after it', async () => {
    const journal = newJournal(openNodeSql());
    journal.runs.create({}, 1, 'running');
    const seqs = Array.from({ length: limits.pageRows + 2 }, (_, n) =>
      completed(journal, 1, { files: [{ name: `${n}.txt`, text: 'x' }] }),
    );
    const reading = readingOf(journal);
    const first = await reading.artifacts(0);
    expect(first.artifacts).toHaveLength(limits.pageRows);
    expect(first.next).toBe(seqs[limits.pageRows - 1]);
    const rest = await reading.artifacts(first.next ?? 0);
    expect(rest).toMatchObject({ artifacts: [{ name: '100.txt' }, { name: '101.txt' }], next: null });
    // The last page has no next one.
    expect((await reading.artifacts(seqs[1] ?? 0)).next).toBeNull();
  });

  test('[J6] a page of large artifacts is shorter', async () => {
    const journal = newJournal(openNodeSql());
    journal.runs.create({}, 1, 'running');
    const half = 'x'.repeat(limits.artifactPageBytes / 2);
    const seqs = [half, half, 'y'.repeat(limits.artifactBytes + 1), half].map((output) =>
      completed(journal, 1, output),
    );
    const reading = readingOf(journal);
    const first = await reading.artifacts(0);
    expect(first.artifacts.map(({ id }) => id)).toEqual(seqs.slice(0, 3).map((seq) => `art_${seq}`));
    expect(first.next).toBe(seqs[2]);
    expect(await reading.artifacts(first.next ?? 0)).toMatchObject({
      artifacts: [{ id: `art_${seqs[3]}` }],
      next: null,
    });
  });

  test('an unknown artifact is refused with its id, which is cut', async () => {
    const journal = newJournal(openNodeSql());
    journal.runs.create({}, 1, 'running');
    const seq = completed(journal, 1, { files: [{ name: 'a.txt', text: 'x' }] });
    const reading = readingOf(journal);
    const found = await reading.artifact(`art_${seq}_1`);
    expect(found).toMatchObject({ id: `art_${seq}_1`, name: 'a.txt' });
    expect(new TextDecoder().decode(found.bytes)).toBe('x');
    const long = 'z'.repeat(limits.excerptChars + 1);
    for (const [id, named] of [
      [`art_${seq}_2`, `art_${seq}_2`],
      ['art_99_1', 'art_99_1'],
      [long, long.slice(0, limits.excerptChars)],
    ] as const) {
      await expect(reading.artifact(id)).rejects.toMatchObject({
        code: 'unknown_artifact',
        message: `This session has no artifact "${named}"`,
      });
    }
  });

  test('[X2] an export has every line of the session, without its owner', async () => {
    const journal = newJournal(openNodeSql());
    journal.runs.create({ content: 'hi' }, 1, 'running');
    const seq = completed(journal, 1, 7);
    await journal.sync();
    journal.variables.set('x', 1);
    journal.variables.set('y', ['z']);
    const { owner: _owner, ...session } = SESSION_RECORD;
    const reading = readingOf(journal);
    const lines = (await textOf(reading.export(new SessionVariables(journal).snapshot()))).split('\n');
    expect(lines.map((line) => (line === '' ? null : (JSON.parse(line) as unknown)))).toEqual([
      { session },
      { run: { run_id: RUN(1), status: 'running', started_at: 1, ended_at: null, input: { content: 'hi' } } },
      expect.objectContaining({ seq, type: 'action_completed', data: { output: 7, ms: 1, attempt: 1 } }),
      { variables: { x: 1, y: ['z'] } },
      null,
    ]);
    expect(await textOf(reading.state(new SessionVariables(journal).snapshot()))).toBe(
      `{"session_id":"${SESSION_RECORD.session_id}","variables":{"x":1,"y":["z"]},"state":{"x":1,"y":["z"]}}`,
    );
  });

  test('a list is one document between the other members', async () => {
    const journal = newJournal(openNodeSql());
    const text = await textOf(readingOf(journal).list({ a: 1 }, 'items', [{ n: 1 }, { n: 2 }], { next: null }));
    expect(text).toBe('{"a":1,"items":[{"n":1},{"n":2}],"next":null}');
  });
});
