/** Skills in the catalogue of a namespace: uploads, versions, removal, pins (C8, M4). */
import { describe, expect, test } from 'vitest';
import { loadManifests } from '../../../src/catalog/load.ts';
import { fromPinned, toPinned } from '../../../src/catalog/store/pinned.ts';
import { ManifestStore } from '../../../src/catalog/store/store.ts';
import { openNodeSql } from '../../support/node-sql.ts';

const skill = (name: string, body = 'Do it.'): string =>
  `---\nname: ${name}\ndescription: Does a thing.\n---\n${body}\n`;
const agent = (name: string, skills: string): string =>
  `kind: Agent\nversion: 1\nname: ${name}\nsummary: s\npersona: x\nimport: {skills: [${skills}]}\n`;
const BUNDLED = 'skills/common/SKILL.md';
const { catalog: common } = loadManifests([{ path: BUNDLED, text: skill('common') }]);
const open = (sql = openNodeSql()): ManifestStore =>
  new ManifestStore(sql, common, { 'skill/common': skill('common') });
const codeOf = async (work: Promise<unknown>): Promise<string> =>
  await work.then(
    () => 'none',
    (fault) => fault.code,
  );

/** A skill with a file, and an agent with both skills. */
const FOLDER = [
  { path: 'skills/a/SKILL.md', text: skill('a') },
  { path: 'skills/a/run.py', text: 'print(1)' },
  { path: 'x.yaml', text: agent('x', 'a, common') },
];

describe('[C8] the store', () => {
  test('keeps a skill with its files and versions over a restart', async () => {
    const sql = openNodeSql();
    await open(sql).upload(FOLDER, 1);
    await open(sql).upload([{ path: 'skills/a/run.py', text: 'print(2)' }], 2);
    const store = open(sql);
    expect(
      store.list('skill').map(({ name, revision, summary, common: shared }) => [name, revision, summary, shared]),
    ).toEqual([
      ['a', 2, 'Does a thing.', false],
      ['common', null, 'Does a thing.', true],
    ]);
    const found = store.agent('x')?.skills;
    expect(found?.get('a')?.files).toEqual([{ path: 'run.py', text: 'print(2)' }]);
    expect(found?.get('common')?.text).toBe('Do it.');
    expect(store.get({ kind: 'skill', name: 'a' })).toMatchObject({ source: skill('a'), file: 'skills/a/SKILL.md' });
    expect(store.get({ kind: 'skill', name: 'a' }, { revision: 1 }).definition).toMatchObject({
      files: [{ path: 'run.py', text: 'print(1)' }],
    });
  });

  test('stores one SKILL.md in a folder with its name, and keeps the files beside it', async () => {
    const store = open();
    await store.put({ kind: 'skill', name: 'b' }, skill('b'), 1);
    expect(store.get({ kind: 'skill', name: 'b' }).file).toBe('skills/b/SKILL.md');
    await store.upload(FOLDER, 2);
    await store.put({ kind: 'skill', name: 'a' }, skill('a', 'Better.'), 3);
    expect(store.agent('x')?.skills?.get('a')).toMatchObject({ text: 'Better.', files: [{ path: 'run.py' }] });
    expect(await codeOf(store.put({ kind: 'skill', name: 'c' }, skill('d'), 4))).toBe('invalid_manifest');
    expect(await codeOf(store.put({ kind: 'skill', name: '../e' }, skill('../e'), 4))).toBe('invalid_manifest');
    expect(await codeOf(store.put({ kind: 'skill', name: 'common' }, skill('common'), 4))).toBe('manifest_read_only');
  });

  test('removes the files of a skill with it, so that none becomes a manifest', async () => {
    const sql = openNodeSql();
    const store = open(sql);
    await store.upload(
      [
        { path: 's/SKILL.md', text: skill('s') },
        { path: 's/agents/y.yaml', text: agent('y', '') },
      ],
      1,
    );
    await store.upload(FOLDER, 2);
    expect(await codeOf(store.remove({ kind: 'skill', name: 'a' }, 3))).toBe('manifest_in_use');
    await store.remove({ kind: 'skill', name: 's' }, 3);
    await store.upload([{ path: 'z.yaml', text: agent('z', '') }], 4);
    expect(
      open(sql)
        .list(null)
        .map(({ kind, name }) => `${kind}/${name}`),
    ).toEqual(['agent/x', 'agent/z', 'skill/a', 'skill/common']);
  });

  test('stores nothing of a skill with issues', async () => {
    const store = open();
    const broken = [
      { path: 's/SKILL.md', text: '---\nname: s\n---\nx' },
      { path: 's/agents/y.yaml', text: agent('y', '') },
    ];
    expect(await store.upload(broken, 1)).toMatchObject({ manifests: [], problems: [{ field: 'description' }] });
    const { manifests } = await store.upload([...broken, { path: 'z.yaml', text: agent('z', '') }], 2);
    expect(manifests.map(({ name }) => name)).toEqual(['z']);
    expect(store.list('agent').map(({ name }) => name)).toEqual(['z']);
    await store.upload(FOLDER, 3);
    const worse = [
      { path: 'skills/a/SKILL.md', text: '---\nname: a\n---\nx' },
      { path: 'skills/a/run.py', text: 'bad' },
    ];
    await store.upload(worse, 4);
    expect(store.agent('x')?.skills?.get('a')?.files).toEqual([{ path: 'run.py', text: 'print(1)' }]);
  });
});

test('[C8] the pinned copy of a run restores its skills, and an older copy has none', async () => {
  const store = open();
  await store.upload(FOLDER, 1);
  const resolved = store.agent('x');
  if (resolved === null) throw new Error('there is no agent');
  const pinned = toPinned(resolved);
  expect(fromPinned(pinned)).toEqual(resolved);
  const { skills: _, ...older } = JSON.parse(pinned) as Record<string, unknown>;
  expect(fromPinned(JSON.stringify(older)).skills).toBeUndefined();
});
