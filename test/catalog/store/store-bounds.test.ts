import { describe, expect, test } from 'vitest';
import { graphOf } from '../../../src/catalog/store/graph.ts';
import { loadManifests } from '../../../src/catalog/load.ts';
import { ManifestStore } from '../../../src/catalog/store/store.ts';
import { limits } from '../../../src/domain/limits.ts';
import type { SqlDatabase } from '../../../src/domain/ports/storage.ts';
import { agent as agentOf, head, tool } from '../../support/manifests.ts';
import { openNodeSql } from '../../support/node-sql.ts';

const many = <T>(count: number, item: (index: number) => T): T[] => Array.from({ length: count }, (_, at) => item(at));
const agent = (name: string, tools: string): string => agentOf(name, `import: {tools: [${tools}]}`);
const { catalog: common } = loadManifests([{ path: 'c.yaml', text: tool('common') }]);
const open = (sql: SqlDatabase = openNodeSql(), pause = (): Promise<void> => Promise.resolve()): ManifestStore =>
  new ManifestStore(sql, common, {}, () => null, pause);
const faultOf = async (work: () => unknown): Promise<unknown> => {
  try {
    await work();
  } catch (fault) {
    return fault;
  }
  return null;
};

describe('[M4] changes of a catalogue run in slices', () => {
  test('other tasks run while a folder is read, and see the previous catalogue', async () => {
    const seen: number[] = [];
    const store: ManifestStore = open(openNodeSql(), async () => {
      seen.push(store.list('tool').length);
      await Promise.resolve();
    });
    const wide = many(200, (at) => `k${at}: 1`).join(', ');
    await store.upload(
      many(20, (at) => ({ path: `t${at}.yaml`, text: tool(`t${at}`, `metadata: {${wide}}`) })),
      1,
    );
    expect(seen.length).toBeGreaterThan(3);
    expect(new Set(seen)).toEqual(new Set([1]));
    expect(store.list('tool')).toHaveLength(21);
    seen.length = 0;
    await store.put({ kind: 'tool', name: 'one' }, tool('one'), 2);
    // the other files are cached: checking them again costs an eighth
    expect(seen.length).toBeLessThan(3);
  });

  test('overlapping changes run one after the other, and none is lost', async () => {
    const store = open(openNodeSql(), () => Promise.resolve());
    await Promise.all(many(10, (at) => store.put({ kind: 'tool', name: `t${at}` }, tool(`t${at}`), at)));
    expect(store.list('tool')).toHaveLength(11);
  });

  test('changes past the queue limit are refused with catalog_busy', async () => {
    const store = open();
    const all = many(limits.catalogQueue + 5, () =>
      faultOf(() => store.validate([{ path: 'a.yaml', text: tool('a') }])),
    );
    const refused = (await Promise.all(all)).filter((fault) => fault !== null);
    expect(refused).toHaveLength(5);
    expect(refused[0]).toMatchObject({ code: 'catalog_busy' });
    expect(await faultOf(() => store.validate([]))).toBeNull();
  });

  test('a text that several manifests include counts once for each of them', async () => {
    const store = open();
    const agents = many(20, (at) => ({
      path: `a${at}.yaml`,
      text: `${head('Agent', `a${at}`)}persona: {file: p.md}\n`,
    }));
    const folder = [...agents, { path: 'p.md', text: 'x'.repeat(300_000) }];
    expect(await faultOf(() => store.upload(folder, 1))).toMatchObject({
      code: 'invalid_manifest',
      message: expect.stringContaining(`allowed: ${limits.catalogDefinitionChars}`) as string,
    });
    expect(store.list('agent')).toEqual([]);
  });

  test('a report has a maximum number of problems, and a faulty file is never stored', async () => {
    const store = open();
    const faulty = many(11, (at) => ({
      path: `f${at}.yaml`,
      text: many(40, (one) => `kind: Tool\nname: t${at}_${one}\n`).join('---\n'),
    }));
    const report = await store.upload([...faulty, { path: 'good.yaml', text: tool('good') }], 1);
    expect(report.problems).toHaveLength(limits.manifestIssues + 1);
    expect(report.problems.at(-1)?.message).toMatch(/^\d+ more are not listed$/);
    expect(store.list('tool').map(({ name }) => name)).toEqual(['common', 'good']);
  });
});

