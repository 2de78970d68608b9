/** Resolves imports (M2): names and paths to documents, in constant time. */
import { MANIFEST_KINDS } from '../../domain/catalog.ts';
import type { ManifestKind } from '../../domain/catalog.ts';
import type { Catalog } from '../catalog.ts';
import { nearestNames } from '../../domain/nearest.ts';
import { folderOf } from './paths.ts';
import type { PathIndex } from './paths.ts';

export type ImportKind = Exclude<ManifestKind, 'monument'>;

interface Importable {
  readonly file: string;
  readonly kind: ManifestKind;
  readonly name: string;
}

/** Result of an import: a document, a bundled definition (without target), or an error. */
export type ImportResult<T> =
  | { readonly name: string; readonly target: T | null }
  /** The file exists, but has errors. */
  | { readonly faulty: string }
  /** Computed lazily, because searching for similar names takes time. */
  | { readonly message: () => string };

export interface FolderOfFiles {
  isFile(path: string): boolean;
  /** Whether the file may contain a definition of this kind that did not load. */
  hasErrors(path: string, kind: ManifestKind): boolean;
  /** The file of a code tool that has errors, by the name of the tool; null if there is none. */
  faultyCode(name: string): string | null;
}

export class ImportIndex<T extends Importable> {
  readonly #paths: PathIndex;
  readonly #folder: FolderOfFiles;
  readonly #bundled = new Map<ManifestKind, ReadonlySet<string>>();
  readonly #named = new Map<string, T[]>();
  readonly #inFile = new Map<string, T[]>();
  readonly #folders = new Set<string>();
  readonly #names = new Map<ManifestKind, Set<string>>();

  constructor(paths: PathIndex, folder: FolderOfFiles, bundled: Catalog | null) {
    this.#paths = paths;
    this.#folder = folder;
    for (const kind of MANIFEST_KINDS) {
      this.#bundled.set(kind, new Set(bundled?.list(kind).map(({ name }) => name)));
    }
  }

  add(found: T): void {
    const { kind, name, file } = found;
    grouped(this.#named, `${kind}/${name}`).push(found);
    this.addFile(found, file);
    this.#folders.add(`${kind}/${name} ${folderOf(file)}`);
    const names = this.#names.get(kind) ?? new Set();
    this.#names.set(kind, names.add(name));
  }

  /** A path to `file` refers to `found`. */
  addFile(found: T, file: string): void {
    grouped(this.#inFile, `${found.kind} ${file}`).push(found);
  }

  named(kind: ManifestKind, name: string): readonly T[] {
    return this.#named.get(`${kind}/${name}`) ?? [];
  }

  isBundled(kind: ManifestKind, name: string): boolean {
    return this.#bundled.get(kind)?.has(name) === true;
  }

  /** Whether the folder of `file` has a definition with this name. */
  inSameFolder(kind: ManifestKind, name: string, file: string): boolean {
    return this.#folders.has(`${kind}/${name} ${folderOf(file)}`);
  }

  /** What a path or a name in an importer refers to. */
  resolve(written: string, kind: ImportKind, importer: Importable): ImportResult<T> {
    const who = `${importer.kind} "${importer.name}" imports the ${kind} "${written}"`;
    if (!isPath(written)) return this.#byName(written, kind, importer, who);
    const path = this.#paths.resolve(importer.file, written);
    if (this.#folder.isFile(path)) return this.#inside(path, kind, who);
    // a skill may also be named by its folder
    const skill = `${path}/SKILL.md`;
    if (kind === 'skill' && this.#folder.isFile(skill)) return this.#inside(skill, kind, who);
    return { message: () => `${who}, but there is no file ${path}` };
  }

  #byName(name: string, kind: ImportKind, importer: Importable, who: string): ImportResult<T> {
    const target = nearest(this.named(kind, name), importer.file);
    if (target !== null) return { name: target.name, target };
    if (this.isBundled(kind, name)) return { name, target: null };
    const code = kind === 'tool' ? this.#folder.faultyCode(name) : null;
    if (code !== null) return { faulty: `${code} has errors, so the tool in it is omitted` };
    return {
      message: () => {
        const known = [...new Set([...(this.#names.get(kind) ?? []), ...(this.#bundled.get(kind) ?? [])])];
        const near = nearestNames(name, known);
        return `${who}, which does not exist${near.length > 0 ? ` (nearest: ${near.join(', ')})` : ''}`;
      },
    };
  }

  /** The definition in a file. */
  #inside(path: string, kind: ImportKind, who: string): ImportResult<T> {
    const inside = this.#inFile.get(`${kind} ${path}`) ?? [];
    const [only] = inside;
    if (only === undefined) {
      if (this.#folder.hasErrors(path, kind)) return { faulty: `${path} has errors, so the ${kind} in it is omitted` };
      return { message: () => `${who}, but ${path} contains no ${kind}` };
    }
    if (inside.length > 1) {
      const some = inside.slice(0, 10).map(({ name }) => name);
      return { message: () => `${who}, but ${path} contains several (${some.join(', ')}); import one by name` };
    }
    return { name: only.name, target: only };
  }
}

/** Whether an import is written as a path, which takes precedence over a name. */
export function isPath(written: string): boolean {
  return /[/\\]|\.(ya?ml|md|markdown)$/i.test(written);
}

function grouped<T>(groups: Map<string, T[]>, key: string): T[] {
  const group = groups.get(key) ?? [];
  groups.set(key, group);
  return group;
}

/** Of several definitions with one name, the one whose folder shares the longest path with the importer's. */
function nearest<T extends Importable>(candidates: readonly T[], importer: string): T | null {
  const [only, ...others] = candidates;
  if (only === undefined || others.length === 0) return only ?? null;
  const from = folderOf(importer).split('/');
  let best = only;
  let most = -1;
  for (const candidate of candidates) {
    const to = folderOf(candidate.file).split('/');
    const differs = to.findIndex((step, index) => step !== from[index]);
    // prefer the importer's own folder to one that only shares a prefix
    const shared = differs === -1 ? to.length : differs;
    if (shared > most) {
      best = candidate;
      most = shared;
    }
  }
  return best;
}
