/** What events and warnings say about changes of the workspace (C7): bounded lists of paths, which are hostile text. */
import type { EventData } from '../../domain/event.ts';
import { limits } from '../../domain/limits.ts';
import type { WorkspaceResult } from '../../domain/workspace.ts';
import type { WorkspacePlan } from './workspace-plan.ts';

/** The data of the event of a change: at most `limits.workspaceListed` paths, and the number of the others. */
export function changedFiles({
  written,
  deleted,
}: Pick<WorkspacePlan, 'written' | 'deleted'>): EventData['file_changed'] {
  const files = written.slice(0, limits.workspaceListed).map(({ path, size }) => ({ path, size }));
  const listed = deleted.slice(0, limits.workspaceListed - files.length);
  const omitted = written.length + deleted.length - files.length - listed.length;
  return {
    files,
    ...(listed.length === 0 ? {} : { deleted: listed }),
    ...(omitted === 0 ? {} : { omitted }),
  };
}

/** @param paths at least one */
export function conflictNote(paths: readonly string[]): string {
  return `Another action or a person changed ${listOf(paths)} in the workspace after this action had begun; the files of this action, which ended last, count`;
}

/** Entries that are not kept, each with the reason. */
export function skippedNote({ skipped, skippedCount }: Pick<WorkspaceResult, 'skipped' | 'skippedCount'>): string {
  const named = skipped.slice(0, limits.workspaceSkippedShown);
  const list = named.map(({ path, reason }) => `${quoted(path)} (${reason})`).join(', ');
  const more = skippedCount > named.length ? ` and ${skippedCount - named.length} more` : '';
  return `Not kept in the workspace: ${list}${more}`;
}

function listOf(paths: readonly string[]): string {
  const named = paths.slice(0, limits.workspaceSkippedShown).map(quoted);
  const more = paths.length > named.length ? ` and ${paths.length - named.length} more files` : '';
  return `${named.join(', ')}${more}`;
}

/** A path in a message: as JSON, cut. */
export function quoted(path: string): string {
  return JSON.stringify(path.slice(0, limits.excerptChars));
}
