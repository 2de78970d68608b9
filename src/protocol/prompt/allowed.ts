/** Whether an agent's manifest allows an internal action: disabled wins over blocked, blocked wins over allowed. */
import { LOAD_SKILL } from '../../domain/action-types.ts';
import type { AgentDefinition } from '../../domain/manifests/agent.ts';

/** An agent with skills may load them although internal actions are disabled or restricted, unless it is blocked (C8). */
export function isInternalAllowed({ internalActions, imports }: AgentDefinition, name: string): boolean {
  const { enabled, allowed, blocked } = internalActions;
  if (blocked.includes(name)) return false;
  if (name === LOAD_SKILL) return (imports.skills ?? []).length > 0;
  return enabled && (allowed === null || allowed.includes(name));
}
