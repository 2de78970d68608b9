/** The learned shapes of a namespace (L4). */
import { describe, expect, test } from 'vitest';
import { shapesIn, ShapeTable } from '../../../src/catalog/store/learned-shapes.ts';
import type { ListedManifest, ManifestKind } from '../../../src/domain/catalog.ts';
import { limits } from '../../../src/domain/limits.ts';
import { openNodeSql } from '../../support/node-sql.ts';

const listed = (kind: ManifestKind, name: string, revision: number | null): ListedManifest => ({
  kind,
  name,
  revision,
  version: '1',
  summary: '',
  tags: [],
  common: revision === null,
  updatedAt: null,
});

describe('[L4] the table of learned shapes', () => {
  const MANIFESTS = [listed('tool', 'a', 1), listed('relic', 'r', 2), listed('workflow', 'w', null)];

  test('returns what was learned about the asked targets', () => {
    const table = new ShapeTable(openNodeSql());
    table.learn(
      { 'tool/a': { id: 'number' }, 'relic/r.get': 'text', 'workflow/w': ['any'], 'tool/gone': 'text' },
      MANIFESTS,
    );
    expect(table.read([])).toBeNull();
    expect(table.read(['tool/gone', 'tool/other'])).toBeNull();
    expect(shapesIn(table.read(['relic/r.get', 'workflow/w', 'tool/a']))).toEqual({
      shapes: { 'tool/a': { id: 'number' }, 'relic/r.get': 'text', 'workflow/w': ['any'] },
    });
    table.learn({ 'relic/r.get': 'number' }, MANIFESTS);
    expect(table.read(['relic/r.get'])).toBe('{"relic/r.get":"number|text"}');
    expect(shapesIn(null)).toEqual({});
  });

  test('keeps what runs at the same time have learned, until the manifest changes', () => {
    const table = new ShapeTable(openNodeSql());
    table.learn({ 'tool/a': { id: 'number', 'at~': 'text' } }, MANIFESTS);
    table.learn({ 'tool/a': { 'id~': 'number', 'at~': 'text' } }, MANIFESTS);
    expect(table.read(['tool/a'])).toBe('{"tool/a":{"id":"number","at~":"text"}}');
    table.learn({ 'tool/a': { 'name~': 'text' } }, [listed('tool', 'a', 2)]);
    expect(table.read(['tool/a'])).toBe('{"tool/a":{"name~":"text"}}');
  });

  test('[X1] drops the shapes of earlier versions, whose keys were not confirmed', () => {
    const sql = openNodeSql();
    sql.exec(`CREATE TABLE learned_shapes (target TEXT PRIMARY KEY, revision INTEGER NOT NULL, shape TEXT NOT NULL)`);
    sql.exec(`INSERT INTO learned_shapes VALUES ('tool/a', 1, '{"john_doe":"text"}')`);
    expect(new ShapeTable(sql).read(['tool/a'])).toBeNull();
    expect(sql.exec(`SELECT name FROM sqlite_master WHERE name = 'learned_shapes'`)).toEqual([]);
  });

  test('forgets what was learned about an earlier revision', () => {
    const table = new ShapeTable(openNodeSql());
    table.learn({ 'tool/a': 'text', 'relic/r.get': 'text', 'workflow/w': 'text' }, MANIFESTS);
    table.follow(MANIFESTS);
    expect(Object.keys(shapesIn(table.read(['tool/a', 'relic/r.get', 'workflow/w'])).shapes ?? {})).toHaveLength(3);
    table.follow([listed('tool', 'a', 2), listed('workflow', 'w', null)]);
    expect(table.read(['tool/a', 'relic/r.get', 'workflow/w'])).toBe('{"workflow/w":"text"}');
  });

  test('is limited in rows, and in the size of each', () => {
    const table = new ShapeTable(openNodeSql());
    const names = Array.from({ length: limits.learnedShapes + 1 }, (_, index) => `tool/t${index}`);
    const manifests = names.map((target) => listed('tool', target.slice(5), 1));
    table.learn(Object.fromEntries(names.map((target) => [target, 'text'])), manifests);
    expect(Object.keys(shapesIn(table.read(names)).shapes ?? {})).toHaveLength(limits.learnedShapes);
    table.learn({ 'tool/t0': 'number', 'tool/t1': 'x'.repeat(limits.storedShapeChars) }, manifests);
    expect(table.read(['tool/t0', 'tool/t1'])).toBe('{"tool/t0":"number|text","tool/t1":"text"}');
  });
});
