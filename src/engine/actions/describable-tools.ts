/** The tools that `describe_tools` reads: those of the run's pinned manifests (L4). */
import type { ResolvedAgent } from '../../domain/manifests/resolved.ts';
import type { DescribableTools } from '../../executors/executor.ts';
import { hasShortTools, summaryOf } from '../../protocol/prompt/shown-tools.ts';
import { toolDescription } from '../../protocol/prompt/tool-block.ts';

/** @returns null if the prompt shows all tools in full */
export function describableTools(resolved: ResolvedAgent): DescribableTools | null {
  if (!hasShortTools(resolved)) return null;
  return {
    known: resolved.tools,
    describe: (tool) => toolDescription(tool, resolved),
    list: (tool) => ({ name: tool.name, summary: summaryOf(tool) }),
  };
}
