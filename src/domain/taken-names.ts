/** The names that already mean something to an agent or the runtime: no tool from outside may have one. */
import { ACTION_TYPES } from './action-types.ts';
import { INTERNAL_ACTIONS, isMemoryAction } from './internal-actions.ts';
import type { ResolvedAgent } from './manifests/resolved.ts';

/** Names of blocks, references and groups of workflows. */
const RESERVED: ReadonlySet<string> = new Set(
  `thought think thinking action response results action_result context_feed system attached_file user assistant
   tool trigger steps outputs collect value refuse`.split(/\s+/),
);

/** What each name means to the agent or the runtime, in lower case. */
export function takenNames({ agent, tools, agents, workflows, relics }: ResolvedAgent): Map<string, string> {
  const taken = new Map<string, string>();
  const take = (names: Iterable<string>, meaning: string): void => {
    for (const name of names) taken.set(name.toLowerCase(), meaning);
  };
  take(RESERVED, 'a part of the protocol');
  take(ACTION_TYPES, 'an action type');
  const isTaken = (name: string): boolean => !isMemoryAction(name) || agent.memory.facts !== undefined;
  take(INTERNAL_ACTIONS.filter(isTaken), 'an internal action');
  take([...relics.keys(), ...agent.imports.relics], `a relic of the agent "${agent.name}"`);
  take([...workflows.keys(), ...agent.imports.workflows], `a workflow of the agent "${agent.name}"`);
  take([agent.name, ...agents.keys(), ...agent.imports.agents], 'an agent');
  take([...tools.keys(), ...agent.imports.tools], `a tool of the agent "${agent.name}"`);
  take(
    agent.feeds.map(({ id }) => id),
    `a feed of the agent "${agent.name}"`,
  );
  return taken;
}
