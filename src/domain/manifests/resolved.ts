/** A definition with everything that one run of it may look up. */
import type { ImportedType } from '../action-types.ts';
import type { WithoutFacts } from '../facts.ts';
import type { AgentDefinition } from './agent.ts';
import type { ManifestBase } from './base.ts';
import type { RelicDefinition } from './relic.ts';
import type { SkillDefinition } from './skill.ts';
import type { ToolDefinition } from './tool.ts';
import type { WorkflowDefinition } from './workflow.ts';

/** The definitions that an agent or a workflow imports, by their imported name. */
export interface ImportedDefinitions {
  readonly tools: ReadonlyMap<string, ToolDefinition>;
  readonly relics: ReadonlyMap<string, RelicDefinition>;
  readonly workflows: ReadonlyMap<string, WorkflowDefinition>;
  /** Sub-agents: the part that callers need. */
  readonly agents: ReadonlyMap<string, ManifestBase>;
  /** Skills of an agent (C8). Absent: none. */
  readonly skills?: ReadonlyMap<string, SkillDefinition>;
  /** Every name in the catalogue by kind, to suggest similar names for an unknown one. */
  readonly knownNames: Readonly<Record<ImportedType, readonly string[]>>;
  /** What is bundled and may use the operator's secrets (X3): the importer itself, and tools by name. */
  readonly bundled?: { readonly subject: boolean; readonly tools: readonly string[] };
}

/** Everything that one run may look up: its agent and the imported definitions. */
export interface ResolvedAgent extends ImportedDefinitions {
  readonly agent: AgentDefinition;
  /** What is wrong with its MCP servers, for people (E5). Absent: nothing. */
  readonly mcpProblems?: readonly string[];
  /** Why this session has no facts about its user, although its agent keeps some (C10). */
  readonly withoutFacts?: WithoutFacts;
  /** Instructions that came with the message of the run, of a caller with an API key. */
  readonly instructions?: string;
}

/** Everything that one run of a workflow may look up. */
export interface ResolvedWorkflow extends ImportedDefinitions {
  readonly workflow: WorkflowDefinition;
}