describe('[M4] an unusable stored definition is isolated', () => {
  const filled = async (): Promise<SqlDatabase> => {
    const sql = openNodeSql();
    const store = open(sql);
    await store.upload(
      [
        { path: 't.yaml', text: tool('t') },
        { path: 'u.yaml', text: tool('u') },
        { path: 'a.yaml', text: agent('a', 't') },
        { path: 'b.yaml', text: agent('b', 'u') },
      ],
      1,
    );
    return sql;
  };

  test.each([
    ['broken JSON', '{"kind":'],
    ['JSON of another kind', '[1, 2]'],
    ['another manifest', JSON.stringify(common.tool('common'))],
    ['a definition without required fields', '{"kind":"Agent","name":"a","version":"1","summary":"s"}'],
    ['binary garbage', '\u0000\ufffd\u0001'],
  ])('%s as a stored definition: it is reported, and all other definitions are served', async (_what, garbage) => {
    const sql = await filled();
    sql.exec(`UPDATE manifests SET definition = ? WHERE name = 'a'`, garbage);
    const store = open(sql);
    expect(store.agent('b')?.tools.has('u')).toBe(true);
    expect(graphOf(store.data).nodes.map(({ id }) => id)).toEqual(['agent/b', 'tool/common', 'tool/t', 'tool/u']);
    expect(store.list('agent')).toMatchObject([
      { name: 'b', revision: 1 },
      { name: 'a', revision: 1, common: false, error: expect.stringContaining('its stored definition') as string },
    ]);
    expect(store.get({ kind: 'agent', name: 'a' })).toMatchObject({
      definition: null,
      source: agent('a', 't'),
      error: expect.any(String) as string,
    });
    expect(await faultOf(() => store.agent('a'))).toMatchObject({ code: 'manifest_damaged' });
    // other changes continue to work, and the definition is rebuilt from its file
    await store.put({ kind: 'tool', name: 'v' }, tool('v'), 2);
    expect(store.agent('a')?.tools.has('t')).toBe(true);
    expect(open(sql).list('agent')).not.toContainEqual(expect.objectContaining({ error: expect.anything() as string }));
  });

  test('a stored file that no longer loads blocks no change, and its last valid version is served', async () => {
    const sql = await filled();
    sql.exec(`UPDATE files SET text = ? WHERE path = 't.yaml'`, '"\u0000garbage');
    const store = open(sql);
    await store.put({ kind: 'tool', name: 'v' }, tool('v'), 2);
    for (const seen of [store, open(sql)]) {
      expect(seen.agent('a')?.tools.has('t')).toBe(true);
      expect(seen.list('tool').map(({ name }) => name)).toEqual(['common', 't', 'u', 'v']);
    }
    expect(store.list('tool').find(({ name }) => name === 't')).toMatchObject({
      error: expect.stringMatching(/no longer loads; the stored version is still served: t\.yaml:1/) as string,
    });
    // a change that itself breaks a definition is still refused
    expect(await faultOf(() => store.remove({ kind: 'tool', name: 'u' }, 3))).toMatchObject({
      code: 'manifest_in_use',
    });
    await store.put({ kind: 'tool', name: 't' }, tool('t'), 4);
    expect(store.list(null).filter(({ error }) => error !== undefined)).toEqual([]);
  });

  test('rows without a manifest, of an unknown kind, and of an import are reported', async () => {
    const sql = await filled();
    sql.exec(`INSERT INTO current (kind, name, revision) VALUES ('tool', 'ghost', 9), ('nonsense', 'x', 1)`);
    sql.exec(`INSERT INTO scoped (importer, definition) VALUES ('agent/b', 'not json'), ('what', '{}')`);
    const store = open(sql);
    expect(store.list('tool').map(({ name, error }) => [name, error !== undefined])).toEqual([
      ['common', false],
      ['t', false],
      ['u', false],
      ['ghost', true],
    ]);
    expect(store.list('agent').map(({ name, error }) => [name, error !== undefined])).toEqual([
      ['a', false],
      ['b', true],
    ]);
    expect(store.agent('a')?.tools.has('t')).toBe(true);
    await store.put({ kind: 'tool', name: 'v' }, tool('v'), 2);
    expect(store.list(null).filter(({ error }) => error !== undefined)).toEqual([]);
  });
});
