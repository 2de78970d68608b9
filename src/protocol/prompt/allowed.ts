/** Which internal actions the prompt of an agent has: those that the policy allows (executors/internal.ts). */
import { INTERNAL_ACTIONS, whyNotUsable } from '../../domain/internal-actions.ts';
import type { AgentPart, InternalAction } from '../../domain/internal-actions.ts';
import { limitsTurns } from '../../domain/manifests/agent.ts';
import type { AgentDefinition } from '../../domain/manifests/agent.ts';

/** @param hasShortTools whether the prompt lists tools in short form */
export function isInternalAllowed(agent: AgentDefinition, name: InternalAction, hasShortTools = false): boolean {
  const { internalActions, imports, memory } = agent;
  const has: Readonly<Record<AgentPart, boolean>> = {
    skills: (imports.skills ?? []).length > 0,
    short_tools: hasShortTools,
    facts: memory.facts !== undefined,
    earlier_turns: limitsTurns(memory),
  };
  return whyNotUsable(internalActions, name, (what) => has[what]) === null;
}

/** The internal actions that an agent may use. */
export function internalUses(agent: AgentDefinition, hasShortTools: boolean): InternalAction[] {
  return INTERNAL_ACTIONS.filter((name) => isInternalAllowed(agent, name, hasShortTools));
}
