/** What the directory lists about a session (C6). */
import { describe, expect, test } from 'vitest';
import { limits } from '../../../src/domain/limits.ts';
import { titleOf } from '../../../src/engine/session/session-listing.ts';
import { openNodeSql } from '../../support/node-sql.ts';
import { runText, say, sessionKit, settle } from '../../support/session-kit.ts';

describe('[C6] the entry of a session', () => {
  test('exists from the creation on, and follows its runs', async () => {
    const kit = await sessionKit();
    const { record } = kit.session;
    const { session_id, agent, user_id, created_at } = record;
    const names = { session_id, agent, user_id, created_at };
    const idle = { ...names, title: null, status: 'idle', updated_at: created_at, cost: null };
    expect(kit.session.directoryEntry).toEqual(idle);
    kit.clock.advance(1_000);
    const said = say(kit, 'How are\tyou?\nI am fine.');
    for (let turns = 0; turns < 50 && !kit.session.busy; turns += 1) await Promise.resolve();
    expect(kit.session.directoryEntry).toMatchObject({ status: 'running', title: 'How are you?' });
    await said;
    await kit.settled();
    const { ended_at: endedAt } = await said;
    expect(kit.session.directoryEntry).toEqual({ ...idle, title: 'How are you?', updated_at: endedAt });
    expect(kit.session.updatedAt).toBe(endedAt);
    await say(kit, 'Another question');
    expect(kit.session.directoryEntry?.title).toBe('How are you?');
  });

  test('has the title of the history that the session began with', async () => {
    const history = [
      { role: 'assistant', content: 'Welcome' },
      { role: 'user', content: 'From elsewhere' },
      { role: 'user', content: 'Later' },
    ] as const;
    const kit = await sessionKit({ history });
    expect(kit.session.directoryEntry?.title).toBe('From elsewhere');
    await say(kit, 'Hello');
    expect(kit.session.directoryEntry?.title).toBe('From elsewhere');
  });

  test('has the cost of all runs whose price is known', async () => {
    const usage = {
      promptTokens: 1_000_000,
      completionTokens: 0,
      cachedTokens: 0,
      estimated: false,
      model: 'scripted',
    };
    const stream = [
      { type: 'text', text: '<response final="true">ok</response>' },
      { type: 'usage', usage },
      { type: 'finish', reason: 'stop' },
    ] as const;
    const sql = openNodeSql();
    const prices = { scripted: { input: 2, output: 0, cachedInput: 0 } };
    const kit = await sessionKit({
      sql,
      script: [[...stream], [...stream]] as never,
      agent: (agent) => ({ ...agent, engine: { ...agent.engine, prices } }),
    });
    await say(kit, 'one');
    await say(kit, 'two');
    expect(kit.session.directoryEntry?.cost).toBe(4);
    const next = await sessionKit({ sql });
    expect(next.session.directoryEntry?.cost).toBe(4);
  });

  test('is null for what is not listed: executions, children, sessions of stateless clients, no session', async () => {
    for (const options of [
      { kind: 'execution' },
      { kind: 'child' },
      { ephemeral: true },
      { variables: null },
    ] as const) {
      expect((await sessionKit(options)).session.directoryEntry).toBeNull();
    }
  });

  test('is null while runs of an earlier host are not recovered', async () => {
    const lost = await sessionKit({ executors: { tool: () => new Promise(() => undefined) } });
    void runText(lost, '<action type="tool" id="a">{"name": "echo", "parameters": {}}</action>');
    await settle();
    const next = await sessionKit({ sql: lost.sql, clock: lost.clock });
    expect([next.session.isRecovering, next.session.directoryEntry]).toEqual([true, null]);
    await next.session.recover();
    expect(next.session.directoryEntry).toMatchObject({ status: 'running' });
    await next.session.cancel('the test ends');
  });
});

describe('[C6] a title', () => {
  const LONG = 'x'.repeat(limits.titleChars);
  test.each([
    ['  \n\n  Hello,\t  world \u00A0!  \r\nMore', 'Hello, world !'],
    ['', null],
    [' \n\t ', null],
    [`${LONG}y`, LONG],
    [`${LONG.slice(1)}😀`, LONG.slice(1)],
    [`${LONG.slice(2)}😀`, `${LONG.slice(2)}😀`],
    ['a\uD800b', 'a\uFFFDb'],
    [`${' '.repeat(100_000)}late`, 'late'],
  ])('of %j is %j', (content, title) => {
    expect(titleOf(content)).toBe(title);
  });

  test('of a message with files is its first text', () => {
    const image = { type: 'image', name: 'a.png', media_type: 'image/png', size: 1, sha256: 'a' } as const;
    expect(titleOf([image, { type: 'text', text: ' ' }, { type: 'text', text: 'Look' }])).toBe('Look');
    expect(titleOf([image])).toBeNull();
  });
});
