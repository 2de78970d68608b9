/** Limits on the start rates of one tenant: periodic feeds, schedules and event workflows (F3, M6). */
import { Cron } from 'croner';
import { describe, expect, test, vi } from 'vitest';
import { loadManifests } from '../../../src/catalog/load.ts';
import type { LoadOptions } from '../../../src/catalog/load.ts';
import { cronIssue, leastGapSeconds } from '../../../src/catalog/check/cron.ts';
import { formatProblem } from '../../../src/catalog/check/problem.ts';
import { ManifestStore } from '../../../src/catalog/store/store.ts';
import { DEFAULT_INTERVALS } from '../../../src/domain/intervals.ts';
import { limits } from '../../../src/domain/limits.ts';
import type { SqlDatabase } from '../../../src/domain/ports/storage.ts';
import { openNodeSql } from '../../support/node-sql.ts';

interface File {
  readonly path: string;
  readonly text: string;
}

const head = (kind: string, name: string): string => `kind: ${kind}\nversion: 1\nname: ${name}\nsummary: s\n`;
const file = (name: string, text: string): File => ({ path: `${name}.yaml`, text });
const flow = (name: string, trigger: string): File =>
  file(name, `${head('Workflow', name)}trigger: ${trigger}\nsteps: [{name: a, type: llm}]\n`);
const scheduled = (name: string, cron = '0 3 * * *'): File => flow(name, `{type: scheduled, cron: "${cron}"}`);
const waiting = (name: string, event = 'order'): File => flow(name, `{type: event, event: ${event}}`);
const clock = (id: string, rest: string): string => `{id: ${id}, source: {type: internal, name: usage}, ${rest}}`;
const agent = (name: string, feeds: readonly string[]): File =>
  file(name, `${head('Agent', name)}persona: x\ncontext_feeds: [${feeds.join(', ')}]\n`);
const many = <T>(count: number, make: (at: number) => T): T[] => Array.from({ length: count }, (_, at) => make(at));
const named = (prefix: string, at: number): string => `${prefix}${String(at).padStart(4, '0')}`;

const { catalog: common } = loadManifests([waiting('shipped')]);
const FAST = { feedMinMs: 1_000, cronMinMs: 1_000 };

const problemsOf = (files: readonly File[], options: LoadOptions = {}): string[] =>
  loadManifests(files, options).problems.map(formatProblem);
const openStore = (sql: SqlDatabase = openNodeSql(), intervals = DEFAULT_INTERVALS): ManifestStore =>
  new ManifestStore(
    sql,
    common,
    {},
    () => null,
    () => Promise.resolve(),
    () => intervals,
  );

describe('[F3] periods of feeds', () => {
  test.each(['1', '1s', '4.9', '4999ms'])(
    '%s is raised at load, with a warning that names the limit and the setting',
    (interval) => {
      const loaded = loadManifests([agent('a', [clock('now', `type: periodic, interval: ${interval}`)])]);
      expect(loaded.problems).toEqual([]);
      expect(loaded.warnings.map(formatProblem)).toEqual([
        expect.stringContaining(
          `context_feeds[0].interval: must be at least 5 s (the setting FEED_MIN_SECONDS), found ${interval}, so 5 s is used`,
        ),
      ]);
      expect(loaded.catalog.agent('a')?.agent.feeds[0]?.intervalMs).toBe(5_000);
    },
  );

  test('an interval within the setting loads, and the default interval is at least the setting', () => {
    const warningsOf = (interval: number, feedMinMs: number): unknown[] =>
      loadManifests([agent('a', [clock('now', `type: periodic, interval: ${interval}`)])], {
        intervals: { ...DEFAULT_INTERVALS, feedMinMs },
      }).warnings.map(formatProblem);
    expect(warningsOf(5, 5_000)).toEqual([]);
    expect(warningsOf(2, 2_000)).toEqual([]);
    expect(warningsOf(2, 3_000)).toHaveLength(1);
    const byDefault = loadManifests([agent('a', [clock('now', 'type: periodic')])], {
      intervals: { ...DEFAULT_INTERVALS, feedMinMs: 90_000 },
    });
    expect(byDefault.catalog.agent('a')?.agent.feeds[0]?.intervalMs).toBe(90_000);
  });

  test('an agent can have eight periodic feeds, and any number of other feeds', () => {
    const periodic = many(limits.periodicFeeds, (at) => clock(`p${at}`, 'type: periodic, interval: 1m'));
    expect(problemsOf([agent('a', [...periodic, clock('other', 'type: on_demand')])])).toEqual([]);
    expect(problemsOf([agent('a', [...periodic, clock('more', 'type: periodic')])])).toEqual([
      expect.stringContaining('context_feeds[8].type: "more" is periodic feed number 9 (allowed for one agent: 8)'),
    ]);
  });
});

