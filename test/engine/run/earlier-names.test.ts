/** Names of earlier runs (P12, L5). */
import { splitRows } from '../../support/event-sql.ts';
import { describe, expect, test } from 'vitest';
import type { ActionOutcome } from '../../../src/domain/action.ts';
import type { Json, JsonObject } from '../../../src/domain/json.ts';
import { limits } from '../../../src/domain/limits.ts';
import type { ActionCall } from '../../../src/executors/executor.ts';
import { Journal } from '../../../src/journal/journal.ts';
import { eventsOf } from '../../support/events.ts';
import { runText, sessionKit, settle } from '../../support/session-kit.ts';
import type { KitOptions, SessionKit } from '../../support/session-kit.ts';

const ACTION = (id: string, parameters: object): string =>
  `<action type="tool" mode="async" id="${id}">${JSON.stringify({ name: 'echo', parameters })}</action>`;

test('[P12] the names of earlier runs are read once, for any number of references', async () => {
  const kit = await sessionKit({ executors: { tool: async ({ action }) => ({ ok: true, output: action.id }) } });
  await runText(kit, ACTION('a', {}), ACTION('b', {}));
  const { exec } = kit.sql;
  let scans = 0;
  kit.sql.exec = (text, ...parameters) => {
    if (text.includes('output_key')) scans += 1;
    return exec(text, ...parameters);
  };
  const unknown = Array.from({ length: 3_000 }, (_, at) => `$n${at}`).join(' ');
  const { response } = await runText(kit, `<response final="true">$a $b ${unknown}</response>`);
  expect(response).toBe(`a b ${unknown}`);
  expect(scans).toBe(1);
});

