/** Reports changes in the manifest folder while the system runs. wrangler rebuilds the Worker itself. */
import { ruleOfErrors, summarise } from '../project/manifest-files.ts';
import type { ProjectManifests } from '../project/manifest-files.ts';
import { FolderWatch } from './folder-watch.ts';

/** Debounce interval: an editor writes a file in several steps. */
const QUIET_MS = 150;

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
  const look = (paths: readonly string[]): void => {
    const names = paths.map((path) => `${folder}/${path}`);
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
  const watched = new FolderWatch(folder, {
    quietMs: QUIET_MS,
    // a script generates the editors' schemas; they are not manifests
    isIgnored: (path) => /(^|\/)(schemas\/|node_modules\/|__pycache__\/|\.)|~$|\.sw.$/.test(path),
    changed: look,
    failed: (message) => report(`${folder} cannot be watched: ${message}`, false),
  });
  return () => watched.close();
}