describe('[M6] the shortest time between two runs of a cron expression', () => {
  test.each([
    ['* * * * * *', 1],
    ['0,30 * * * * *', 30],
    ['59,0 * * * * *', 1],
    ['*/7 * * * * *', 4],
    ['0-1 * * * *', 60],
    ['59,0 0 * * * *', 59],
    ['59,0 59,0 * * * *', 1],
    ['0 59,0 * * * *', 60],
    ['0 59,0 */2 * * *', 3_540],
    ['0 */45 3 * * *', 2_700],
    ['10 0 * * *', Infinity],
    ['0,30 5 3 1 1 *', 30],
    ['0,1 0 0 29 2 *', 1],
    ['59 23,0 * * *', 82_800],
  ])('%s: %s s apart', (cron, seconds) => {
    expect(leastGapSeconds(cron, 60)).toBe(seconds);
  });

  test.each([
    ['0 0,23 * * *', 3_600],
    ['0 0,23 1 * *', 82_800],
    ['0 0,23 1,2 * *', 3_600],
    ['0 0,23 28,29 2 *', 3_600],
    ['0 0,23 1,31 * *', 3_600],
    ['0 0,23 * * 1,3,5', 82_800],
    ['0 0,23 * * 0,1', 3_600],
    ['0 0,23 L * *', 82_800],
    ['0 12 * * *', 86_400],
  ])('%s: %s s apart, including runs before and after midnight', (cron, seconds) => {
    expect(leastGapSeconds(cron, 90_000)).toBe(seconds);
  });

  test.each([
    ['* * * * * *', 1],
    ['0,30 * * * * *', 30],
    ['0,30 5 3 1 1 *', 30],
    ['59,0 0 * * * *', 59],
  ])('%s is refused at load, with the limit and the name of the setting', (cron, seconds) => {
    expect(problemsOf([scheduled('w', cron)])).toEqual([
      expect.stringContaining(
        `trigger.cron: "${cron}" has times only ${seconds} s apart (allowed: at least 60 s, the setting CRON_MIN_SECONDS)`,
      ),
    ]);
  });

  test.each(['* * * * *', '*/5 * * * * ', '30 * * * * *', '0 59,0 * * * *', '0 3 * * 1-5'])('%s loads', (cron) => {
    expect(problemsOf([scheduled('w', cron)])).toEqual([]);
  });

  test('an interval within the setting loads', () => {
    expect(problemsOf([scheduled('w', '* * * * * *')], { intervals: FAST })).toEqual([]);
    expect(problemsOf([scheduled('w', '0 0,23 * * *')], { intervals: { ...FAST, cronMinMs: 7_200_000 } })).toHaveLength(
      1,
    );
    expect(problemsOf([scheduled('w', '0 0,23 1 * *')], { intervals: { ...FAST, cronMinMs: 7_200_000 } })).toEqual([]);
  });

  test.each([
    '0 0 31 2,4,6,9,11 *',
    '0 0 29 2 +1#1',
    '0 0 29 2 +1#5',
    `${many(99, () => '0').join(',')} * * * * *`,
    '* * * * * *',
    '0 0,23 LW 1 *',
  ])('[X2] checking %s evaluates one time, and matches days of at most four years', (cron) => {
    const searches = vi.spyOn(Cron.prototype, 'nextRun');
    const matches = vi.spyOn(Cron.prototype, 'match');
    try {
      cronIssue(cron, 86_400_000);
      expect(searches).toHaveBeenCalledTimes(1);
      expect(matches.mock.calls.length).toBeLessThanOrEqual(4 * 365 + 2);
    } finally {
      searches.mockRestore();
      matches.mockRestore();
    }
  });
});

