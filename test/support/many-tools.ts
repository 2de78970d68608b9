/** Agents with many tools, as servers of tools bring them. */
import type { AgentDefinition, ProtocolOptions } from '../../src/domain/manifests/agent.ts';
import type { ResolvedAgent } from '../../src/domain/manifests/resolved.ts';
import type { ToolDefinition } from '../../src/domain/manifests/tool.ts';
import { bundled } from './bundled.ts';
import { toolOf } from './definitions.ts';

/** A tool whose schema has about 2 KB. */
export function largeTool(index: number, changes: Partial<ToolDefinition> = {}): ToolDefinition {
  const description = 'Which of the things of this kind is meant, by its name or by its number in the list.';
  const properties = Object.fromEntries(
    Array.from({ length: 13 }, (_, at) => [`parameter_${at}`, { type: 'string', description, maxLength: 100 }]),
  );
  return toolOf(
    { type: 'builtin', entrypoint: 'echo' },
    {
      name: `thing_${index}`,
      summary: `Does the thing number ${index} in the system, and returns what it did with its details.`,
      parameters: { type: 'object', properties, required: ['parameter_0'] },
      ...changes,
    },
  );
}

export const largeTools = (count: number): readonly ToolDefinition[] =>
  Array.from({ length: count }, (_, index) => largeTool(index));

/** The bundled assistant without tools of its own, with these. @param imported whether its manifest names them */
export function agentOf(
  tools: readonly ToolDefinition[],
  protocol: Partial<ProtocolOptions> = {},
  changes: Partial<AgentDefinition> = {},
  imported = true,
): ResolvedAgent {
  const found = bundled.agent('assistant');
  if (found === null) throw new Error('there is no assistant');
  const { agent } = found;
  return {
    ...found,
    tools: new Map(tools.map((tool) => [tool.name, tool])),
    agent: {
      ...agent,
      imports: { ...agent.imports, tools: imported ? tools.map(({ name }) => name) : [] },
      protocol: { ...agent.protocol, ...protocol },
      ...changes,
    },
  };
}
