/**
 * The public declarations of the package's entry points, read from its `.d.ts` files: what each entry exports, and the types
 * of the package that these declarations refer to. `scripts/api-report.ts` writes them.
 *
 * Invariants
 * 1. An export that cannot be resolved is an error: it is never left out.
 * 2. A declaration refers only to types that an entry point exports, to types that its own module does not export (they
 *    are reported too), and to those that the caller lists as internal.
 */
import { readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';

interface Declaration {
  readonly name: string;
  readonly isType: boolean;
  readonly text: string;
  /** The module in which it is declared, and its name there. */
  readonly file: string;
  readonly declaredName: string;
}

/** Declarations that end with a brace. */
const BLOCKS: ReadonlySet<string> = new Set(['class', 'interface', 'enum', 'namespace']);

/** The declarations of one entry point, each sorted by name. */
export interface EntryDeclarations {
  readonly values: readonly string[];
  readonly types: readonly string[];
  /** Types that these refer to and that their module does not export, and the constants that types are derived from. */
  readonly parts: readonly string[];
  /** The blocks `declare module` that importing the entry adds to other packages. */
  readonly augmentations: readonly string[];
}

const DECLARED =
  /^(export )?(?:declare )?(?:abstract )?(class|function|interface|type|const|let|enum|namespace) ([\w$]+)/gm;

/**
 * @param root the folder of the package
 * @param entries the `.d.ts` file of each entry point by its name, relative to `root`
 * @param internal types that declarations may refer to although no entry exports them: `src/file.d.ts#Name`, or
 *   `src/file.d.ts` for all of a module, relative to `dist/`
 * @throws Error for an export that cannot be resolved; and one that lists all references to types that no entry exports,
 *   and all members of `internal` to which nothing refers
 */
export function declarationsOf(
  root: string,
  entries: Readonly<Record<string, string>>,
  internal: readonly string[],
): Record<string, EntryDeclarations> {
  const modules = new Modules();
  const exported = Object.entries(entries).map(([name, file]) => ({
    name,
    file: join(root, file),
    declarations: modules.exportsOf(join(root, file)),
  }));
  const known = new Set(exported.flatMap(({ declarations }) => declarations.map(originOf)));
  const unused = new Set(internal);
  const issues: string[] = [];

  const partsOf = (entry: string, declarations: readonly Declaration[]): Declaration[] => {
    const parts = new Map<string, Declaration>();
    const queue = [...declarations];
    for (let one = queue.shift(); one !== undefined; one = queue.shift()) {
      for (const used of modules.usedBy(one)) {
        const path = relative(join(root, 'dist'), used.file);
        const listed = [path, `${path}#${used.declaredName}`].filter((name) => internal.includes(name));
        listed.forEach((name) => unused.delete(name));
        if (known.has(originOf(used)) || parts.has(originOf(used)) || listed.length > 0) continue;
        if (used.isType && (used.file !== one.file || used.isExported)) {
          issues.push(`${entry}: ${one.name} refers to ${used.declaredName} (${path}), which no entry point exports`);
          continue;
        }
        parts.set(originOf(used), used);
        queue.push(used);
      }
    }
    return [...parts.values()];
  };

  const result = Object.fromEntries(
    exported.map(({ name, file, declarations }) => [
      name,
      {
        values: textsOf(declarations.filter(({ isType }) => !isType)),
        types: textsOf(declarations.filter(({ isType }) => isType)),
        parts: textsOf(partsOf(name, declarations)),
        augmentations: modules.augmentationsOf(file),
      },
    ]),
  );
  issues.push(...[...unused].map((name) => `${name} is listed as internal, but nothing refers to it`));
  if (issues.length > 0) throw new Error(issues.join('\n'));
  return result;
}

function originOf({ file, declaredName }: Declaration): string {
  return `${file}#${declaredName}`;
}

function textsOf(declarations: readonly Declaration[]): string[] {
  const byName = new Map(declarations.map((one) => [one.name, one.text]));
  return [...byName].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, text]) => text);
}

type Local = Declaration & { readonly isExported: boolean };

/** The modules of declarations that were read, by file. */
class Modules {
  readonly #texts = new Map<string, string>();
  readonly #declared = new Map<string, readonly Local[]>();

