/** Serialises the definitions of a run, which do not change with the catalogue or after a crash (M4). */
import type { ImportedDefinitions, ResolvedAgent, ResolvedWorkflow } from '../../domain/manifests/resolved.ts';
import type { ManifestBase } from '../../domain/manifests/base.ts';
import type { RelicDefinition } from '../../domain/manifests/relic.ts';
import type { SkillDefinition } from '../../domain/manifests/skill.ts';
import type { ToolDefinition } from '../../domain/manifests/tool.ts';
import type { WorkflowDefinition } from '../../domain/manifests/workflow.ts';

type Subject = Pick<ResolvedAgent, 'agent'> | Pick<ResolvedWorkflow, 'workflow'>;

interface Pinned {
  readonly subject: Subject;
  readonly tools: readonly ToolDefinition[];
  readonly relics: readonly RelicDefinition[];
  readonly workflows: readonly WorkflowDefinition[];
  readonly agents: readonly ManifestBase[];
  /** Absent: none. */
  readonly skills?: readonly SkillDefinition[];
  readonly knownNames: ImportedDefinitions['knownNames'];
}

export function toPinned({
  tools,
  relics,
  workflows,
  agents,
  skills,
  knownNames,
  ...subject
}: ResolvedAgent | ResolvedWorkflow): string {
  const pinned: Pinned = {
    subject,
    tools: [...tools.values()],
    relics: [...relics.values()],
    workflows: [...workflows.values()],
    agents: [...agents.values()],
    ...(skills === undefined ? {} : { skills: [...skills.values()] }),
    knownNames,
  };
  return JSON.stringify(pinned);
}

/** @returns the agent or workflow that was passed to `toPinned` */
export function fromPinned(text: string): ResolvedAgent | ResolvedWorkflow {
  const { subject, tools, relics, workflows, agents, skills, knownNames } = JSON.parse(text) as Pinned;
  const byName = <T extends ManifestBase>(items: readonly T[]): Map<string, T> =>
    new Map(items.map((item) => [item.name, item]));
  return {
    ...subject,
    tools: byName(tools),
    relics: byName(relics),
    workflows: byName(workflows),
    agents: byName(agents),
    ...(skills === undefined ? {} : { skills: byName(skills) }),
    knownNames,
  };
}
