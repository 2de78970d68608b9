/** Reports changes in the manifest folder while the system runs. wrangler rebuilds the Worker itself. */
import { statSync, watch } from 'node:fs';
import { ruleOfErrors, summarise } from '../project/manifest-files.ts';
import type { ProjectManifests } from '../project/manifest-files.ts';

/** Debounce interval: an editor writes a file in several steps. */
const QUIET_MS = 150;

/** An existing file, or a deleted one with an extension. Excludes folders and temporary files of editors. */
function isNamed(path: string): boolean {
  const stat = statSync(path, { throwIfNoEntry: false });
  return stat === undefined ? /\.\w+$/.test(path) : stat.isFile();
}

/**
 * Calls `report` after each change below `folder` with the result of `check`.
 *
 * @returns a function that stops watching
 */
export function watchManifests(
  folder: string,
  check: () => Pick<ProjectManifests, 'catalog' | 'problems' | 'codeProblems' | 'faultyTools'>,
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
      const loaded = check();
      const { problems } = loaded;
      if (problems.length === 0)
        report(`${what} changed: ${summarise(loaded)}; they count from the next message on`, true);
      else {
        const errors = problems.length === 1 ? '1 error' : `${problems.length} errors`;
        report(`${what} changed: ${errors}; ${ruleOfErrors(loaded)}`, false);
      }
    } catch (fault) {
      report(`${what} changed and cannot be read: ${fault instanceof Error ? fault.message : String(fault)}`, false);
    }
  };
  const watcher = watch(folder, { recursive: true }, (_event, name) => {
    // a script generates the editors' schemas; they are not manifests
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
