/** Serialises the tools of the MCP servers of an agent, which a run keeps although the servers change (E5, M4). */
import type { ResolvedAgent } from '../../domain/manifests/resolved.ts';
import type { ToolDefinition } from '../../domain/manifests/tool.ts';

export interface McpTools {
  readonly tools: readonly ToolDefinition[];
  /** What is wrong with the servers, for people. */
  readonly problems: readonly string[];
}

/** The agent with the tools of its servers. */
export function withMcpTools(resolved: ResolvedAgent, { tools, problems }: McpTools): ResolvedAgent {
  return {
    ...resolved,
    tools: new Map([...resolved.tools, ...tools.map((tool) => [tool.name, tool] as const)]),
    ...(problems.length === 0 ? {} : { mcpProblems: problems }),
  };
}

/** @param text JSON of `McpTools` */
export function mcpToolsIn(text: string): McpTools {
  return JSON.parse(text) as McpTools;
}

/** @param text null: the agent has no servers */
export function withPinnedMcp(resolved: ResolvedAgent, text: string | null): ResolvedAgent {
  return text === null ? resolved : withMcpTools(resolved, mcpToolsIn(text));
}
