/** The files of the workspace as the model sees them: a feed of the runtime, in every prompt of an agent with programs (C7). */
import { limits } from '../../domain/limits.ts';
import type { ResolvedAgent } from '../../domain/manifests/resolved.ts';
import type { FeedReport } from '../../protocol/prompt/chat-turn.ts';
import type { RunWorkspace } from '../run/run-context.ts';

/** The id of the report; a feed of this name replaces it. */
const ID = 'workspace';

/** The feeds, and the latest files; without files, and for an agent whose actions do not see them, only the feeds. */
export function withWorkspace(
  feeds: readonly FeedReport[],
  resolved: ResolvedAgent,
  workspace: Pick<RunWorkspace, 'list'> | null | undefined,
): readonly FeedReport[] {
  if (workspace == null || !hasPrograms(resolved) || feeds.some(({ id }) => id === ID)) return feeds;
  const files = workspace.list();
  if (files.length === 0) return feeds;
  const latest = files
    .toSorted((one, other) => other.modifiedAt - one.modifiedAt)
    .slice(0, limits.workspacePromptFiles);
  const listed = new Set(latest);
  const lines = files
    .filter((file) => listed.has(file))
    .map(({ path, size }) => `${withoutTags(path)} (${size} bytes)`);
  const more = files.length > lines.length ? [`and ${files.length - lines.length} older files`] : [];
  return [...feeds, { id: ID, value: [...lines, ...more], ageMs: 0 }];
}

/** Whether an action of the agent may see the workspace. */
function hasPrograms({ agent, tools }: ResolvedAgent): boolean {
  if (agent.capabilities.length > 0 && agent.workspace !== false) return true;
  return [...tools.values()].some(({ implementation: { type }, effects, workspace }) => {
    return (type === 'script' || type === 'container') && effects !== 'pure' && workspace !== false;
  });
}

/** Nothing in a path looks like the beginning or the end of a tag. */
function withoutTags(path: string): string {
  return path.replaceAll(/[<>\uFF1C\uFF1E\uFE64\uFE65]/g, '_');
}
