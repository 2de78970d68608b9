/**
 * Decides what depends on the other files of the folder: missing files and imports, imports in another form, and how a
 * script reads its first argument. After it, a draft says the same without the original's rules.
 */
import type { Capability } from '../../src/domain/action-types.ts';
import { isJsonObject } from '../../src/domain/json.ts';
import type { Json } from '../../src/domain/json.ts';
import { readsJson } from '../../src/catalog/build/build-script.ts';
import type { FieldPath } from '../../src/catalog/check/problem.ts';
import type { ImportKind } from '../../src/catalog/read/imports.ts';
import { isPath } from '../../src/catalog/read/imports.ts';
import type { ReadDocument } from '../../src/catalog/read/read-file.ts';
import type { Draft, Tolerance } from './draft.ts';
import type { FoundImport } from './old-imports.ts';

/** What is known about the folder. */
export interface Surroundings {
  /** The text of a file, by its path in the manifest; null if there is none. */
  textOf(path: string, importer: ReadDocument): string | null;
  find(written: string, kind: ImportKind, importer: ReadDocument): FoundImport;
}

const KINDS: Readonly<Record<string, ImportKind>> = {
  agents: 'agent',
  tools: 'tool',
  relics: 'relic',
  workflows: 'workflow',
  skills: 'skill',
};
const IMPLEMENTATION = ['implementation'] as const;

export function settle(draft: Draft, read: ReadDocument, around: Surroundings): void {
  new Settling(draft, read, around).run();
}

class Settling {
  readonly #draft: Draft;
  readonly #read: ReadDocument;
  readonly #around: Surroundings;
  /** Items to remove when all are settled, by the path of their list. */
  readonly #removed = new Map<string, Set<number>>();

  constructor(draft: Draft, read: ReadDocument, around: Surroundings) {
    this.#draft = draft;
    this.#read = read;
    this.#around = around;
  }

  run(): void {
    const tolerances = new Map(this.#draft.tolerances.map(([path, tolerance]) => [JSON.stringify(path), tolerance]));
    if (this.#read.kind === 'agent' || this.#read.kind === 'workflow') this.#imports(tolerances);
    for (const [path, tolerance] of this.#draft.tolerances) {
      if (path.at(-1) === 'file') this.#file(path, tolerance);
      else if (path[0] === 'context_feeds') this.#feed(path, tolerance);
      else if (tolerance.assumed !== undefined) this.#argument(tolerance.assumed);
    }
    for (const [list, indexes] of this.#removed) this.#draft.removeItems(JSON.parse(list) as FieldPath, indexes);
    this.#emptyPersona();
    if (this.#read.kind === 'workflow') this.#targets(['steps']);
  }

  #imports(tolerances: ReadonlyMap<string, Tolerance>): void {
    for (const [field, kind] of Object.entries(KINDS)) {
      const list = this.#draft.get(['import', field]);
      if (!Array.isArray(list)) continue;
      for (const [index, written] of list.entries()) {
        const path = ['import', field, index];
        if (typeof written === 'string') this.#import(path, written, kind, tolerances.get(JSON.stringify(path)));
      }
    }
  }

  #import(path: FieldPath, written: string, kind: ImportKind, tolerance: Tolerance | undefined): void {
    const found = this.#around.find(written, kind, this.#read);
    if (found !== null && 'faulty' in found) {
      this.#draft.lose(path, found.faulty, 'value');
      this.#remove(path);
      if (tolerance?.grants !== undefined) this.#grant(path, tolerance.grants);
    } else if (found !== null) {
      if (found.note !== null) this.#draft.noteValue(path, found.note);
      if (found.written !== written) this.#draft.set(path, found.written);
    } else if (tolerance !== undefined) {
      this.#draft.lose(path, tolerance.missing, 'value');
      const other = this.#other(tolerance, kind);
      if (other === null) this.#remove(path);
      else this.#draft.set(path, other);
      if (tolerance.grants !== undefined) this.#grant(path, tolerance.grants);
    }
  }

  /** The first of the other names that exists. */
  #other({ others = [] }: Tolerance, kind: ImportKind): string | null {
    return (
      others.find((name) => {
        const found = this.#around.find(name, kind, this.#read);
        return found !== null && 'name' in found;
      }) ?? null
    );
  }

  #grant(from: FieldPath, capability: Capability): void {
    const granted = this.#draft.get(['capabilities']);
    if (granted === undefined) this.#draft.set(['capabilities'], [capability], from);
    else if (Array.isArray(granted) && !granted.includes(capability)) {
      this.#draft.set(['capabilities', granted.length], capability, from);
    }
  }

