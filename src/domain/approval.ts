/** When an action needs a person's approval (J8). */
import type { Effects } from './action-types.ts';
import type { AgentDefinition } from './manifests/agent.ts';
import type { ToolDefinition } from './manifests/tool.ts';

/** @param tool the tool that the action calls; null for other types */
export function needsApproval(
  { loop }: Pick<AgentDefinition, 'loop'>,
  tool: Pick<ToolDefinition, 'approval'> | null,
  effects: Effects,
): boolean {
  return tool?.approval === 'always' || (loop.mode === 'supervised' && effects === 'unsafe');
}
