/** Collects the issues of a load, each with its position, up to a maximum per file (M1). */
import type { ManifestProblem, ManifestProblems } from '../../domain/catalog.ts';
import { limits } from '../../domain/limits.ts';
import type { ReadDocument, ReadFile } from '../read/read-file.ts';
import type { Issue } from './issues.ts';
import { fieldName } from './problem.ts';

/** Thrown when a file reaches the maximum number of issues; the rest of the file is not checked. */
export class TooManyProblems extends Error {
  override readonly name = 'TooManyProblems';
}

type Place = Pick<ReadDocument, 'file' | 'document'>;

export class ProblemLog {
  readonly #problems: ManifestProblem[] = [];
  readonly #warnings: ManifestProblem[] = [];
  readonly #skipped: ManifestProblem[] = [];
  readonly #counts = new Map<string, number>();

  /** Number of problems so far. */
  get count(): number {
    return this.#problems.length;
  }

  /** Adds the issues of a parsed file, which are within the maximum. */
  parsed({ path, problems, warnings, skipped }: Pick<ReadFile, 'path' | keyof ManifestProblems>): void {
    this.#problems.push(...problems);
    this.#warnings.push(...warnings);
    this.#skipped.push(...skipped);
    this.#counts.set(path, problems.length);
  }

  /** @throws TooManyProblems when the file has the maximum number of issues */
  report(place: Place, issue: Issue): void {
    this.#report(place, issue);
  }

  /** The same for a name that a bundled definition has. */
  reserved(place: Place, issue: Issue): void {
    this.#report(place, issue, { code: 'manifest_read_only' });
  }

  #report(place: Place, issue: Issue, more: Pick<ManifestProblem, 'code'> = {}): void {
    const count = (this.#counts.get(place.file) ?? 0) + 1;
    if (count <= limits.manifestProblems) {
      this.#counts.set(place.file, count);
      this.#problems.push({ ...problemAt(place, issue), ...more });
    }
    if (count >= limits.manifestProblems) throw new TooManyProblems();
  }

  warn(place: Place, issue: Issue): void {
    const key = `${place.file} warnings`;
    const count = (this.#counts.get(key) ?? 0) + 1;
    if (count > limits.manifestProblems) return;
    this.#counts.set(key, count);
    this.#warnings.push(problemAt(place, issue));
  }

  /** Runs `work` until `report` throws TooManyProblems. */
  guarded(work: () => void): void {
    try {
      work();
    } catch (fault) {
      if (!(fault instanceof TooManyProblems)) throw fault;
    }
  }

  /** All issues, by file and position. */
  sorted(): ManifestProblems {
    const byPlace = (a: ManifestProblem, b: ManifestProblem): number =>
      a.file === b.file ? a.line - b.line || a.column - b.column : a.file < b.file ? -1 : 1;
    return {
      problems: this.#problems.toSorted(byPlace),
      warnings: this.#warnings.toSorted(byPlace),
      skipped: this.#skipped.toSorted(byPlace),
    };
  }
}

function problemAt({ file, document }: Place, { path, part, message }: Issue): ManifestProblem {
  const { line, column } = document.place(path, part);
  return { file, line, column, field: fieldName(path), message };
}
