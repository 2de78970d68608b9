import { describe, expect, test } from 'vitest';
import { graphOf, renderGraph } from '../../../src/catalog/store/graph.ts';
import { loadManifests } from '../../../src/catalog/load.ts';
import { fromPinned, toPinned } from '../../../src/catalog/store/pinned.ts';
import { ManifestStore } from '../../../src/catalog/store/store.ts';
import type { RevisionOf } from '../../../src/catalog/store/store.ts';
import { limits } from '../../../src/domain/limits.ts';
import { failingWrites } from '../../support/failing-writes.ts';
import { openNodeSql } from '../../support/node-sql.ts';

const head = (kind: string, name: string, version = '1'): string =>
  `kind: ${kind}\nversion: ${version}\nname: ${name}\nsummary: Something\n`;
const tool = (name: string, version?: string): string =>
  `${head('Tool', name, version)}implementation: {type: builtin, entrypoint: echo}\n`;
const agent = (name: string, tools: string, version?: string): string =>
  `${head('Agent', name, version)}persona: x\nimport: {tools: [${tools}]}\n`;

const { catalog: common } = loadManifests([{ path: 'c.yaml', text: tool('common') }]);
const open = (sql = openNodeSql()): ManifestStore => new ManifestStore(sql, common, { 'tool/common': tool('common') });
const codeOf = async (work: () => unknown): Promise<string> => {
  try {
    await work();
  } catch (fault) {
    return (fault as { code: string }).code;
  }
  return 'none';
};

