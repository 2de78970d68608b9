/** What killed Workers leave in the folder for temporary files is removed at the next start (H4). */
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { temporaryFolder } from '../../cli/system/temporary-folder.ts';

test('[H4] a start removes the folders of killed Workers, and keeps other files', () => {
  const stateDir = mkdtempSync(join(tmpdir(), 'cortex-temporary-'));
  onTestFinished(() => rmSync(stateDir, { recursive: true, force: true }));
  const { TMPDIR: folder, ...others } = temporaryFolder(stateDir);
  expect(others).toEqual({ TMP: folder, TEMP: folder });
  mkdirSync(join(folder, 'miniflare-0ea448c7'));
  writeFileSync(join(folder, 'miniflare-0ea448c7', 'left'), '');
  mkdirSync(join(folder, 'update-check'));

  expect(temporaryFolder(stateDir).TMPDIR).toBe(folder);
  expect(readdirSync(folder)).toEqual(['update-check']);
});