describe('[M6] workflows that a schedule or an event starts', () => {
  test('of 150 schedules, 100 load, and the others are refused by name', async () => {
    const files = many(150, (at) => scheduled(named('w', at)));
    const { problems, catalog } = loadManifests(files);
    expect(catalog.list('workflow')).toHaveLength(limits.schedules);
    expect(problems).toHaveLength(50);
    expect(formatProblem(problems[0] ?? expect.fail())).toBe(
      'w0100.yaml:5:10: trigger: "w0100" exceeds the maximum of 100 schedules in the catalogue: w0000, w0001, w0002, w0003, w0004, w0005, w0006, w0007, w0008, w0009 and 90 more',
    );
    const store = openStore();
    await expect(store.replace(files.slice(0, 101), 1)).rejects.toThrow(/"w0100" exceeds the maximum of 100 schedules/);
    await store.upload(files, 2);
    expect(store.data.workflows.filter(({ trigger }) => trigger.type === 'scheduled')).toHaveLength(100);
    const ref = { kind: 'workflow', name: 'extra' } as const;
    await expect(store.put(ref, scheduled('extra').text, 3)).rejects.toThrow(
      /"extra" exceeds the maximum of 100 schedules/,
    );
    await store.remove({ kind: 'workflow', name: 'w0007' }, 4);
    await store.put(ref, scheduled('extra').text, 5);
  });

  test('of 40 workflows for one event, 20 load, including the bundled ones', async () => {
    const files = many(40, (at) => waiting(named('w', at)));
    const { problems, catalog } = loadManifests(files, { bundled: common });
    expect(catalog.list('workflow')).toHaveLength(limits.eventWorkflows - 1);
    expect(problems).toHaveLength(21);
    expect(formatProblem(problems[0] ?? expect.fail())).toMatch(
      /^w0019\.yaml:5:\d+: trigger\.event: "w0019" exceeds the maximum of 20 workflows for the event "order": shipped, w0000, .* and 10 more$/,
    );
    expect(problemsOf(many(100, (at) => waiting(named('w', at), `event${at % 5}`)))).toEqual([]);
  });

  test('a workflow that becomes a schedule is the refused one, whatever its file path is', async () => {
    const store = openStore();
    const files = many(100, (at) => scheduled(named('w', at)));
    await store.upload([flow('a', '{type: manual}'), ...files], 1);
    await expect(store.put({ kind: 'workflow', name: 'a' }, scheduled('a').text, 2)).rejects.toThrow(
      /invalid|"a" exceeds the maximum of 100 schedules/,
    );
    expect(store.list('workflow').filter(({ error }) => error !== undefined)).toEqual([]);
  });
});

describe('[M4] definitions stored before the limits existed', () => {
  /** As an older version stored it: more schedules, and more frequent ones, than are accepted now. */
  async function older(): Promise<SqlDatabase> {
    const sql = openNodeSql();
    const store = openStore(sql, FAST);
    const feeds = many(limits.periodicFeeds, (at) => clock(`f${at}`, 'type: periodic, interval: 1'));
    await store.upload([agent('watcher', feeds), scheduled('often', '* * * * * *')], 1);
    await store.upload(
      [file('two', `${scheduled('b', '*/2 * * * * *').text}---\n${flow('c', '{type: manual}').text}`)],
      2,
    );
    return sql;
  }

  test('keep working when something else changes', async () => {
    const sql = await older();
    const store = openStore(sql);
    await store.put({ kind: 'workflow', name: 'other' }, flow('other', '{type: manual}').text, 3);
    // the rest of a file with several definitions
    await store.remove({ kind: 'workflow', name: 'c' }, 4);
    const report = await store.validate([scheduled('often', '* * * * * *')]);
    expect(report.problems).toEqual([]);
    for (const one of [store, openStore(sql)]) {
      expect(one.list(null).filter(({ error }) => error !== undefined)).toEqual([]);
      expect(one.workflow('often')?.workflow.trigger).toMatchObject({ cron: '* * * * * *' });
      expect(one.workflow('b')?.workflow.trigger).toMatchObject({ cron: '*/2 * * * * *' });
      expect(one.agent('watcher')?.agent.feeds[0]?.intervalMs).toBe(1_000);
    }
  });

  test('are refused when they are written again or renamed', async () => {
    const store = openStore(await older());
    const ref = { kind: 'workflow', name: 'often' } as const;
    await expect(store.put(ref, scheduled('often', '*/3 * * * * *').text, 3)).rejects.toThrow(/3 s apart/);
    await expect(
      store.put({ kind: 'workflow', name: 'again' }, scheduled('again', '* * * * * *').text, 3),
    ).rejects.toThrow(/1 s apart/);
    expect(store.workflow('often')?.workflow.trigger).toMatchObject({ cron: '* * * * * *' });
  });

  test('[X2] a refused workflow does not load with the next unrelated change', async () => {
    const store = openStore();
    const refused = scheduled('often', '* * * * * *');
    const text = `${flow('good', '{type: manual}').text}---\n${refused.text}`;
    await store.upload([file('both', text)], 1);
    await store.put({ kind: 'workflow', name: 'other' }, flow('other', '{type: manual}').text, 2);
    expect(store.data.workflows.map(({ name }) => name).toSorted()).toEqual(['good', 'other', 'shipped']);
  });
});
