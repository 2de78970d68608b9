/** Mistakes in the workspace of a session (C7). */
import type { Patch } from '../patch.ts';

const WORKSPACE = 'src/engine/session/session-workspace.ts';

export const WORKSPACE_PATCHES: readonly Patch[] = [
  {
    name: 'an action that was stopped while its files were fetched commits them',
    file: WORKSPACE,
    find: `      attempt.signal.throwIfAborted();\n`,
    replace: ``,
    invariant: 'kept files',
  },
  {
    name: 'the files of a program are not committed',
    file: 'src/executors/runner/job.ts',
    find: `if (left === undefined ||`,
    replace: `if (left === undefined || left.changes.length > 1 ||`,
    invariant: 'kept files',
  },
  {
    name: 'bytes that another path still has are deleted',
    file: 'src/engine/session/workspace-plan.ts',
    find: `.filter((sha256) => !hashes.has(sha256))`,
    replace: `.filter((sha256) => hashes.size > 0 && sha256 !== '')`,
    invariant: 'files stored',
  },
  {
    name: 'changed files are expected again in a replay',
    file: 'src/engine/replay/replay.ts',
    find: `  'file_changed',\n`,
    replace: ``,
    invariant: 'same replay',
  },
];
