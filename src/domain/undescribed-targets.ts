/** The targets of an agent whose manifest does not say what they return. Their results are learned (L4). */
import type { ImportedDefinitions } from './manifests/resolved.ts';
import { isWorkflowHelper } from './workflow-actions.ts';

/**
 * @returns `tool/name`, `relic/name.endpoint` and `workflow/name`. Every workflow is included, because its outputs have
 *   names but no types
 */
export function undescribedTargets({
  tools,
  relics,
  workflows,
}: Pick<ImportedDefinitions, 'tools' | 'relics' | 'workflows'>): string[] {
  return [
    ...[...tools.values()]
      // The same name may be a tool of another MCP server in another agent.
      .filter(
        ({ name, returns, implementation }) =>
          returns === null && implementation.type !== 'mcp' && !isWorkflowHelper(name),
      )
      .map(({ name }) => `tool/${name}`),
    ...[...relics.values()].flatMap(({ name, endpoints }) =>
      Object.values(endpoints)
        .filter(({ returns }) => returns === null)
        .map((endpoint) => `relic/${name}.${endpoint.name}`),
    ),
    ...[...workflows.keys()].map((name) => `workflow/${name}`),
  ];
}