  /** A file of the persona. */
  #file(path: FieldPath, { missing, convert }: Tolerance): void {
    const written = this.#draft.get(path);
    if (typeof written !== 'string') return;
    const text = this.#around.textOf(written, this.#read);
    const owner = path.slice(0, -1);
    if (text === null) {
      this.#draft.lose(path, missing, 'value');
      this.#remove(owner);
    } else if (convert !== undefined) {
      const { text: converted, note } = convert(text);
      if (note !== null) this.#draft.lose(path, note, 'value');
      if (converted === '') this.#remove(owner);
      else this.#draft.set(owner, converted, path);
    }
  }

  /** The source of a feed that the author imported as a feed; the agent imports its tool. */
  #feed(path: FieldPath, tolerance: Tolerance): void {
    const written = String(this.#draft.get(path));
    const found = this.#around.find(written, 'tool', this.#read);
    if (found !== null && 'faulty' in found) {
      this.#draft.lose(path, found.faulty, 'value');
      return this.#remove(path.slice(0, -2));
    }
    if (found === null) this.#draft.lose(path, tolerance.missing, 'value');
    else if (found.note !== null) this.#draft.noteValue(path, found.note);
    const other = found === null ? this.#other(tolerance, 'tool') : null;
    const used = found ?? (other === null ? null : { written: other, name: other });
    if (used === null) return this.#remove(path.slice(0, -2));
    this.#draft.set(path, used.name);
    const tools = this.#draft.get(['import', 'tools']);
    if (!Array.isArray(tools)) this.#draft.set(['import', 'tools'], [used.written], path);
    else if (!tools.includes(used.written)) this.#draft.set(['import', 'tools', tools.length], used.written, path);
  }

  /** agent-lib gives a script the path of a file, unless the script clearly reads JSON. */
  #argument(assumed: 'file'): void {
    const { type, script, entrypoint } = isJsonObject(this.#draft.get(IMPLEMENTATION))
      ? (this.#draft.get(IMPLEMENTATION) as Record<string, Json>)
      : {};
    if (type !== 'script') return;
    const source =
      typeof entrypoint === 'string'
        ? this.#around.textOf(entrypoint, this.#read)
        : typeof script === 'string'
          ? script
          : '';
    if (!readsJson(source ?? '')) this.#draft.set([...IMPLEMENTATION, 'argument'], assumed, IMPLEMENTATION);
  }

  /** Without any part, the description or the summary is the persona. */
  #emptyPersona(): void {
    const parts = this.#draft.get(['persona', 'agent']);
    if (!Array.isArray(parts) || parts.length > 0) return;
    const from = this.#draft.has(['description']) ? 'description' : 'summary';
    this.#draft.lose(['persona', 'agent'], `none of its parts has text, so the ${from} is the persona`, 'value');
    this.#draft.set(['persona', 'agent'], this.#draft.get([from]) ?? '');
  }

  /** Steps name what they run as imports do. */
  #targets(path: FieldPath): void {
    const steps = this.#draft.get(path);
    if (!Array.isArray(steps)) return;
    for (const [index, step] of steps.entries()) {
      if (!isJsonObject(step)) continue;
      const { type, target } = step;
      const kind = Object.values(KINDS).find((one) => one === type);
      if (kind !== undefined && typeof target === 'string') this.#target([...path, index, 'target'], target, kind);
      for (const inner of ['steps', 'else', 'catch', 'finally']) this.#targets([...path, index, inner]);
      for (const at of Array.isArray(step['cases']) ? step['cases'].keys() : []) {
        this.#targets([...path, index, 'cases', at, 'steps']);
      }
    }
  }

  #target(path: FieldPath, written: string, kind: ImportKind): void {
    const imported = this.#draft.get(['import', `${kind}s`]);
    const isImported = (Array.isArray(imported) ? imported : []).some((one) => {
      const found = typeof one === 'string' && isPath(one) ? this.#around.find(one, kind, this.#read) : null;
      return found !== null && 'name' in found && found.name === written;
    });
    const found = isImported ? null : this.#around.find(written, kind, this.#read);
    if (found !== null && 'faulty' in found) {
      this.#draft.lose(path, `${found.faulty}; the step fails when it runs`, 'value');
      return this.#draft.set([...path.slice(0, -1), 'optional'], true);
    }
    if (found === null || found.written === written) return;
    if (found.note !== null) this.#draft.noteValue(path, found.note);
    this.#draft.set(path, found.written);
  }

  #remove(path: FieldPath): void {
    const index = path.at(-1);
    if (typeof index !== 'number') return this.#draft.remove(path);
    const list = JSON.stringify(path.slice(0, -1));
    this.#removed.set(list, (this.#removed.get(list) ?? new Set()).add(index));
  }
}
