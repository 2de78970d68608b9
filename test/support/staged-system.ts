/** Builds the whole system once from a copy of the sources, with additional manifests in its catalog. */
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { PACKAGE_ROOT } from '../../cli/project/folders.ts';
import { buildWorker } from './built-worker.ts';
import type * as SystemModule from '../../cli/system/system.ts';

const COPIED = [
  'src',
  'cli',
  'console',
  'scripts',
  'manifests',
  'container-runner',
  'wrangler.toml',
  'package.json',
] as const;

export interface Stage extends Disposable {
  readonly root: string;
  /** Imported from the copy, so that it starts the copy. */
  readonly startSystem: typeof SystemModule.startSystem;
}

/** @param manifests texts by path, such as `tools/search.yaml` */
export async function stage(manifests: Readonly<Record<string, string>>): Promise<Stage> {
  const root = mkdtempSync(join(tmpdir(), 'cortex-stage-'));
  const folders = [root];
  const remove = (): void => {
    for (const folder of folders) rmSync(folder, { recursive: true, force: true });
  };
  try {
    for (const name of COPIED) cpSync(join(PACKAGE_ROOT, name), join(root, name), { recursive: true });
    symlinkSync(join(PACKAGE_ROOT, 'node_modules'), join(root, 'node_modules'), 'dir');
    for (const [path, text] of Object.entries(manifests)) {
      const file = join(root, 'manifests', path);
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, text);
    }
    const module = (await import(pathToFileURL(join(root, 'cli/system/system.ts')).href)) as typeof SystemModule;
    const builtWorker = await buildWorker(root);
    folders.push(builtWorker);
    return {
      root,
      startSystem: (options) => module.startSystem({ ...options, builtWorker }),
      [Symbol.dispose]: remove,
    };
  } catch (fault) {
    remove();
    throw fault;
  }
}
