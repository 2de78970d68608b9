import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { loadManifests } from '../../src/catalog/load.ts';
import { readManifestFiles } from '../../cli/project/manifest-files.ts';
import { watchManifests } from '../../cli/system/manifest-watch.ts';

const TOOL = 'kind: Tool\nversion: "1"\nname: t\nsummary: Something\nexecutor: echo\n';

test('a change is reported with the names of the manifests, without temporary files of editors', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'cortex-watch-'));
  mkdirSync(join(folder, 'tools'));
  const told: string[] = [];
  const stop = watchManifests(
    folder,
    () => loadManifests(readManifestFiles(folder)),
    (line) => told.push(line),
  );
  onTestFinished(() => {
    stop();
    rmSync(folder, { recursive: true, force: true });
  });
  const says = (line: string): Promise<void> => vi.waitFor(() => expect(told).toContain(line), { timeout: 60_000 });
  // The way in which `sed -i` and many editors write.
  writeFileSync(join(folder, 'tools', 'sedA1b2'), TOOL);
  renameSync(join(folder, 'tools', 'sedA1b2'), join(folder, 'tools', 't.yaml'));
  await says(`${folder}/tools/t.yaml changed: 1 tool loaded; they count from the next message on`);
  writeFileSync(join(folder, 'tools', 't.yaml'), `${TOOL}effects: sometimes\n`);
  await says(`${folder}/tools/t.yaml changed: 1 error, so what has errors keeps its previous version`);
  rmSync(join(folder, 'tools', 't.yaml'));
  await says(`${folder}/tools/t.yaml changed: nothing loaded; they count from the next message on`);
});
