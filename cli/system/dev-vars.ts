/**
 * Reads `.dev.vars` in the one way that all commands share: as wrangler does (with `dotenv`), except that what wrangler would
 * drop or change is an error. A line may contain a secret, so that no message repeats one.
 */
import { RUNNER_SETTINGS } from '../../container-runner/config.ts';
import { nearestNames } from '../../src/domain/nearest.ts';
import { WORKER_SETTINGS } from '../../src/settings/setting-table.ts';
import { projectText } from '../project/real-path.ts';
import { START_SETTINGS } from './start-settings.ts';

const FILE = '.dev.vars';

export interface DevVars {
  readonly values: Readonly<Record<string, string>>;
  /** What cannot be read; empty for a valid file. */
  readonly issues: readonly DevVarsIssue[];
  /** The lines of the names, 1-based. */
  readonly lines: ReadonlyMap<string, number>;
}

export interface DevVarsIssue {
  /** 1-based. */
  readonly line: number;
  readonly message: string;
}

/** Every setting that a part of the system reads, without the `TOOL_…` secrets. */
const ALL_SETTINGS: readonly string[] = [
  ...new Set<string>([...WORKER_SETTINGS, ...START_SETTINGS, ...RUNNER_SETTINGS]),
];

/** The values of a project's `.dev.vars`; none without the file. @throws Error that names the file and the line */
export function devVarsOf(root: string): Readonly<Record<string, string>> {
  return valuesOf(devVarsText(root));
}

/** The text of a project's `.dev.vars`; empty without the file. @throws Error for a link out of the project */
export function devVarsText(root: string): string {
  return projectText(root, FILE) ?? '';
}

/** @param text of the file. @throws Error that names the file and the line of each part that cannot be read */
export function valuesOf(text: string): Readonly<Record<string, string>> {
  const { values, issues } = parseDevVars(text);
  if (issues.length > 0) throw new Error(issues.map(({ line, message }) => `${FILE}:${line}: ${message}`).join('\n'));
  return values;
}

/** @throws Error that names the file, the line and the nearest name of each setting that no part of the system reads */
export function checkNames(text: string): void {
  const unknown = unknownSettings(text).map(({ name, line, nearest }) => {
    const hint = nearest === null ? 'secrets of tools begin with TOOL_' : `did you mean ${nearest}?`;
    return `${FILE}:${line}: unknown setting ${name} (${hint})`;
  });
  if (unknown.length > 0) throw new Error(unknown.join('\n'));
}

export interface UnknownSetting {
  readonly name: string;
  readonly line: number;
  readonly nearest: string | null;
}

export function unknownSettings(text: string): readonly UnknownSetting[] {
  return [...parseDevVars(text).lines]
    .filter(([name]) => !isSetting(name))
    .map(([name, line]) => ({ name, line, nearest: nearestNames(name, ALL_SETTINGS)[0] ?? null }));
}

function isSetting(name: string): boolean {
  return name.startsWith('TOOL_') || ALL_SETTINGS.includes(name);
}

/** Nothing, or a comment. */
const EMPTY = /^\s*(?:#.*)?$/;
const ASSIGNMENT = /^\s*(?:export\s+)?([\w.-]+)\s*=[^\S\n]*/;
/** What may follow the closing quotation mark. */
const AFTER = /^[^\S\n]*(?:#[^\n]*)?(?:\n|$)/;

/** @param given of the file, decoded as UTF-8 */
export function parseDevVars(given: string): DevVars {
  const values: Record<string, string> = {};
  const lines = new Map<string, number>();
  const issues: DevVarsIssue[] = [];
  const text = given.replace(/^\uFEFF/, '').replaceAll(/\r\n?/g, '\n');
  if (/[\0\uFFFD]/.test(text)) {
    const line = text.slice(0, text.search(/[\0\uFFFD]/)).split('\n').length;
    return { values, lines, issues: [{ line, message: 'is not UTF-8 text; save the file as UTF-8' }] };
  }
  for (let rest = text, line = 1; rest !== '';) {
    const end = rest.indexOf('\n');
    const written = end === -1 ? rest : rest.slice(0, end);
    let read = written.length + 1;
    const [head, name = ''] = ASSIGNMENT.exec(written) ?? [];
    if (head === undefined) {
      if (!EMPTY.test(written)) issues.push({ line, message: 'is not NAME=value' });
    } else {
      const found = valueAt(rest.slice(head.length));
      const first = lines.get(name);
      if (found === null)
        issues.push({ line, message: `${name} has a quotation mark without its other one at the end` });
      else if (first !== undefined) issues.push({ line, message: `${name} is already set in line ${first}` });
      else Object.defineProperty(values, name, { value: found.value, enumerable: true });
      read = head.length + (found?.chars ?? written.length + 1 - head.length);
      if (first === undefined) lines.set(name, line);
    }
    line += rest.slice(0, read).split('\n').length - 1;
    rest = rest.slice(read);
  }
  return { values, lines, issues };
}

/** The value at the beginning of `text`, and the characters up to the next line; null for an unclosed quotation mark. */
function valueAt(text: string): { readonly value: string; readonly chars: number } | null {
  const [quote = ''] = text;
  if (quote === '"' || quote === "'" || quote === '`') {
    const [all, inside = ''] = QUOTED[quote].exec(text) ?? [];
    const [after] = all === undefined ? [] : (AFTER.exec(text.slice(all.length)) ?? []);
    if (all === undefined || after === undefined) return null;
    const value = quote === '"' ? inside.replaceAll(String.raw`\n`, '\n').replaceAll(String.raw`\r`, '\r') : inside;
    return { value, chars: all.length + after.length };
  }
  const end = text.indexOf('\n');
  const written = end === -1 ? text : text.slice(0, end);
  const [value = ''] = written.split('#', 1);
  return { value: value.trim(), chars: written.length + 1 };
}

/** As in dotenv, a quotation mark after a backslash does not end the value. */
const QUOTED = {
  '"': /^"((?:\\"|[^"])*)"/,
  "'": /^'((?:\\'|[^'])*)'/,
  '`': /^`((?:\\`|[^`])*)`/,
} as const;
