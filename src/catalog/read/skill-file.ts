/**
 * Reads the `SKILL.md` of a skill (C8) in the format that other agents use: YAML front matter with `name` and
 * `description`, then Markdown. Everything else in the front matter is kept under `metadata` and has no effect.
 *
 * What real skills often get wrong is a warning, not an issue: a name that differs from its folder or is not in the
 * format's form, and a value with a colon that lacks its quotes.
 */
import type { ManifestFile } from '../../domain/catalog.ts';
import type { JsonObject } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import { quoted } from '../check/problem.ts';
import type { Issue } from '../check/issues.ts';
import { splitFrontMatter } from './front-matter.ts';
import { folderOf } from './paths.ts';
import { readYaml } from './yaml-file.ts';
import type { YamlDocument, YamlFile } from './yaml-file.ts';
import type { TokenQuota } from './yaml-tokens.ts';

/** The form of names in the common format, at most 64 characters. */
const COMMON_NAME = /^(?=.{1,64}$)[a-z0-9]+(-[a-z0-9]+)*$/;
/** The form of names here: what is safe in a URL, a prompt and a path. */
const NAME = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/;

/** `SKILL.md` in any case; a file in another case needs the front matter of a skill, since it may be documentation. */
export function isSkillFile({ path, text }: Pick<ManifestFile, 'path' | 'text'>): boolean {
  if (/(^|\/)SKILL\.md$/.test(path)) return true;
  const yaml = /(^|\/)skill\.md$/i.test(path) ? splitFrontMatter(text)?.yaml : undefined;
  return yaml !== undefined && /^["']?description["']?[ \t]*:/m.test(yaml) && !/^["']?kind["']?[ \t]*:/m.test(yaml);
}

/** The folders of skills. Every file below one of them belongs to its skill and is not a manifest; this includes another `SKILL.md`. */
export class SkillFolders {
  readonly #skills = new Map<string, string>();

  constructor(files: Iterable<Pick<ManifestFile, 'path' | 'text'>>) {
    for (const file of files) {
      const folder = folderOf(file.path);
      // A skill that is not in a folder has no files.
      if (folder === '' || !isSkillFile(file)) continue;
      const other = this.#skills.get(folder);
      // Of SKILL.md and skill.md in one folder, the first one is the skill.
      if (other === undefined || file.path < other) this.#skills.set(folder, file.path);
    }
  }

  /** The `SKILL.md` of the outermost skill that contains the file; null for that file itself, and outside of skills. */
  ownerOf(path: string): string | null {
    for (let end = path.indexOf('/', 1); end !== -1; end = path.indexOf('/', end + 1)) {
      const owner = this.#skills.get(path.slice(0, end));
      if (owner !== undefined) return owner === path ? null : owner;
    }
    return null;
  }
}

/** A `SKILL.md`, or why it is none. Lines and columns are 1-based. */
type ReadSkill =
  | {
      readonly document: YamlDocument;
      /** Empty if neither the front matter nor the folder has a name. */
      readonly name: string;
      /** The front matter with this name, and the Markdown as `text`. */
      readonly value: JsonObject;
      /** What is unusual, which becomes warnings. */
      readonly notes: readonly Issue[];
    }
  | { readonly message: string; readonly line: number; readonly column: number };

/** @param quota tokens that all files of a load share */
export function readSkillFile({ path, text }: Pick<ManifestFile, 'path' | 'text'>, quota: TokenQuota): ReadSkill {
  const start = { line: 1, column: 1 };
  if (folderOf(path) === '') {
    return { ...start, message: 'a skill needs a folder of its own: its path must be <name>/SKILL.md' };
  }
  const parts = splitFrontMatter(text);
  if (parts === null) {
    return {
      ...start,
      message: 'a skill begins with front matter: ---, the lines name: and description:, and again ---',
    };
  }
  const { file, wasRepaired } = readFrontMatter(parts.yaml, quota);
  const [document] = file.documents;
  const [error] = file.errors;
  if (error !== undefined || document === undefined) return error ?? { ...start, message: 'the front matter is empty' };
  const { name, note } = nameOf(document.value['name'], folderOf(path).replace(/^.*\//, ''));
  const notes: Issue[] = [
    ...(wasRepaired ? [{ path: [], part: 'value', message: REPAIRED } as const] : []),
    ...(note === null ? [] : [{ path: ['name'], part: 'value', message: note } as const]),
  ];
  const value: JsonObject = { ...document.value, ...(name === null ? {} : { name }), text: parts.body };
  return { document: { ...document, source: text }, name: name ?? '', value, notes };
}

const REPAIRED =
  'the front matter is not valid YAML; each line "name: value" was read as text (a value with ": " needs quotes)';

/** The front matter; if it is not valid YAML, as it is meant by agents that read it line by line. */
function readFrontMatter(yaml: string, quota: TokenQuota): { readonly file: YamlFile; readonly wasRepaired: boolean } {
  const file = readYaml(yaml, quota);
  if (file.errors.length === 0 || yaml.length > limits.yamlChars) return { file, wasRepaired: false };
  const again = readYaml(withQuotes(yaml), quota);
  return again.errors.length === 0 ? { file: again, wasRepaired: true } : { file, wasRepaired: false };
}

/** Puts plain values of one line in quotes, where YAML would read more than text. */
function withQuotes(yaml: string): string {
  const lines = yaml.split('\n').map((line) => line.trimEnd());
  return lines
    .map((line, index) => {
      const [, key = '', value = ''] = /^([A-Za-z][\w-]*:[ \t]+)([^\s"'|>].*)$/.exec(line) ?? [];
      const isPlain = value !== '' && !/^[ \t]/.test(lines[index + 1] ?? '');
      return isPlain && /:(\s|$)|\s#|^[[{&*!%@`]/.test(value) ? `${key}${JSON.stringify(value)}` : line;
    })
    .join('\n');
}

/** The name of a skill, and what is unusual about it; null if neither the front matter nor the folder has one. */
function nameOf(written: unknown, folder: string): { readonly name: string | null; readonly note: string | null } {
  const given = typeof written === 'string' ? written.trim() : typeof written === 'number' ? String(written) : '';
  if (NAME.test(given)) {
    if (!COMMON_NAME.test(given)) {
      const note = 'other agents accept only lower-case letters, digits and single hyphens';
      return { name: given, note };
    }
    const note = given === folder ? null : `differs from the name of its folder, ${quoted(folder)}`;
    return { name: given, note };
  }
  if (!NAME.test(folder)) return { name: null, note: null };
  const why = written === undefined ? 'is missing' : `${quoted(written)} is not the name of a skill`;
  return { name: folder, note: `${why}; the name of its folder is used: ${quoted(folder)}` };
}
