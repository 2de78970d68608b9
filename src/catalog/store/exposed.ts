/** What clients of the Model Context Protocol may call: all agents, and the tools and workflows that say so (E4). */
import type { ExposedManifests } from '../../domain/catalog.ts';
import { createCatalog } from '../catalog.ts';
import type { CatalogData } from '../catalog.ts';

/** Imports the shipped tools, so it calls them rather than another agent. */
const USUAL = 'assistant';

/** A tool is called by an agent, with its variables and policies: one that no agent imports is not exposed. */
export function exposedOf(data: CatalogData): ExposedManifests {
  const catalog = createCatalog(data);
  const agents = data.agents.toSorted(byName);
  const callers = agents.toSorted((a, b) => Number(b.name === USUAL) - Number(a.name === USUAL));
  return {
    agents: agents.map(({ name, summary }) => ({ name, summary })),
    tools: data.tools
      .filter(({ expose }) => expose === 'mcp')
      .toSorted(byName)
      .flatMap((tool) => {
        const { name, summary, parameters, effects } = tool;
        // An agent may see another tool with this name, of its own folder.
        const caller = callers.find(
          ({ name: agent, imports }) => imports.tools.includes(name) && catalog.agent(agent)?.tools.get(name) === tool,
        );
        return caller === undefined ? [] : [{ name, summary, parameters, effects, agent: caller.name }];
      }),
    workflows: data.workflows
      .filter(({ expose }) => expose === 'mcp')
      .toSorted(byName)
      .map(({ name, summary, inputs }) => ({ name, summary, inputs })),
  };
}

const byName = (a: { readonly name: string }, b: { readonly name: string }): number => (a.name < b.name ? -1 : 1);
