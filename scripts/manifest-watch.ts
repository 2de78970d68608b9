/** Says what became of a change in the manifest folder while the system runs. The Worker itself is rebuilt by wrangler. */
import { statSync, watch } from 'node:fs';
import { summarise } from './manifest-files.ts';
import type { checkManifests } from './manifest-files.ts';

/** An editor writes a file in several steps; they count as one change. */
const QUIET_MS = 150;

/** A file that is there, or one with an extension that is gone: not a folder, nor what an editor had beside it for a moment. */
function isNamed(path: string): boolean {
  const stat = statSync(path, { throwIfNoEntry: false });
  return stat === undefined ? /\.\w+$/.test(path) : stat.isFile();
}

/**
 * Calls `report` after each change below `folder`, with what `check` says of it.
 *
 * @returns the end of watching
 */
export function watchManifests(
  folder: string,
  check: typeof checkManifests,
  report: (line: string, good: boolean) => void,
): () => void {
  let timer: NodeJS.Timeout | null = null;
  const changed = new Set<string>();
  const look = (): void => {
    const all = [...changed].sort().map((name) => `${folder}/${name.replaceAll('\\', '/')}`);
    const named = all.filter(isNamed);
    const names = named.length === 0 ? all : named;
    changed.clear();
    const what = names.length > 3 ? `${names.length} files` : names.join(', ');
    try {
      const loaded = check(folder);
      const { problems } = loaded;
      if (problems.length === 0)
        report(`${what} changed: ${summarise(loaded)}; they count from the next message on`, true);
      else {
        const errors = problems.length === 1 ? '1 error' : `${problems.length} errors`;
        report(`${what} changed: ${errors}, so what was loaded before goes on`, false);
      }
    } catch (fault) {
      report(`${what} changed and cannot be read: ${fault instanceof Error ? fault.message : String(fault)}`, false);
    }
  };
  const watcher = watch(folder, { recursive: true }, (_event, name) => {
    // schemas for editors are written by a script and are no manifests
    if (name === null || /(^|[/\\])(schemas[/\\]|\.)|~$|\.sw.$/.test(name)) return;
    changed.add(name);
    if (timer !== null) clearTimeout(timer);
    timer = setTimeout(look, QUIET_MS);
  });
  watcher.on('error', (fault) => report(`${folder} cannot be watched: ${fault.message}`, false));
  return () => {
    if (timer !== null) clearTimeout(timer);
    watcher.close();
  };
}
