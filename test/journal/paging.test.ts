/** Long sessions: pages, export, and the cost of opening one (J6). */
import { describe, expect, test } from 'vitest';
import { limits } from '../../src/domain/limits.ts';
import { Journal } from '../../src/journal/journal.ts';
import { VirtualClock } from '../../testing/virtual-clock.ts';
import type { SqlValue } from '../../src/domain/ports/storage.ts';
import { openNodeSql } from '../support/node-sql.ts';
import type { NodeSql } from '../support/node-sql.ts';
import { say, sessionKit } from '../support/session-kit.ts';
import type { SessionKit } from '../support/session-kit.ts';
import { checkedSession } from '../support/response-check.ts';
import { newJournal, SESSION_ID } from './journal-kit.ts';
import { fillActions } from '../support/long-session.ts';

interface Message {
  readonly role: string;
  readonly content: string;
  readonly run_id: string;
}

function surface(kit: SessionKit, destroy: () => Promise<void> = async () => undefined) {
  const fetch = checkedSession({ session: kit.session, clock: new VirtualClock(), destroy, log: () => undefined });
  return async (path: string, method = 'GET'): Promise<Response> =>
    await fetch(new Request(`http://session${path}`, { method }));
}

async function talk(messages: number, text = (n: number): string => `question ${n}`): Promise<SessionKit> {
  const kit = await sessionKit({
    script: Array.from({ length: messages }, (_, n) => `<response final="true">answer ${n + 1}</response>`),
  });
  for (let n = 1; n <= messages; n += 1) await say(kit, text(n));
  return kit;
}

test('[H1] history and runs have pages, newest page first, each in chronological order', async () => {
  const get = surface(await talk(7));
  const seen: string[][] = [];
  const runs: number[] = [];
  let next: string | null = '';
  while (next !== null) {
    const query = next === '' ? '?limit=3' : `?limit=3&before=${next}`;
    const page = (await (await get(`/history${query}`)).json()) as { messages: Message[]; next: string | null };
    const listed = (await (await get(`/runs${query}`)).json()) as { runs: unknown[]; next: string | null };
    seen.unshift(page.messages.map(({ content }) => content));
    runs.unshift(listed.runs.length);
    expect(listed.next).toBe(page.next);
    ({ next } = page);
  }
  expect(seen.flat()).toEqual(Array.from({ length: 7 }, (_, n) => [`question ${n + 1}`, `answer ${n + 1}`]).flat());
  expect(runs).toEqual([1, 3, 3]);
});

test.each(['limit=0', 'limit=101', 'limit=x', 'before=x', 'before=run_1'])('[H4] ?%s is refused', async (query) => {
  const get = surface(await talk(1));
  expect((await get(`/history?${query}`)).status).toBe(400);
  expect((await get(`/runs?${query}`)).status).toBe(400);
});

test('[T5] [H1] a cursor of another session, or of an earlier one with the same id, is refused', async () => {
  const kit = await talk(3);
  const get = surface(kit);
  const { next } = (await (await get('/runs?limit=1')).json()) as { next: string };
  const { session_id: id, incarnation = '' } = kit.session.record;
  const hex = id.slice('ses_'.length);
  const foreign = [
    `run_${'0'.repeat(32)}_${incarnation === '' ? '' : `${incarnation}_`}3`,
    `run_${hex}_${incarnation === '000000000000' ? '1' : '0'}${'0'.repeat(11)}_3`,
    `run_${hex}_${incarnation === '' ? '' : `${incarnation}_`}99`,
    ...(incarnation === '' ? [] : [`run_${hex}_3`]),
  ];
  for (const path of ['/runs', '/history']) {
    for (const before of foreign) {
      const refused = await get(`${path}?before=${before}`);
      expect([before, refused.status, await refused.json()]).toMatchObject([before, 404, { code: 'unknown_run' }]);
    }
    expect((await get(`${path}?before=${next}`)).status).toBe(200);
    // A number alone is a place in the session that is asked for.
    expect((await get(`${path}?before=2`)).status).toBe(200);
  }
});

