/**
 * References in texts of the original's workflows: `${step.field}`, `${input.x}` and `{{ step.field }}` become
 * `$(steps.step.field)` and `$(trigger.x)`. A name that the workflow does not have stays as it is.
 */
import type { Json } from '../../domain/json.ts';
import { isJsonObject } from '../../domain/json.ts';

/** What a name in a reference means. */
export interface Meaning {
  /** `steps.a`, `item` or `acc`. */
  readonly path: string;
  /** Whether `.output` and `.result` are the whole result. */
  readonly isWhole: boolean;
  /** Names of the step's results, for groups that hold a list. */
  readonly member: string | null;
}

export type Names = ReadonlyMap<string, Meaning>;

/** Variables of the original's contexts, with a value in every run of a workflow. */
const CONTEXT = 'TIMESTAMP|TIMESTAMP_UNIX|DATETIME|DATE|TIME|WORKFLOW_ID|SESSION_ID|USER_ID';
const REFERENCE = /\$\{\s*([A-Za-z_][\w.[\]-]{0,255})\s*\}|\{\{\s*([A-Za-z_][\w.[\]-]{0,255})\s*\}\}/g;
const VARIABLE = new RegExp(String.raw`\$(?:\{(${CONTEXT})\}|(${CONTEXT})(?![A-Za-z0-9_]))`, 'g');
const CONTEXT_NAME = new RegExp(`^(?:${CONTEXT})$`);
const WHOLE: ReadonlySet<string> = new Set(['output', 'outputs', 'result', 'response']);

/** The path of a reference, such as `steps.a.field`; null if the name is unknown. */
export function pathOf(written: string, names: Names): string | null {
  const [first = '', ...rest] = written.split('.');
  const tail = (members: readonly string[]): string => members.map((member) => `.${member}`).join('');
  if (first === 'trigger' || first === 'input' || first === 'inputs') return `trigger${tail(rest)}`;
  if (first === 'steps' && rest.length > 0) {
    const [name = '', ...members] = rest;
    return pathOf([name, ...(WHOLE.has(members[0] ?? '') ? members.slice(1) : members)].join('.'), names);
  }
  const meaning = names.get(first);
  if (meaning === undefined) return CONTEXT_NAME.test(first) ? `run.${first}` : null;
  const [member = '', ...more] = rest;
  const members = meaning.isWhole && WHOLE.has(member) ? more : rest;
  return `${meaning.path}${meaning.member === null ? '' : `.${meaning.member}`}${tail(members)}`;
}

export function translateText(text: string, names: Names): string {
  return text
    .replaceAll(REFERENCE, (whole, braces: string | undefined, double: string | undefined) => {
      const path = pathOf(braces ?? double ?? '', names);
      return path === null ? whole : `$(${path})`;
    })
    .replaceAll(
      VARIABLE,
      (_whole, braced: string | undefined, plain: string | undefined) => `$(run.${braced ?? plain ?? ''})`,
    );
}

export function translateValue(value: Json, names: Names): Json {
  if (typeof value === 'string') return translateText(value, names);
  if (Array.isArray(value)) return value.map((item) => translateValue(item, names));
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, translateValue(member, names)]));
}

const COMPARISON = /^\s*(.+?)\s*(==|!=|>=|<=|>|<)\s*(.+?)\s*$/s;

/**
 * `review.count > 0`, `${input.environment} == production`: one comparison, in which a word that is no name is text. Any
 * other condition stays as it is, with its references.
 */
export function translateCondition(written: string, names: Names): string {
  const [, left = '', operator = '', right = ''] = COMPARISON.exec(written) ?? [];
  const isSimple = operator !== '' && !/&&|\|\||[()?:]/.test(written.replaceAll(/\$\([^()]*\)/g, ''));
  if (isSimple) {
    const [one, other] = [operand(left, names), operand(right, names)];
    return `${one} ${operator} ${other}`;
  }
  const known = written.trim();
  const path = /^[A-Za-z_][\w.-]*$/.test(known) ? pathOf(known, names) : null;
  if (path !== null) return `${path} == true`;
  return translateText(written, names).replaceAll(/\$\(([\w.[\]-]+)\)/g, '$1');
}

function operand(written: string, names: Names): string {
  const inner = /^["']?(?:\$\{\s*([^{}]+?)\s*\}|\{\{\s*([^{}]+?)\s*\}\}|\$\(\s*([^()]+?)\s*\))["']?$/.exec(written);
  const name = inner?.[1] ?? inner?.[2] ?? inner?.[3] ?? written;
  const path = /^[A-Za-z_][\w.[\]-]*$/.test(name) ? pathOf(name, names) : null;
  if (path !== null) return path;
  if (/^(?:-?\d+(?:\.\d+)?|true|false|null)$/.test(written) || /^(["']).*\1$/s.test(written)) return written;
  return JSON.stringify(translateText(written, names));
}

/** A command whose references are environment variables (P14). */
export interface Command {
  readonly command: string;
  readonly inputs: Readonly<Record<string, string>>;
}

/**
 * Replaces each reference with an expansion of a variable that holds its value. The quotes around it decide how: the
 * value is always one word, or a part of one, and never text of the shell.
 *
 * @returns the reason, if a reference is where no variable can be expanded
 */
export function translateCommand(written: string, names: Names): Command | { readonly reason: string } {
  const inputs: Record<string, string> = {};
  const variables = new Map<string, string>();
  let command = '';
  let quote: '"' | "'" | null = null;
  for (let at = 0; at < written.length;) {
    REFERENCE.lastIndex = at;
    const found = written.startsWith('${', at) || written.startsWith('{{', at) ? REFERENCE.exec(written) : null;
    const path = found !== null && found.index === at ? pathOf(found[1] ?? found[2] ?? '', names) : null;
    if (found !== null && path !== null) {
      const variable = variables.get(path) ?? `value_${variables.size + 1}`;
      variables.set(path, variable);
      inputs[variable] = `$(${path})`;
      command += quote === '"' ? `\${${variable}}` : quote === "'" ? `'"\${${variable}}"'` : `"\${${variable}}"`;
      at += found[0].length;
      continue;
    }
    const char = written[at] ?? '';
    if (quote !== "'" && char === '\\') {
      command += written.slice(at, at + 2);
      at += 2;
      continue;
    }
    if (quote === null && written.startsWith('<<', at)) return { reason: 'a here-document cannot hold references' };
    if (char === quote) quote = null;
    else if (quote === null && (char === '"' || char === "'")) quote = char;
    command += char;
    at += 1;
  }
  return { command, inputs };
}
