/** What the targets of an agent return, and which of them wait for a person, for its prompt (L4). */
import { actionSpec } from '../../domain/action-types.ts';
import { needsApproval } from '../../domain/approval.ts';
import type { ActionType } from '../../domain/action-types.ts';
import type { JsonObject } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import type { AgentDefinition } from '../../domain/manifests/agent.ts';
import type { RelicDefinition, RelicEndpoint } from '../../domain/manifests/relic.ts';
import type { ResolvedAgent } from '../../domain/manifests/resolved.ts';
import type { ToolDefinition } from '../../domain/manifests/tool.ts';
import type { WorkflowDefinition } from '../../domain/manifests/workflow.ts';
import { learnedValue } from '../../domain/learned-shape.ts';
import { renderShape, shapeOfSchema } from '../../domain/shape.ts';
import type { Shape } from '../../domain/shape.ts';
import { WORKSPACE_FOLDER } from '../../domain/workspace.ts';
import { escapeReservedTags, sanitizeText } from './escape-reserved-tags.ts';

type Known = Pick<ResolvedAgent, 'agent' | 'shapes'>;

/** `Returns {…}` of a tool; empty if nothing is known about its results. */
export function toolReturns(tool: ToolDefinition, known: Pick<Known, 'shapes'>): string {
  return returned(tool.returns, known.shapes?.[`tool/${tool.name}`]);
}

export function endpointReturns(relic: RelicDefinition, endpoint: RelicEndpoint, known: Pick<Known, 'shapes'>): string {
  return returned(endpoint.returns, known.shapes?.[`relic/${relic.name}.${endpoint.name}`]);
}

/** A workflow's outputs, whose names are in its manifest; with their types once it has completed in this namespace. */
export function workflowReturns({ name, outputs }: WorkflowDefinition, known: Pick<Known, 'shapes'>): string {
  const names = Object.keys(outputs);
  const learned = known.shapes?.[`workflow/${name}`];
  if (names.length === 0) return returned(null, learned);
  const schema: JsonObject = {
    type: 'object',
    properties: Object.fromEntries(names.map((output): [string, JsonObject] => [output, {}])),
  };
  const shape = Object.entries(shapeOfSchema(schema)).map(([output, type]: [string, Shape]): [string, Shape] => [
    output,
    learnedValue(learned, output) ?? type,
  ]);
  return returned(null, Object.fromEntries(shape));
}

function returned(schema: JsonObject | null, learned: Shape | undefined): string {
  const shape = schema === null ? learned : shapeOfSchema(schema);
  const shown = shape === undefined || shape === 'any' ? '' : renderShape(shape);
  const description = typeof schema?.['description'] === 'string' ? oneLine(schema['description']) : '';
  const described = description.slice(0, limits.returnsChars);
  if (shown === '') return described === '' ? '' : safe(`Returns: ${described}`);
  return safe(`Returns ${shown}${described === '' ? '' : `. ${described}`}`);
}

/** The statements that create the tables of an edge relic. */
export function tablesOf({ implementation }: RelicDefinition): string {
  if (implementation.type !== 'edge') return '';
  const statements = implementation.schema.filter((sql) => CREATES.test(sql)).map((sql) => sql.trim());
  const text = statements.join('\n');
  const shown = text.length <= limits.tablesPromptChars ? text : `${text.slice(0, limits.tablesPromptChars)}…`;
  return shown === '' ? '' : safe(`Tables:\n${shown}`);
}

/** `CREATE TABLE`, `CREATE VIEW` and `ALTER TABLE`, after comments. */
const CREATES = /^(?:\s|--[^\n]*\n|\/\*(?:[^*]|\*(?!\/))*\*\/)*(?:CREATE\s+(?:\w+\s+)?(?:TABLE|VIEW)|ALTER\s+TABLE)\b/i;

/** ` (asks a person first)` for a target that needs approval, else empty. */
export function approvalNote(
  { agent }: Pick<Known, 'agent'>,
  type: ActionType,
  target: ToolDefinition | RelicEndpoint | null,
): string {
  const tool = target !== null && 'approval' in target ? target : null;
  return needsApproval(agent, tool, target?.effects ?? actionSpec(type).effects) ? ' (asks a person first)' : '';
}

export function oneLine(text: string): string {
  return text.replace(/\s+/g, ' ').trim();
}

function safe(text: string): string {
  return escapeReservedTags(sanitizeText(text));
}

/** Where the code of an agent starts, and what becomes of its files (C7); empty if it has no workspace. */
export function workspaceNote({ workspace }: Pick<AgentDefinition, 'workspace'>): string {
  return workspace === false ? '' : `Starts in ${WORKSPACE_FOLDER}, whose files last`;
}
