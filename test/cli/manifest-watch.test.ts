import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { loadManifests } from '../../src/catalog/load.ts';
import { readManifestFiles, ruleOfErrors } from '../../cli/project/manifest-files.ts';
import { watchManifests } from '../../cli/system/manifest-watch.ts';
import { eventually } from '../support/eventually.ts';

const TOOL =
  'kind: Tool\nversion: "1"\nname: t\nsummary: Something\nimplementation: {type: builtin, entrypoint: echo}\n';

test('a change is reported with the names of the manifests, without temporary files of editors', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'cortex-watch-'));
  mkdirSync(join(folder, 'tools'));
  const told: string[] = [];
  const stop = watchManifests(
    folder,
    () => ({ ...loadManifests(readManifestFiles(folder)), codeProblems: 0, faultyTools: [] }),
    (line) => told.push(line),
  );
  onTestFinished(() => {
    stop();
    rmSync(folder, { recursive: true, force: true });
  });
  const says = (line: string): Promise<void> => eventually(() => expect(told).toContain(line));
  // The way in which `sed -i` and many editors write.
  writeFileSync(join(folder, 'tools', 'sedA1b2'), TOOL);
  renameSync(join(folder, 'tools', 'sedA1b2'), join(folder, 'tools', 't.yaml'));
  await says(`${folder}/tools/t.yaml changed: 1 tool loaded; they count from the next message on`);
  writeFileSync(join(folder, 'tools', 't.yaml'), `${TOOL}effects: sometimes\n`);
  await says(
    `${folder}/tools/t.yaml changed: 1 error; a manifest with errors keeps its previous version, if it has one`,
  );
  rmSync(join(folder, 'tools', 't.yaml'));
  await says(`${folder}/tools/t.yaml changed: nothing loaded; they count from the next message on`);
});

test.each([
  [['m'], [], 'a manifest with errors keeps its previous version, if it has one'],
  [[], ['tools/a.ts'], 'tools/a.ts is not available until it is corrected'],
  [
    ['m'],
    ['tools/a.ts', 'tools/b.ts'],
    'a manifest with errors keeps its previous version, if it has one; tools/a.ts, tools/b.ts are not available until they are corrected',
  ],
])(
  '[K2] errors in the manifests %j and the code tools %j have their own consequences',
  (manifests, faultyTools, rule) => {
    const problems = [...manifests, ...faultyTools].map((file) => ({
      file,
      line: 1,
      column: 1,
      field: '',
      message: 'm',
    }));
    expect(ruleOfErrors({ problems, codeProblems: faultyTools.length, faultyTools })).toBe(rule);
  },
);
