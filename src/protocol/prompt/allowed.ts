/** Which internal actions an agent's manifest lets it use: disabled beats blocked beats allowed. */
import type { AgentDefinition } from '../../domain/manifest.ts';

export function isInternalAllowed({ internalActions }: AgentDefinition, name: string): boolean {
  if (!internalActions.enabled || internalActions.blocked.includes(name)) return false;
  return internalActions.allowed === null || internalActions.allowed.includes(name);
}
