/** The part of an agent that a model provider gets in addition to the prompt, for the demo (L3). */
import type { ResolvedAgent } from '../../domain/manifests/resolved.ts';
import type { ModelRequest, ToolSummary } from '../../domain/ports/model.ts';

export function agentSummary({ agent, tools, relics, workflows }: ResolvedAgent): NonNullable<ModelRequest['agent']> {
  return {
    name: agent.name,
    tools: [...tools.values()].map(({ name, summary, parameters }): ToolSummary => ({ name, summary, parameters })),
    capabilities: agent.capabilities,
    form: agent.protocol.form,
    agents: agent.imports.agents,
    workflows: [...workflows.values()].map(({ name, summary, inputs }): ToolSummary => ({
      name,
      summary,
      parameters: inputs,
    })),
    relics: [...relics.values()].flatMap(({ name, endpoints }) =>
      Object.values(endpoints).map((endpoint): ToolSummary => ({
        name: `${name}.${endpoint.name}`,
        summary: endpoint.summary,
        parameters: endpoint.parameters,
      })),
    ),
  };
}