  /** With what the module passes on. */
  exportsOf(file: string): Declaration[] {
    const text = this.#read(file);
    const named = [...text.matchAll(/^export (type )?\{([^}]*)\} from ['"](\.[^'"]+)['"];$/gm)].flatMap(
      ([, allTypes, list = '', specifier = '']) =>
        listed(file, list).map(({ original, name, isType }) =>
          this.#passedOn(file, targetOf(file, specifier), original, name, isType || allTypes !== undefined),
        ),
    );
    const all = [...text.matchAll(/^export \* from ['"](\.[^'"]+)['"];$/gm)].flatMap(([, specifier = '']) =>
      this.exportsOf(targetOf(file, specifier)),
    );
    const declared = this.#declaredIn(file);
    // What is declared or imported, and exported in a statement of its own.
    const local = [...text.matchAll(/^export (type )?\{([^}]*)\};$/gm)].flatMap(([, allTypes, list = '']) =>
      listed(file, list).map(({ original, name, isType }) => {
        const asType = isType || allTypes !== undefined;
        const here = declared.find((one) => one.name === original);
        if (here !== undefined) return exportedAs(here, name, asType);
        const from = this.#importsOf(file).get(original);
        if (from === undefined) throw new Error(`${file}: cannot resolve the export "${original}"`);
        return this.#passedOn(file, from.file, from.name, name, asType);
      }),
    );
    return [...named, ...all, ...declared.filter(({ isExported }) => isExported), ...local];
  }

  /** The declarations of the package to which this one refers. */
  usedBy({ text, file, declaredName }: Declaration): Local[] {
    const code = text.replaceAll(/'[^'\n]*'|"[^"\n]*"/g, '');
    const names = [...code.matchAll(/\b([A-Z][\w$]*)\b|\btypeof ([\w$]+)/g)].map(([, type, value]) => type ?? value);
    return [...new Set(names)].flatMap((name) => {
      if (name === undefined || name === declaredName) return [];
      const from = this.#importsOf(file).get(name);
      if (from === undefined) return this.#declaredIn(file).filter((one) => one.name === name);
      const found = this.#passedOn(file, from.file, from.name, name, true);
      return this.#declaredIn(found.file).filter((one) => one.name === found.declaredName);
    });
  }

  augmentationsOf(file: string): string[] {
    const text = this.#read(file);
    return [...text.matchAll(/^declare module ['"][^'"]+['"] /gm)].map(({ index }) => declarationAt(text, index, true));
  }

  #read(file: string): string {
    const text = this.#texts.get(file) ?? readFileSync(file, 'utf8');
    this.#texts.set(file, text);
    return text;
  }

  /** @throws Error if the module does not export it */
  #passedOn(by: string, file: string, original: string, name: string, asType: boolean): Declaration {
    const found = this.exportsOf(file).find((one) => one.name === original);
    if (found === undefined) throw new Error(`${by}: "${original}" is not exported by ${file}`);
    return exportedAs(found, name, asType);
  }

  /** What the module imports from others of the package: by local name, the file and the name there. */
  #importsOf(file: string): Map<string, { readonly file: string; readonly name: string }> {
    const found = [...this.#read(file).matchAll(/^import (?:type )?\{([^}]*)\} from ['"](\.[^'"]+)['"];$/gm)];
    return new Map(
      found.flatMap(([, list = '', specifier = '']) =>
        listed(file, list).map(({ original, name }) => [
          name,
          { file: targetOf(file, specifier), name: original } as const,
        ]),
      ),
    );
  }

  #declaredIn(file: string): readonly Local[] {
    const known = this.#declared.get(file);
    if (known !== undefined) return known;
    const text = this.#read(file);
    const declared = [...text.matchAll(DECLARED)].map(({ 1: exported, 2: kind = '', 3: name = '', index }) => ({
      name,
      isExported: exported !== undefined,
      isType: kind === 'interface' || kind === 'type',
      text: publicText(declarationAt(text, index, BLOCKS.has(kind))),
      file,
      declaredName: name,
    }));
    this.#declared.set(file, declared);
    return declared;
  }
}

/** Of a class that is exported as a type only, users cannot call the constructor. */
function exportedAs(found: Declaration, name: string, asType: boolean): Declaration {
  const isType = found.isType || asType;
  if (!isType || found.isType) return { ...found, name, isType };
  return { ...found, name, isType, text: found.text.replace(/^ {4}constructor\([^]*?\);\n/m, '') };
}

/** The file of a relative import. */
function targetOf(file: string, specifier: string): string {
  return join(dirname(file), specifier.replace(/\.js$/, '.d.ts'));
}

/** `a, type b as c`: the names inside and outside. */
function listed(
  file: string,
  list: string,
): { readonly original: string; readonly name: string; readonly isType: boolean }[] {
  const items = list.split(',').filter((item) => item.trim() !== '');
  return items.map((item) => {
    const [, isType, original, renamed] = /^\s*(type )?([\w$]+)(?: as ([\w$]+))?\s*$/.exec(item) ?? [];
    if (original === undefined) throw new Error(`${file}: cannot read "${item.trim()}" in a list of names`);
    return { original, name: renamed ?? original, isType: isType !== undefined };
  });
}

/** From its first character to its end, a brace or a semicolon, without private members. */
function declarationAt(text: string, start: number, isBlock: boolean): string {
  let depth = 0;
  for (let at = start; at < text.length; at += 1) {
    const character = text[at];
    if (character === '{' || character === '(' || character === '[') depth += 1;
    if (character === '}' || character === ')' || character === ']') depth -= 1;
    const isEnd = isBlock ? character === '}' && (text[at + 1] ?? '\n') === '\n' : character === ';';
    if (isEnd && depth === 0) return withoutComments(text.slice(start, at + 1));
  }
  throw new Error(`a declaration has no end: ${text.slice(start, start + 80)}`);
}

/** Only the platform and the runtime call methods of objects: users export and bind the classes. */
function publicText(declaration: string): string {
  const [, head] =
    /^(export declare class [\w$]+ extends (?:DurableObject|WorkerEntrypoint)<\w+>)/.exec(declaration) ?? [];
  return head === undefined ? declaration : `${head} { /* internal */ }`;
}

function withoutComments(text: string): string {
  return text
    .replaceAll(/^\s*\/\*\*[^]*?\*\/\n/gm, '')
    .replaceAll(/^\s*(private .*|#private;|protected .*)\n/gm, '')
    .replaceAll(/ +$/gm, '');
}
