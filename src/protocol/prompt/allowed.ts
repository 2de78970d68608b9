/** Whether an agent's manifest allows an internal action: disabled wins over blocked, blocked wins over allowed. */
import type { AgentDefinition } from '../../domain/manifest.ts';

export function isInternalAllowed({ internalActions }: AgentDefinition, name: string): boolean {
  if (!internalActions.enabled || internalActions.blocked.includes(name)) return false;
  return internalActions.allowed === null || internalActions.allowed.includes(name);
}