describe('[M4] the store', () => {
  test('manifests and their versions survive a restart', async () => {
    const sql = openNodeSql();
    const store = open(sql);
    await store.put({ kind: 'tool', name: 't' }, tool('t'), 1);
    await store.put({ kind: 'agent', name: 'a' }, agent('a', 't, common'), 2);
    await store.put({ kind: 'tool', name: 't' }, tool('t', '2'), 3);
    const again = open(sql);
    expect([...(again.agent('a')?.tools.keys() ?? [])]).toEqual(['t', 'common']);
    expect(again.get({ kind: 'tool', name: 't' })).toMatchObject({ version: '2', revision: 2, updatedAt: 3 });
    expect(again.get({ kind: 'tool', name: 't' }, { version: '1' })).toMatchObject({ revision: 1, source: tool('t') });
    expect(again.list('tool').map(({ name, common: shared }) => [name, shared])).toEqual([
      ['common', true],
      ['t', false],
    ]);
  });

  test('a change is stored with what follows from it, or not at all, whichever statement fails', async () => {
    const ref = { kind: 'tool', name: 't' } as const;
    const opened = (failing: number): { readonly store: ManifestStore; readonly restarted: () => ManifestStore } => {
      const sql = openNodeSql();
      const { sql: faulty, failAt } = failingWrites(sql);
      const followed = (manifests: readonly RevisionOf[]): void => {
        expect(manifests.map(({ name, revision }) => [name, revision])).toEqual([
          ['common', null],
          ['t', 1],
        ]);
        faulty.exec(`INSERT INTO followed VALUES (1)`);
      };
      sql.exec(`CREATE TABLE followed (n INTEGER)`);
      const store = new ManifestStore(faulty, common, {}, undefined, undefined, undefined, undefined, followed);
      failAt(failing);
      return { store, restarted: () => open(sql) };
    };
    let failed = 0;
    for (let nth = 1; nth < 20; nth += 1) {
      const { store, restarted } = opened(nth);
      const code = await store.put(ref, tool('t'), 1).then(
        () => 'stored',
        (fault: unknown) => String(fault),
      );
      if (code === 'stored') break;
      failed += 1;
      expect(code).toContain('full');
      for (const one of [store, restarted()]) expect(one.list('tool').map(({ name }) => name)).toEqual(['common']);
      await store.put(ref, tool('t'), 1);
      expect(store.get(ref)).toMatchObject({ revision: 1 });
    }
    // The file, the version, the current one, and what follows.
    expect(failed).toBeGreaterThan(3);
  });

  test('uploading the same text again creates no version; the oldest versions are dropped at the limit', async () => {
    const store = open();
    const ref = { kind: 'tool', name: 't' } as const;
    for (let turn = 0; turn < 3; turn += 1) await store.put(ref, tool('t'), turn);
    expect(store.get(ref)).toMatchObject({ revision: 1, updatedAt: 0 });
    for (let turn = 2; turn < limits.manifestVersions + 5; turn += 1)
      await store.put(ref, tool('t', String(turn)), turn);
    expect(store.get(ref).versions).toHaveLength(limits.manifestVersions);
    expect(await codeOf(() => store.get(ref, { revision: 1 }))).toBe('unknown_manifest');
  });

  test('an upload stores the files that load; a file that would remove a loaded definition stays unchanged', async () => {
    const store = open();
    await store.upload(
      [
        { path: 'both.yaml', text: `${tool('one')}---\n${tool('two')}` },
        { path: 'a.yaml', text: agent('a', 'one, two') },
      ],
      1,
    );
    const report = await store.upload(
      [
        { path: 'both.yaml', text: `${tool('one', '2')}---\n${tool('two').replace('echo', 'ecco')}` },
        { path: 'new.yaml', text: tool('three') },
      ],
      2,
    );
    expect(report.problems.map(({ file, line, field }) => `${file}:${line} ${field}`)).toEqual([
      'both.yaml:11 implementation.entrypoint',
    ]);
    expect(report.manifests.map(({ name }) => name)).toEqual(['three']);
    expect(store.get({ kind: 'tool', name: 'one' })).toMatchObject({ version: '1' });
    expect([...(store.agent('a')?.tools.keys() ?? [])]).toEqual(['one', 'two']);
  });

  test('replace makes a folder the whole catalogue; a single error leaves the catalogue unchanged', async () => {
    const store = open();
    await store.put({ kind: 'tool', name: 'old' }, tool('old'), 1);
    await store.put({ kind: 'agent', name: 'stays' }, agent('stays', 'old'), 2);
    const script = `${head('Tool', 'new')}implementation: {type: script, runtime: python3, entrypoint: ./new/main.py}\n`;
    const folder = [
      { path: 'agents/stays.yaml', text: agent('stays', '../tools/new.yaml, common') },
      { path: 'tools/new.yaml', text: script },
      { path: 'tools/new/main.py', text: 'print(1)' },
      { path: 'readme.txt', text: 'hello' },
    ];
    const broken = [...folder, { path: 'tools/bad.yaml', text: head('Tool', 'bad') }];
    expect(await codeOf(() => store.replace(broken, 3))).toBe('invalid_manifest');
    expect(await codeOf(() => store.replace(folder.slice(0, 2), 3))).toBe('invalid_manifest');
    expect(store.list(null).flatMap(({ name, common: shared }) => (shared ? [] : [name]))).toEqual(['stays', 'old']);

    const { manifests, removed, problems } = await store.replace(folder, 4);
    expect([removed, problems]).toEqual([[{ kind: 'tool', name: 'old' }], []]);
    expect(manifests.map(({ name, revision }) => [name, revision])).toEqual([
      ['stays', 2],
      ['new', 1],
    ]);
    expect(store.agent('stays')?.tools.get('new')?.implementation).toMatchObject({ source: 'print(1)' });
    expect(await codeOf(() => store.get({ kind: 'tool', name: 'old' }))).toBe('unknown_manifest');
    expect(store.get({ kind: 'tool', name: 'old' }, { version: '1' })).toMatchObject({ source: tool('old') });
    expect(await store.replace(folder, 5)).toMatchObject({
      removed: [],
      manifests: [{ revision: 2 }, { revision: 1 }],
    });
    expect((await store.replace([], 6)).removed).toHaveLength(2);
    expect(store.list(null).map(({ name }) => name)).toEqual(['common']);
  });

  test('validate reports on a folder without storing it', async () => {
    const report = await open().validate([{ path: 'a.yaml', text: tool('mine') }]);
    expect(report.manifests).toMatchObject([{ name: 'mine', common: false, revision: null }]);
  });

  test('one definition of a multi-document file can be removed, unless it is imported', async () => {
    const store = open();
    await store.upload([{ path: 'both.yaml', text: `${tool('one')}---\n${tool('two')}` }], 1);
    await store.put({ kind: 'agent', name: 'a' }, agent('a', 'two'), 2);
    await store.remove({ kind: 'tool', name: 'one' }, 3);
    expect(store.list('tool').map(({ name }) => name)).toEqual(['common', 'two']);
    expect(await codeOf(() => store.remove({ kind: 'tool', name: 'two' }, 4))).toBe('manifest_in_use');
    expect(await codeOf(() => store.remove({ kind: 'tool', name: 'one' }, 4))).toBe('unknown_manifest');
    expect(await codeOf(() => store.remove({ kind: 'tool', name: 'common' }, 4))).toBe('manifest_read_only');
  });

  test('tools with the same name in two folders stay with their importers after a restart', async () => {
    const sql = openNodeSql();
    await open(sql).upload(
      [
        { path: 'x/a.yaml', text: agent('x', 'look') },
        { path: 'x/t.yaml', text: tool('look') },
        { path: 'y/a.yaml', text: agent('y', 'look') },
        { path: 'y/t.yaml', text: tool('look', '7') },
      ],
      1,
    );
    const store = open(sql);
    expect(store.agent('x')?.tools.get('look')?.version).toBe('1');
    expect(store.agent('y')?.tools.get('look')?.version).toBe('7');
  });

  test('too many files or too large a definition are refused without a change', async () => {
    const store = open();
    const many = Array.from({ length: limits.catalogFiles + 1 }, (_, index) => ({ path: `${index}.txt`, text: 'x' }));
    expect(await codeOf(() => store.upload(many, 1))).toBe('invalid_manifest');
    const script = 'x'.repeat(limits.definitionChars);
    const large = `${head('Tool', 'large')}implementation: {type: script, runtime: shell, script: "${script}"}\n`;
    expect(await codeOf(() => store.put({ kind: 'tool', name: 'large' }, large, 1))).toBe('invalid_manifest');
    expect(store.list('tool').map(({ name }) => name)).toEqual(['common']);
  });
});

