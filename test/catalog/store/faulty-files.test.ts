/** Uploads of folders with faulty files: nothing is dropped without a message (M1, M2, M4). */
import { describe, expect, test } from 'vitest';
import { loadManifests } from '../../../src/catalog/load.ts';
import { ManifestStore } from '../../../src/catalog/store/store.ts';
import { agent as agentOf, filesOf, tool } from '../../support/manifests.ts';
import { openNodeSql } from '../../support/node-sql.ts';

const faulty = (name: string): string => tool(name, 'implementation: {type: builtin, entrypoint: no_such_builtin}');
const agent = (name: string, tools: string): string => agentOf(name, `import: {tools: [${tools}]}`);

const { catalog: bundled } = loadManifests([{ path: 'c.yaml', text: tool('common') }]);
const open = (sql = openNodeSql()): ManifestStore => new ManifestStore(sql, bundled, { 'tool/common': tool('common') });
const namesOf = (manifests: readonly { readonly name: string }[]): string[] => manifests.map(({ name }) => name).sort();

const FOLDER = {
  'agents/a/agent.yml': agent('a', './tools/bad/tool.yml, good'),
  'agents/a/tools/bad/tool.yml': faulty('bad'),
  'good.yml': tool('good'),
};

describe('[M4] an upload with a faulty file', () => {
  test('[M2] an agent that imports it by its path loads without it, with a warning, now and after later changes', async () => {
    const sql = openNodeSql();
    const report = await open(sql).upload(filesOf(FOLDER), 1);
    expect(namesOf(report.manifests)).toEqual(['a', 'good']);
    expect(report.problems.map(({ file }) => file)).toEqual(['agents/a/tools/bad/tool.yml']);
    expect(report.warnings.map(({ message }) => message)).toEqual(['the tool "bad" has errors and is omitted']);
    const again = open(sql);
    const later = await again.upload(filesOf({ 'other.yml': tool('other') }), 2);
    expect([later.problems, later.warnings]).toEqual([[], []]);
    expect([...(again.agent('a')?.tools.keys() ?? [])]).toEqual(['good']);
    expect(again.list('agent').find(({ name }) => name === 'a')?.error ?? null).toBeNull();
  });

  test('a later change never makes it load, and a file that is not YAML is omitted too', async () => {
    const store = open();
    const files = { 'b.yml': agent('b', 'late'), 'c.md': '---\nkind: Tool\nname: [c\n---\n', 'good.yml': tool('good') };
    const report = await store.upload(filesOf({ ...files, 'w.yml': agent('w', './c.md, good') }), 1);
    expect([namesOf(report.manifests), report.problems.map(({ file }) => file)]).toEqual([
      ['good', 'w'],
      ['b.yml', 'c.md'],
    ]);
    await store.put({ kind: 'tool', name: 'late' }, tool('late'), 2);
    expect(namesOf(store.list('agent'))).toEqual(['w']);
    expect([...(store.agent('w')?.tools.keys() ?? [])]).toEqual(['good']);
  });

  test('the corrected file is used by its importers', async () => {
    const store = open();
    await store.upload(filesOf(FOLDER), 1);
    await store.upload(filesOf({ 'agents/a/tools/bad/tool.yml': tool('bad') }), 2);
    expect([...(store.agent('a')?.tools.keys() ?? [])].sort()).toEqual(['bad', 'good']);
  });

  test('its name is free for another file', async () => {
    const store = open();
    await store.upload(filesOf({ 'bad.yml': faulty('bad'), 'a.yml': agent('a', './bad.yml') }), 1);
    const report = await store.put({ kind: 'tool', name: 'bad' }, tool('bad'), 2);
    expect([namesOf(report.manifests), report.warnings]).toEqual([['bad'], []]);
    expect(store.list('tool').some(({ name }) => name === 'bad')).toBe(true);
    expect([...(store.agent('a')?.tools.keys() ?? [])]).toEqual([]);
  });

  test('a stored file that loads keeps its version, and its importers use it', async () => {
    const store = open();
    await store.upload(filesOf({ 'good.yml': tool('good'), 'a.yml': agent('a', './good.yml') }), 1);
    const report = await store.upload(
      filesOf({ 'good.yml': faulty('good'), 'a.yml': agent('a', './good.yml, common') }),
      2,
    );
    expect(namesOf(report.manifests)).toEqual(['a']);
    expect([report.problems.length, report.warnings]).toEqual([1, []]);
    expect([...(store.agent('a')?.tools.keys() ?? [])].sort()).toEqual(['common', 'good']);
  });

  test('a file with the name of a bundled manifest is reported; importers of its path use the bundled one', async () => {
    const store = open();
    const report = await store.upload(filesOf({ 'own.yml': tool('common'), 'a.yml': agent('a', './own.yml') }), 1);
    expect(report.problems).toMatchObject([{ file: 'own.yml', code: 'manifest_read_only' }]);
    expect(namesOf(report.manifests)).toEqual(['a']);
    expect([...(store.agent('a')?.tools.keys() ?? [])]).toEqual(['common']);
    await store.put({ kind: 'tool', name: 'other' }, tool('other'), 2);
    expect([...(store.agent('a')?.tools.keys() ?? [])]).toEqual(['common']);
  });

  test('if nothing loads, nothing is stored', async () => {
    const sql = openNodeSql();
    const report = await open(sql).upload(filesOf({ 'bad.yml': faulty('bad') }), 1);
    expect([report.manifests, report.problems.length]).toEqual([[], 1]);
    expect(await open(sql).upload(filesOf({ 'a.yml': agent('a', './bad.yml') }), 2)).toMatchObject({
      manifests: [],
      problems: [{ message: expect.stringContaining('there is no file bad.yml') }],
    });
  });

  test('every manifest of the folder is stored or has a problem', async () => {
    const large = tool('large', `description: "${'x'.repeat(600_000)}"`);
    const files = { ...FOLDER, 'large.yml': large, 'b.yml': agent('b', './large.yml'), 'c.yml': agent('c', 'nowhere') };
    const report = await open().upload(filesOf(files), 1);
    const told = new Set(
      [...report.problems, ...report.manifests.map(({ name }) => ({ file: name }))].map(({ file }) => file),
    );
    for (const one of ['a', 'good', 'agents/a/tools/bad/tool.yml', 'large.yml', 'c.yml']) expect(told).toContain(one);
    expect(told.has('b') || told.has('b.yml')).toBe(true);
  });
});
