/**
 * Loads the sources with a patch, without writing files: Node's module hooks replace the text of the patched file
 * before its types are stripped. Only modules that this thread imports later are affected.
 */
import { readFileSync } from 'node:fs';
import { registerHooks } from 'node:module';
import type { Patch } from './patch.ts';

const ROOT = new URL('../../../', import.meta.url);

/** @throws if the patch does not fit the file any more */
export function applyPatch(patch: Patch): void {
  const url = new URL(patch.file, ROOT).href;
  const source = patched(patch, readFileSync(new URL(url), 'utf8'));
  registerHooks({
    load: (loaded, context, nextLoad) =>
      loaded === url ? { format: 'module-typescript', source, shortCircuit: true } : nextLoad(loaded, context),
  });
}

/** @throws unless the text that the patch replaces occurs exactly once */
function patched({ name, file, find, replace }: Patch, source: string): string {
  const [before, after, ...more] = source.split(find);
  if (before === undefined || after === undefined || more.length > 0) {
    const count = source.split(find).length - 1;
    throw new Error(`The patch "${name}" does not fit: its text occurs ${count} times in ${file} instead of once`);
  }
  return `${before}${replace}${after}`;
}
