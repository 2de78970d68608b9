/** Whether an agent's manifest allows an internal action: disabled wins over blocked, blocked wins over allowed. */
import { DESCRIBE_TOOLS, INTERNAL_ACTIONS, LOAD_SKILL, RECALL, isMemoryAction } from '../../domain/action-types.ts';
import type { InternalAction } from '../../domain/action-types.ts';
import { limitsTurns } from '../../domain/manifests/agent.ts';
import type { AgentDefinition } from '../../domain/manifests/agent.ts';

/**
 * An agent with skills may load them (C8), one with tools in short form may describe them (L4), and one whose prompts may lack
 * turns may read those (C10), although internal actions are disabled or restricted, unless the action is blocked.
 */
export function isInternalAllowed(
  { internalActions, imports, memory }: AgentDefinition,
  name: string,
  hasShortTools = false,
): boolean {
  const { enabled, allowed, blocked } = internalActions;
  if (blocked.includes(name)) return false;
  if (name === LOAD_SKILL) return (imports.skills ?? []).length > 0;
  if (name === DESCRIBE_TOOLS) return hasShortTools;
  if (name === RECALL) return limitsTurns(memory);
  if (isMemoryAction(name) && memory.facts === undefined) return false;
  return enabled && (allowed === null || allowed.includes(name));
}

/** The internal actions that an agent may use. */
export function internalUses(agent: AgentDefinition, hasShortTools: boolean): InternalAction[] {
  return INTERNAL_ACTIONS.filter((name) => isInternalAllowed(agent, name, hasShortTools));
}
