import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { FolderWatch } from '../../cli/system/folder-watch.ts';
import { eventually } from '../support/eventually.ts';

let above = '';
let root = '';
let watched: FolderWatch | null = null;
let calls: (readonly string[])[] = [];

beforeEach(() => {
  above = mkdtempSync(join(tmpdir(), 'cortex-folder-'));
  root = join(above, 'manifests');
  calls = [];
  put('a.yaml', '1');
  put('tools/t.yaml', '1');
});
afterEach(() => {
  watched?.close();
  rmSync(above, { recursive: true, force: true });
});

function put(path: string, text: string): void {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), text);
}

/** As `sed -i` and many editors write. */
function replace(path: string, text: string, temporary: string): void {
  put(temporary, text);
  renameSync(join(root, temporary), join(root, path));
}

function start(): void {
  watched = new FolderWatch(root, {
    quietMs: 20,
    isIgnored: (path) => path.startsWith('schemas/'),
    changed: (paths) => calls.push(paths),
    failed: (message) => calls.push([`failed: ${message}`]),
  });
}

/** Waits for a call that names the path, and forgets all calls. */
async function says(...paths: readonly string[]): Promise<void> {
  await eventually(() => expect(new Set(calls.flat())).toEqual(new Set(paths)));
  calls = [];
}

test('a file that another one replaces is watched further, and the temporary file is not named', async () => {
  start();
  for (let round = 0; round < 3; round += 1) {
    replace('tools/t.yaml', `replaced ${round}`, `tools/t.yaml.tmp.${round}`);
    await says('tools/t.yaml');
    put('tools/t.yaml', `written ${round}`);
    await says('tools/t.yaml');
  }
});

test('a temporary file alone is no change, and a deleted file is one', async () => {
  start();
  put('x.tmp', 'x');
  rmSync(join(root, 'x.tmp'));
  rmSync(join(root, 'a.yaml'));
  await says('a.yaml');
});

test('folders that appear, are replaced or moved away are watched', async () => {
  start();
  put('agents/deep/b.yaml', '1');
  await says('agents/deep/b.yaml');
  put('agents/deep/b.yaml', '2');
  await says('agents/deep/b.yaml');
  renameSync(join(root, 'agents'), join(above, 'agents'));
  await says('agents/deep/b.yaml');
  put('agents/c.yaml', '1');
  await says('agents/c.yaml');
  replace('agents/c.yaml', '2', 'agents/sedA1b2');
  await says('agents/c.yaml');
});

test('the folder itself can be deleted and made again, as a change of the branch does', async () => {
  start();
  rmSync(root, { recursive: true });
  await says('a.yaml', 'tools/t.yaml');
  put('tools/t.yaml', '2');
  await says('tools/t.yaml');
  put('tools/t.yaml', '3');
  await says('tools/t.yaml');
  rmSync(root, { recursive: true });
  put('tools/t.yaml', '4');
  await says('tools/t.yaml');
  put('tools/t.yaml', '5');
  await says('tools/t.yaml');
});

test('what is ignored is not watched', async () => {
  start();
  put('schemas/s.json', '{}');
  put('schemas/s.json', '{"a": 1}');
  put('a.yaml', '2');
  await says('a.yaml');
});
