/**
 * What the imports of the original refer to (M2), in the form of this system: a path without its extension or to a folder, a
 * path from a folder above the importer, `builtin/name`, and a name whose file is where the original looks for it.
 */
import type { ImportIndex, ImportKind } from '../../src/catalog/read/imports.ts';
import { isPath } from '../../src/catalog/read/imports.ts';
import { folderOf, normalPath, relativeTo } from '../../src/catalog/read/paths.ts';
import type { PathIndex } from '../../src/catalog/read/paths.ts';
import type { ReadDocument } from '../../src/catalog/read/read-file.ts';

/** A document of the folder; or, without one, a definition of another folder. */
interface ImportTarget {
  /** How the import is written in this system. */
  readonly written: string;
  readonly name: string;
  readonly target: ReadDocument | null;
  /** How it was understood, if that is not obvious; else null. */
  readonly note: string | null;
}

/** `faulty`: it exists, but cannot be used. Null: it does not exist. */
export type FoundImport = ImportTarget | { readonly faulty: string } | null;

const EXTENSIONS = ['.yml', '.yaml'] as const;

export class OldImports {
  readonly #index: ImportIndex<ReadDocument>;
  readonly #paths: PathIndex;
  readonly #isFile: (path: string) => boolean;

  constructor(index: ImportIndex<ReadDocument>, paths: PathIndex, isFile: (path: string) => boolean) {
    this.#index = index;
    this.#paths = paths;
    this.#isFile = isFile;
  }

  find(written: string, kind: ImportKind, importer: ReadDocument): FoundImport {
    const plain = this.#index.resolve(written, kind, importer);
    if ('faulty' in plain) return plain;
    if ('name' in plain) return { ...plain, written, note: null };
    if (!isPath(written)) return this.#whereNamed(written, kind, importer);
    if (this.#isFile(this.#paths.resolve(importer.file, written))) return null;
    const file = this.#elsewhere(written, kind, importer);
    if (file !== null) return this.#inside(file, kind, importer, `understood as the file ${file}`);
    const name = bareName(written);
    const named = name === null ? null : this.find(name, kind, importer);
    return named === null || 'faulty' in named
      ? named
      : { ...named, note: `understood as the ${kind} "${named.name}"` };
  }

  /** A name that no manifest has, but a file or a folder. */
  #whereNamed(name: string, kind: ImportKind, importer: ReadDocument): FoundImport {
    const file = this.#upwards(importer.file, [`${kind}s/${name}/${kind}`, `${name}/${kind}`, `${kind}s/${name}`]);
    return file === null ? null : this.#inside(file, kind, importer, `understood as the ${kind} in ${file}`);
  }

  #inside(file: string, kind: ImportKind, importer: ReadDocument, note: string): FoundImport {
    const written = pathFrom(importer.file, file);
    const found = this.#index.resolve(written, kind, importer);
    if ('faulty' in found) return found;
    return 'name' in found ? { ...found, written, note } : null;
  }

  #elsewhere(written: string, kind: ImportKind, importer: ReadDocument): string | null {
    const path = relativeTo(importer.file, written);
    for (const end of ['', `/${kind}`]) {
      for (const extension of EXTENSIONS) {
        if (this.#isFile(`${path}${end}${extension}`)) return `${path}${end}${extension}`;
      }
    }
    if (/^([/\\.]|[A-Za-z]:)/.test(written)) return null;
    const plain = normalPath(written);
    return this.#upwards(importer.file, [plain, `${plain}/${kind}`], ['', ...EXTENSIONS]);
  }

  /** The first of `paths` that exists in the importer's folder, or in one above it. */
  #upwards(importer: string, paths: readonly string[], extensions: readonly string[] = EXTENSIONS): string | null {
    const steps = folderOf(importer).split('/');
    for (let depth = steps.length; depth >= 0; depth -= 1) {
      const folder = steps.slice(0, depth).join('/');
      for (const path of paths) {
        for (const extension of extensions) {
          const file = `${folder === '' ? '' : `${folder}/`}${path}${extension}`;
          if (this.#isFile(file) && file !== importer) return file;
        }
      }
    }
    return null;
  }
}

/** The path of a file from the folder of another one. */
function pathFrom(importer: string, file: string): string {
  const from = folderOf(importer).split('/').filter(Boolean);
  const to = file.split('/').filter(Boolean);
  let same = 0;
  while (same < from.length && same < to.length - 1 && from[same] === to[same]) same += 1;
  const up = from.length - same;
  return `${up === 0 ? './' : '../'.repeat(up)}${to.slice(same).join('/')}`;
}

/** The name in `builtin/exec` and in `calculator.yml`; null for other paths. */
function bareName(written: string): string | null {
  const name = written.replace(/^built-?in\//i, '').replace(/\.ya?ml$/i, '');
  return isPath(name) || name === '' ? null : name;
}
