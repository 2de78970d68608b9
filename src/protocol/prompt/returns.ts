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
import { renderShape, shapeOfSchema } from '../../domain/shape.ts';
import { WORKSPACE_FOLDER } from '../../domain/workspace.ts';
import { escapeReservedTags, sanitizeText } from './escape-reserved-tags.ts';

/** `Returns {…}` of a tool or an endpoint; empty if its manifest does not say it. */
export function returnsOf({ returns }: Pick<ToolDefinition | RelicEndpoint, 'returns'>): string {
  if (returns === null) return '';
  const shape = shapeOfSchema(returns);
  const shown = shape === 'any' ? '' : renderShape(shape);
  const description = typeof returns['description'] === 'string' ? oneLine(returns['description']) : '';
  const described = description.slice(0, limits.returnsChars);
  if (shown === '') return described === '' ? '' : safe(`Returns: ${described}`);
  return safe(`Returns ${shown}${described === '' ? '' : `. ${described}`}`);
}

/** The names of a workflow's outputs. */
export function workflowReturns({ outputs }: WorkflowDefinition): string {
  const names = Object.keys(outputs);
  if (names.length === 0) return '';
  const properties = Object.fromEntries(names.map((output): [string, JsonObject] => [output, {}]));
  return returnsOf({ returns: { type: 'object', properties } });
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
  { agent }: Pick<ResolvedAgent, 'agent'>,
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
