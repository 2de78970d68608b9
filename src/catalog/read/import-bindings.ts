/** Which document each import of a load refers to (M2). */
import type { ProblemLog } from '../check/problem-log.ts';
import type { FieldPath } from '../check/problem.ts';
import { isPath } from './imports.ts';
import type { ImportIndex, ImportKind } from './imports.ts';
import type { ReadDocument } from './read-file.ts';

/** A document in a load. */
export interface Found extends Omit<ReadDocument, 'built'> {
  readonly read: ReadDocument;
  /** Another folder has a definition with the same name that takes precedence for other importers (M2). */
  scoped: boolean;
}

interface Binding {
  readonly target: Found;
  readonly field: FieldPath;
}

export class ImportBindings {
  readonly #index: ImportIndex<Found>;
  readonly #log: ProblemLog;
  readonly #imported = new Map<Found, Map<string, Binding>>();
  /** Importers of definitions that are visible only to their own folder. */
  readonly scoped: { readonly importer: Found; readonly target: Found }[] = [];

  constructor(index: ImportIndex<Found>, log: ProblemLog) {
    this.#index = index;
    this.#log = log;
  }

  /** Resolves an import, by path or by name; reports an issue and returns null if there is none. */
  resolve(written: string, kind: ImportKind, importer: Found, field: FieldPath): string | null {
    // a name that the importer has already imported by its path refers to the same definition
    const known = isPath(written) ? undefined : this.#imported.get(importer)?.get(`${kind}/${written}`);
    if (known !== undefined) return known.target.name;
    const result = this.#index.resolve(written, kind, importer);
    if ('message' in result) {
      this.#log.report(importer, { path: field, part: 'value', message: result.message() });
      return null;
    }
    if ('faulty' in result) {
      this.#log.warn(importer, { path: field, part: 'value', message: result.faulty });
      return null;
    }
    return result.target === null ? result.name : this.#bind(importer, result.target, field);
  }

  /**
   * Warns about imports whose target did not load.
   *
   * @param isGiven whether another definition is used for a target that did not load
   * @returns the imports without a definition
   */
  warnOfMissing(
    loaded: ReadonlyMap<Found, unknown>,
    isGiven: (target: Found) => boolean,
  ): { readonly importer: Found; readonly target: Found }[] {
    const missing: { importer: Found; target: Found }[] = [];
    for (const [importer, targets] of this.#imported) {
      if (!loaded.has(importer)) continue;
      for (const { target, field } of targets.values()) {
        if (loaded.has(target)) continue;
        const given = isGiven(target);
        const what = given ? `in ${target.file} did not load; the shipped one is used` : 'has errors and is omitted';
        const message = `the ${target.kind} "${target.name}" ${what}`;
        this.#log.warn(importer, { path: field, part: 'value', message });
        if (!given) missing.push({ importer, target });
      }
    }
    return missing;
  }

  /** Records the target of an import. One importer cannot use two definitions with one name: the first import counts. */
  #bind(importer: Found, target: Found, field: FieldPath): string | null {
    const key = `${target.kind}/${target.name}`;
    const bound = this.#imported.get(importer) ?? new Map<string, Binding>();
    this.#imported.set(importer, bound);
    const other = bound.get(key);
    if (other !== undefined && other.target !== target) {
      const message = `"${target.name}" already refers to the ${target.kind} in ${other.target.file}`;
      const issue = { path: field, part: 'value' } as const;
      if (field[0] === 'import') this.#log.warn(importer, { ...issue, message: `${message}; this one is omitted` });
      else this.#log.report(importer, { ...issue, message });
      return null;
    }
    if (other === undefined) {
      bound.set(key, { target, field });
      if (target.scoped) this.scoped.push({ importer, target });
    }
    return target.name;
  }
}
