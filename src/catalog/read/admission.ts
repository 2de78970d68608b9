/**
 * Which documents of a load take part in it, and which of several definitions with one name is the one that is called by
 * name (M2).
 *
 * Invariants:
 * 1. Of the definitions with one kind and name, one is called by name: the one that already was, else the one nearest
 *    the root, first by path. The others are scoped: only the importers that resolve to them see them. If the first one
 *    has errors, the next one without errors is called by name.
 * 2. The order of the given files does not matter.
 * 3. A reserved name is never admitted; a shipped one gives way to a definition of the project.
 */
import type { ManifestKind } from '../../domain/catalog.ts';
import { limits } from '../../domain/limits.ts';
import type { AnyDefinition } from '../catalog.ts';
import type { ProblemLog } from '../check/problem-log.ts';
import type { ImportIndex } from './imports.ts';
import type { Found } from './import-bindings.ts';
import type { ReadDocument } from './read-file.ts';

export interface Admitted {
  readonly found: readonly Found[];
  /** Shipped definitions with the name of a definition of the project, which replaces them. */
  readonly replaced: readonly Found[];
}

export interface AdmissionRules {
  /** Whether a file is part of the distribution, so that definitions of the project may replace it. */
  readonly isShipped: (file: string) => boolean;
  /** Whether a definition of the project that replaces a shipped one gets a warning. */
  readonly warnsOfReplaced: boolean;
  /** Whether the name already belongs to the definition in this file. */
  readonly isCurrent: (kind: ManifestKind, name: string, file: string) => boolean;
  /** Whether definitions of the file leave free names to those of other files: it was stored before, or has errors. */
  readonly yieldsNames: (file: string) => boolean;
}

const AT_NAME = { path: ['name'], part: 'value' } as const;

export function admitDocuments(
  documents: readonly ReadDocument[],
  index: ImportIndex<Found>,
  log: ProblemLog,
  rules: AdmissionRules,
): Admitted {
  const found: Found[] = [];
  const replaced = new Map<string, Found>();
  const ordered = inOrder(documents, rules);
  const keyOf = ({ kind, name }: Pick<ReadDocument, 'kind' | 'name'>): string => `${kind}/${name}`;
  const own = new Set(ordered.filter(({ file }) => !rules.isShipped(file)).map(keyOf));
  const isReplaced = (read: ReadDocument): boolean => rules.isShipped(read.file) && own.has(keyOf(read));
  for (const read of ordered) if (isReplaced(read)) replaced.set(keyOf(read), { ...read, read, scoped: false });
  for (const read of ordered) {
    if (isReplaced(read)) continue;
    log.guarded(() => {
      const one = admitted(read, found.length, index, log);
      if (one === null) return;
      found.push(one);
      index.add(one);
      const other = one.scoped ? undefined : replaced.get(keyOf(one));
      if (other === undefined) return;
      index.addFile(one, other.file);
      if (!rules.warnsOfReplaced) return;
      log.warn(one, { ...AT_NAME, message: `replaces the shipped ${one.kind} "${one.name}" (${other.file})` });
    });
  }
  return { found, replaced: [...replaced.values()] };
}

/**
 * Gives a name whose first definition did not load to the next one that did, with a warning. A definition that already
 * has its name keeps it. Imports that refer to the first definition do not change.
 *
 * @param built the definitions without errors
 * @returns the given names (`tool/echo`)
 */
export function nameOthers(
  found: readonly Found[],
  built: Map<Found, AnyDefinition>,
  log: ProblemLog,
  { isCurrent }: AdmissionRules,
): ReadonlySet<string> {
  const first = new Map(found.filter(({ scoped }) => !scoped).map((one) => [`${one.kind}/${one.name}`, one]));
  const given = new Set<string>();
  for (const one of found) {
    const key = `${one.kind}/${one.name}`;
    const broken = first.get(key);
    const definition = built.get(one);
    if (!one.scoped || broken === undefined || definition === undefined) continue;
    if (built.has(broken) || isCurrent(one.kind, one.name, broken.file)) continue;
    one.scoped = false;
    if (definition.kind === 'Agent' || definition.kind === 'Workflow') {
      const { scope: _scope, ...rest } = definition;
      built.set(one, rest);
    }
    first.set(key, one);
    given.add(key);
    log.warn(one, { ...AT_NAME, message: `this one is called by name, because ${broken.file} has errors` });
  }
  return given;
}

/** The owners of a name first, those that yield names last, then nearest the root, then by path. */
function inOrder(
  documents: readonly ReadDocument[],
  { isCurrent, yieldsNames }: AdmissionRules,
): readonly ReadDocument[] {
  const rankOf = ({ kind, name, file }: ReadDocument): number =>
    isCurrent(kind, name, file) ? 0 : yieldsNames(file) ? 2 : 1;
  return documents
    .map((read) => ({ read, rank: rankOf(read), depth: read.file.split('/').length }))
    .sort(
      (a, b) =>
        a.rank - b.rank || a.depth - b.depth || (a.read.file < b.read.file ? -1 : a.read.file > b.read.file ? 1 : 0),
    )
    .map(({ read }) => read);
}

/** Reports why a document is not admitted, and returns null. */
function admitted(read: ReadDocument, count: number, index: ImportIndex<Found>, log: ProblemLog): Found | null {
  const { kind, name, file } = read;
  const found: Found = { ...read, read, scoped: false };
  if (count >= limits.catalogDefinitions) {
    const message = `the folder has more than ${limits.catalogDefinitions} manifests`;
    log.report(found, { path: ['kind'], part: 'value', message });
    return null;
  }
  if (name === '') return found;
  if (index.isBundled(kind, name)) {
    // importers by path use the bundled one
    index.addFile(found, file);
    log.reserved(found, { ...AT_NAME, message: `"${name}" is the name of a bundled ${kind}, which cannot be changed` });
    return null;
  }
  const [first] = index.named(kind, name);
  if (first === undefined) return found;
  const { line } = first.document.place(['name']);
  const message = `another ${kind} is already called "${name}", in ${first.file}:${line}`;
  if (index.inSameFolder(kind, name, file)) {
    log.report(found, { ...AT_NAME, message });
    return null;
  }
  log.warn(found, { ...AT_NAME, message: `${message}; ${OTHERS[kind]}` });
  return { ...found, scoped: true };
}

const OTHERS = {
  tool: 'importers nearer to this one use it',
  relic: 'importers nearer to this one use it',
  agent: 'that one is called by name, and importers nearer to this one use this one',
  workflow: 'that one is called by name, and importers nearer to this one use this one',
  skill: 'importers nearer to this one use it',
  monument: 'this one is not listed',
} as const;