test('[J6] a page of long messages ends at the size limit; the rest is on the next page', async () => {
  const long = 'x'.repeat(limits.messageBytes - 10);
  const get = surface(await talk(6, (n) => `${n}${long}`));
  const first = (await (await get('/history')).json()) as { messages: Message[]; next: string };
  expect(first.messages.length).toBeLessThan(12);
  const rest = (await (await get(`/history?before=${first.next}`)).json()) as { messages: Message[]; next: null };
  const all = [...rest.messages, ...first.messages].map(({ content }) => content.slice(0, 9));
  expect(all.filter((content) => content.startsWith('answer'))).toEqual([1, 2, 3, 4, 5, 6].map((n) => `answer ${n}`));
  expect(rest.next).toBeNull();
});

describe('[H1] export', () => {
  test('contains the session, its runs, every event as it was sent, and the variables', async () => {
    const kit = await talk(2);
    const lines = (await (await surface(kit)('/export')).text()).trimEnd().split('\n');
    expect(JSON.parse(lines[0] ?? '')).toMatchObject({ session: { session_id: SESSION_ID, agent: 'assistant' } });
    expect(lines[0]).not.toContain('owner');
    const journaled = kit.events.filter(({ seq }) => seq !== null).map((event) => JSON.stringify(event));
    expect(JSON.parse(lines[2] ?? '')).toMatchObject({
      run: { status: 'completed', input: { content: 'question 2' } },
    });
    expect(lines.slice(3, -1)).toEqual(journaled);
    expect(JSON.parse(lines.at(-1) ?? '')).toEqual({ variables: {} });
  });

  test('runs before a deletion that asks for it; a client that disconnects early deletes nothing', async () => {
    let destroyed = 0;
    const kit = await talk(40, (n) => `${n}${'x'.repeat(20_000)}`);
    const call = surface(kit, async () => void (destroyed += 1));
    const cut = (await call('/?export=1', 'DELETE')).body?.getReader();
    await cut?.read();
    await cut?.cancel();
    expect(destroyed).toBe(0);
    const whole = await call('/?export=1', 'DELETE');
    expect(whole.status).toBe(200);
    expect((await whole.text()).split('\n').length).toBeGreaterThan(200);
    expect(destroyed).toBe(1);
  });
});

/** The query plans of the statements that `body` runs. */
function plansOf(sql: NodeSql, body: (observed: NodeSql) => void): string[] {
  const queries = new Map<string, readonly SqlValue[]>();
  body({
    ...sql,
    exec: (text, ...parameters) => {
      if (/^\s*(?:SELECT|WITH)/i.test(text)) queries.set(text, parameters);
      return sql.exec(text, ...parameters);
    },
  });
  return [...queries].flatMap(([text, parameters]) =>
    sql.exec(`EXPLAIN QUERY PLAN ${text}`, ...parameters).map(({ detail }) => `${String(detail)}: ${text}`),
  );
}

test('[J6] opening a session with 3,000 events and reading its last page scans no table', () => {
  const sql = openNodeSql();
  newJournal(sql).variables.set('x', 1);
  fillActions(sql, 3_000);
  const plans = plansOf(sql, (observed) => {
    const journal = new Journal(observed);
    expect(journal.runs.open()).toEqual([]);
    expect(journal.lastSeq).toBe(3_000);
    expect(journal.history.durations()).toHaveLength(limits.durationsRead);
    expect(journal.page(2_900)).toHaveLength(100);
    expect(journal.runs.list(100)).toHaveLength(100);
    expect(journal.runs.byIdempotencyKey('none')).toBeNull();
  });
  expect(plans.length).toBeGreaterThan(5);
  expect(plans.filter((plan) => /^SCAN events\b(?! USING)/.test(plan))).toEqual([]);
});
