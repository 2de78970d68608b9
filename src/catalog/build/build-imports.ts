/** The imports of an agent or a workflow, each resolved to a name (M2). */
import type { z } from 'zod';
import type { AgentDefinition } from '../../domain/manifests/agent.ts';
import type { FieldPath } from '../check/problem.ts';
import { isPath } from '../read/imports.ts';
import type { ImportKind } from '../read/imports.ts';
import type { imports } from '../schema/fields.ts';
import type { AgentInput } from '../schema/schema.ts';

const IMPORTABLE = { agents: 'agent', tools: 'tool', relics: 'relic', workflows: 'workflow', skills: 'skill' } as const;

/** Resolves one import; reports an issue and returns null if the name does not exist. */
export type ImportTarget = (written: string, kind: ImportKind, field: FieldPath) => string | null;

/** The imports of a workflow, and of an agent without its skills. */
export function toImports(
  written: z.infer<typeof imports> | undefined,
  target: ImportTarget,
): Omit<AgentDefinition['imports'], 'skills'> {
  const names = (field: 'agents' | 'tools' | 'relics' | 'workflows'): readonly string[] =>
    resolvedNames(written?.[field], field, target);
  return { agents: names('agents'), tools: names('tools'), relics: names('relics'), workflows: names('workflows') };
}

/** The imports of an agent. */
export function withSkills(written: AgentInput['import'], target: ImportTarget): AgentDefinition['imports'] {
  const skills = resolvedNames(written?.skills, 'skills', target);
  return { ...toImports(written, target), ...(skills.length === 0 ? {} : { skills }) };
}

/** Paths are resolved before names, so that a path decides what its name refers to in the whole manifest. */
function resolvedNames(
  written: readonly string[] = [],
  field: keyof typeof IMPORTABLE,
  target: ImportTarget,
): readonly string[] {
  const entries = written.map((entry, index) => ({ entry, index }));
  const resolved: (string | null)[] = [];
  for (const paths of [true, false]) {
    for (const { entry, index } of entries) {
      if (isPath(entry) === paths) resolved[index] = target(entry, IMPORTABLE[field], ['import', field, index]);
    }
  }
  return [...new Set(resolved.filter((name) => name !== null))];
}