test('[M4] the pinned copy of a run restores the agent and everything that it imports', async () => {
  const store = open();
  await store.put({ kind: 'tool', name: 't' }, tool('t'), 1);
  await store.put({ kind: 'agent', name: 'a' }, agent('a', 't'), 1);
  const resolved = store.agent('a');
  if (resolved === null) throw new Error('there is no agent');
  expect(fromPinned(toPinned(resolved))).toEqual(resolved);
});

test('[M4] a drawn graph stops at a cycle, and includes cycles that nothing else imports', async () => {
  const { catalog } = loadManifests([
    { path: 'a.yaml', text: `${head('Agent', 'a')}persona: x\nimport: {agents: [b]}\n` },
    { path: 'b.yaml', text: `${head('Agent', 'b')}persona: x\nimport: {agents: [a], tools: [t]}\n` },
    {
      path: 'c.yaml',
      text: `${head('Agent', 'c')}persona: x\nimport: {tools: [t]}\ncontext_feeds: [{id: f, type: tool, source: {name: t}}]\n`,
    },
    { path: 't.yaml', text: tool('t') },
  ]);
  expect(renderGraph(graphOf(catalog.data))).toBe(
    ['agent/c 1', '└─ tool/t (feed)', 'agent/a 1', '└─ agent/b', '   ├─ tool/t', '   └─ agent/a …', ''].join('\n'),
  );
});

test('[M4] a drawn graph has a maximum number of lines and levels for any imports', () => {
  const names = Array.from({ length: 105 }, (_, index) => `a${String(index).padStart(3, '0')}`);
  const files = names.map((name, place) => ({
    path: `${name}.yaml`,
    // each agent imports the next one first: a long chain with the remaining imports at every level
    text: `${head('Agent', name)}persona: x\nimport: {agents: [${names.slice(place + 1).join(', ')}]}\n`,
  }));
  const graph = graphOf(loadManifests(files).catalog.data);
  expect(graph.edges).toHaveLength((105 * 104) / 2);
  const lines = renderGraph(graph).trimEnd().split('\n');
  expect(lines).toHaveLength(limits.graphLines + 1);
  expect(lines.at(-1)).toMatch(/^… and \d+ more lines$/);
  expect(Math.max(...lines.map((line) => line.length))).toBeLessThan(3 * limits.graphDepth + 40);
});
