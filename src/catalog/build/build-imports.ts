/** The imports of an agent or a workflow, each resolved to a name (M2). */
import type { AgentDefinition } from '../../domain/manifest.ts';
import type { FieldPath } from '../check/problem.ts';
import { isPath } from '../read/imports.ts';
import type { ImportKind } from '../read/imports.ts';
import type { AgentInput } from '../schema/schema.ts';

const IMPORTABLE = { agents: 'agent', tools: 'tool', relics: 'relic', workflows: 'workflow' } as const;

/** Resolves one import; reports an issue and returns null if the name does not exist. */
export type ImportTarget = (written: string, kind: ImportKind, field: FieldPath) => string | null;

/** Paths are resolved before names, so that a path decides what its name refers to in the whole manifest. */
export function toImports(written: AgentInput['import'], target: ImportTarget): AgentDefinition['imports'] {
  const names = (field: keyof typeof IMPORTABLE): string[] => {
    const entries = (written?.[field] ?? []).map((entry, index) => ({ entry, index }));
    const resolved: (string | null)[] = [];
    for (const paths of [true, false]) {
      for (const { entry, index } of entries) {
        if (isPath(entry) === paths) resolved[index] = target(entry, IMPORTABLE[field], ['import', field, index]);
      }
    }
    return [...new Set(resolved.filter((name) => name !== null))];
  };
  return { agents: names('agents'), tools: names('tools'), relics: names('relics'), workflows: names('workflows') };
}
