/** Resolves imports (M2): names and paths to documents, in constant time. */
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
  /** Computed lazily, because searching for similar names takes time. */
  | { readonly message: () => string };

export class ImportIndex<T extends Importable> {
  readonly #paths: PathIndex;
  readonly #isFile: (path: string) => boolean;
  readonly #bundled = new Map<ManifestKind, ReadonlySet<string>>();
  readonly #named = new Map<string, T[]>();
  readonly #inFile = new Map<string, T[]>();
  readonly #folders = new Set<string>();
  readonly #names = new Map<ManifestKind, Set<string>>();

  constructor(paths: PathIndex, isFile: (path: string) => boolean, bundled: Catalog | null) {
    this.#paths = paths;
    this.#isFile = isFile;
    for (const kind of ['agent', 'tool', 'relic', 'workflow', 'monument'] as const) {
      this.#bundled.set(kind, new Set(bundled?.list(kind).map(({ name }) => name)));
    }
  }

  add(found: T): void {
    const { kind, name, file } = found;
    grouped(this.#named, `${kind}/${name}`).push(found);
    grouped(this.#inFile, `${kind} ${file}`).push(found);
    this.#folders.add(`${kind}/${name} ${folderOf(file)}`);
    const names = this.#names.get(kind) ?? new Set();
    this.#names.set(kind, names.add(name));
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

  resolve(written: string, kind: ImportKind, importer: Importable): ImportResult<T> {
    const who = `${importer.kind} "${importer.name}" imports the ${kind} "${written}"`;
    if (!/[/\\]|\.(ya?ml|md|markdown)$/i.test(written)) {
      const target = nearest(this.named(kind, written), importer.file);
      if (target !== null) return { name: target.name, target };
      if (this.isBundled(kind, written)) return { name: written, target: null };
      return {
        message: () => {
          const known = [...new Set([...(this.#names.get(kind) ?? []), ...(this.#bundled.get(kind) ?? [])])];
          const near = nearestNames(written, known);
          return `${who}, which does not exist${near.length > 0 ? ` (nearest: ${near.join(', ')})` : ''}`;
        },
      };
    }
    const path = this.#paths.resolve(importer.file, written);
    if (!this.#isFile(path)) return { message: () => `${who}, but there is no file ${path}` };
    const inside = this.#inFile.get(`${kind} ${path}`) ?? [];
    const [only] = inside;
    if (only === undefined) return { message: () => `${who}, but ${path} contains no ${kind}` };
    if (inside.length > 1) {
      const some = inside.slice(0, 10).map(({ name }) => name);
      return { message: () => `${who}, but ${path} contains several (${some.join(', ')}); import one by name` };
    }
    return { name: only.name, target: only };
  }
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
