/**
 * Writes imports in the form of this system: a name, or the path of a file. What failed is no longer imported, and a step that
 * needs it fails when it runs.
 */
import { isJsonObject } from '../../src/domain/json.ts';
import type { ManifestKind } from '../../src/domain/catalog.ts';
import type { FieldPath } from '../../src/catalog/check/problem.ts';
import { isPath } from '../../src/catalog/read/imports.ts';
import type { ImportKind } from '../../src/catalog/read/imports.ts';
import type { Draft } from './draft.ts';

const KINDS: Readonly<Record<string, ImportKind>> = {
  agents: 'agent',
  tools: 'tool',
  relics: 'relic',
  workflows: 'workflow',
  skills: 'skill',
};
/** Members of a step that hold steps. */
const INSIDE = ['steps', 'else', 'catch', 'finally'] as const;

export function settleImports(kind: ManifestKind, draft: Draft): void {
  if (kind !== 'agent' && kind !== 'workflow') return;
  for (const [field, target] of Object.entries(KINDS)) {
    const path = ['import', field];
    const list = draft.get(path);
    const failed = new Set<number>();
    for (const [index, written] of (Array.isArray(list) ? list : []).entries()) {
      if (typeof written !== 'string') continue;
      const faulty = settle(draft, [...path, index], written, target);
      if (faulty === null) continue;
      draft.lose([...path, index], faulty, 'value');
      failed.add(index);
    }
    draft.removeItems(path, failed);
  }
  settleSteps(draft, ['steps']);
}

/** @returns why the target cannot be used, or null */
function settle(draft: Draft, path: FieldPath, written: string, kind: ImportKind): string | null {
  const found = draft.around.find(written, kind);
  if (found === null) return null;
  if ('faulty' in found) return found.faulty;
  if (found.note !== null) draft.note(path, found.note, 'value');
  if (found.written !== written) draft.set(path, found.written);
  return null;
}

function settleSteps(draft: Draft, path: FieldPath): void {
  const steps = draft.get(path);
  for (const [index, step] of (Array.isArray(steps) ? steps : []).entries()) {
    if (!isJsonObject(step)) continue;
    const { type, target, cases } = step;
    const at = [...path, index];
    const kind = Object.values(KINDS).find((one) => one === type);
    if (kind !== undefined && typeof target === 'string' && !isImported(draft, target, kind)) {
      const faulty = settle(draft, [...at, 'target'], target, kind);
      if (faulty !== null) {
        draft.lose([...at, 'target'], `${faulty}; the step fails when it runs`, 'value');
        draft.set([...at, 'optional'], true);
      }
    }
    for (const inner of INSIDE) settleSteps(draft, [...at, inner]);
    for (const one of Array.isArray(cases) ? cases.keys() : []) settleSteps(draft, [...at, 'cases', one, 'steps']);
  }
}

/** Whether an import by a path already decides what a name means. */
function isImported(draft: Draft, name: string, kind: ImportKind): boolean {
  const list = draft.get(['import', `${kind}s`]);
  return (Array.isArray(list) ? list : []).some((one) => {
    const found = typeof one === 'string' && isPath(one) ? draft.around.find(one, kind) : null;
    return found !== null && 'name' in found && found.name === name;
  });
}