describe('[J2] [P12] after a crash, the names of an action keep their values', () => {
  /** A kit whose actions with an id that begins with `x` never end, and the parameters of each attempt. */
  function hanging(output: (id: string) => Json = (id) => id): {
    readonly options: KitOptions;
    readonly seen: [id: string, parameters: JsonObject][];
  } {
    const seen: [string, JsonObject][] = [];
    const tool = async ({ action, parameters }: ActionCall): Promise<ActionOutcome> => {
      if (!action.id.startsWith('x')) return { ok: true, output: output(action.id) };
      seen.push([action.id, parameters]);
      return await new Promise(() => undefined);
    };
    return { options: { executors: { tool } }, seen };
  }

  /** The next host on the same disk, after its recovery. */
  async function after(kit: SessionKit, options: KitOptions): Promise<SessionKit> {
    const next = await sessionKit({ ...options, sql: kit.sql, clock: kit.clock });
    await next.session.recover();
    await settle();
    return next;
  }

  test('the size of those that one run can reference is limited; what was left out stays left out on the next host', async () => {
    const part = limits.outcomeCacheBytes / 2 - 10_000;
    const { options, seen } = hanging((id) => ({ big: 'x'.repeat(part), id }));
    const kit = await sessionKit(options);
    for (const id of ['a', 'b', 'c']) await runText(kit, ACTION(id, {}));
    const { response } = await runText(kit, '<response final="true">$a.id $b.id $c.id $a.id $nothing</response>');
    expect(response).toBe('a b [c: left_out] a $nothing');
    // Another run can reference it: the limit applies to each run.
    expect(await runText(kit, '<response final="true">$c.id</response>')).toMatchObject({ response: 'c' });
    void runText(kit, ACTION('x', { text: '$a.id $b.id $c.id' }));
    await settle();
    await after(kit, options);
    expect(seen).toEqual([
      ['x', { text: 'a b [c: left_out]' }],
      ['x', { text: 'a b [c: left_out]' }],
    ]);
  });

  test('a variable keeps its value for every action started with it, and is stored once', async () => {
    const { options, seen } = hanging();
    const kit = await sessionKit({ ...options, variables: { v: 'old', w: { n: 1 } } });
    void runText(
      kit,
      ACTION('x1', { v: '$v', w: '$w.n' }),
      ACTION('x2', { v: '$v' }),
      ACTION('x3', { v: '$v', unknown: '$later' }),
    );
    await settle();
    const started = eventsOf(kit.events, 'action_started').map(({ seq }) => seq);
    const journal = new Journal(kit.sql);
    expect(started.map((seq) => journal.stateAt(seq)?.['names'])).toEqual([
      { v: { value: 'old' }, w: { value: { n: 1 } } },
      { v: { at: started[0] } },
      { v: { at: started[0] }, later: null },
    ]);
    splitRows(kit.sql);
    kit.sql.exec(`UPDATE variables SET value = '"new"'`);
    new Journal(kit.sql).variables.set('later', 'defined since');
    const first = seen.splice(0);
    expect(first).toEqual([
      ['x1', { v: 'old', w: 1 }],
      ['x2', { v: 'old' }],
      ['x3', { v: 'old', unknown: '$later' }],
    ]);
    await after(kit, options);
    expect(seen).toEqual(first);
  });

  test('the outcome of an earlier run keeps its value, even if a later one has its name', async () => {
    const { options, seen } = hanging();
    const kit = await sessionKit(options);
    await runText(kit, ACTION('a', {}));
    void runText(kit, ACTION('x', { v: '$a' }));
    await settle();
    const started = eventsOf(kit.events, 'action_started').find(({ action_id: id }) => id === 'x');
    const [completed] = eventsOf(kit.events, 'action_completed');
    expect(new Journal(kit.sql).stateAt(started?.seq ?? 0)?.['names']).toEqual({ a: { seq: completed?.seq } });
    new Journal(kit.sql).variables.set('a', 'a variable since');
    await after(kit, options);
    expect(seen).toEqual([
      ['x', { v: 'a' }],
      ['x', { v: 'a' }],
    ]);
  });

  test.each([
    ['without names', null, 'new'],
    ['without this name', '{"other":null}', 'new'],
    ['without a value', '{"v":{}}', 'new'],
    ['that points to itself', '{"v":{"at":SEQ}}', 'new'],
    ['with a value', '{"v":{"value":"recorded"}}', 'recorded'],
    ['of an unknown name', '{"v":null}', '$v'],
  ])('a record %s', async (_what, names, value) => {
    const { options, seen } = hanging();
    const kit = await sessionKit({ ...options, variables: { v: 'old' } });
    void runText(kit, ACTION('x', { v: '$v' }));
    await settle();
    const seq = eventsOf(kit.events, 'action_started')[0]?.seq ?? 0;
    kit.sql.exec(`UPDATE variables SET value = '"new"'`);
    kit.sql.exec(`UPDATE events SET state = json_remove(state, '$.names') WHERE seq = ?`, seq);
    if (names !== null) {
      const stored = names.replace('SEQ', String(seq));
      kit.sql.exec(`UPDATE events SET state = json_set(state, '$.names', json(?)) WHERE seq = ?`, stored, seq);
    }
    await after(kit, options);
    expect(seen.map(([, { v = null }]) => v)).toEqual(['old', value]);
  });

  test('an action without names has no record of them', async () => {
    const { options } = hanging();
    const kit = await sessionKit(options);
    void runText(kit, ACTION('x', { v: 1 }));
    await settle();
    const [started] = eventsOf(kit.events, 'action_started');
    expect(Object.keys(new Journal(kit.sql).stateAt(started?.seq ?? 0) ?? {})).not.toContain('names');
  });
});

test('[P12] a name refers to a variable, otherwise to the newest earlier outcome with this output key or id', async () => {
  const kit = await sessionKit({
    executors: { tool: async ({ parameters }) => ({ ok: true, output: parameters['v'] ?? null }) },
    variables: { mine: 'variable' },
  });
  const named = (id: string, v: string, key: string): string =>
    `<action type="tool" mode="async" id="${id}">${JSON.stringify({ name: 'echo', parameters: { v }, output_key: key })}</action>`;
  await runText(kit, named('one', 'first', 'k'), ACTION('mine', { v: 'outcome' }));
  await runText(kit, named('two', 'second', 'k'));
  const { response } = await runText(kit, '<response final="true">$k $one $two $mine</response>');
  expect(response).toBe('second first second variable');
});
