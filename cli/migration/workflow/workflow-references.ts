/**
 * References in texts of the original's workflows: `${step.field}`, `${input.x}` and `{{ step.field }}` become
 * `$(steps.step.field)` and `$(trigger.x)`. A name that the workflow does not have stays as it is.
 */
import type { Json } from '../../../src/domain/json.ts';
import { isJsonObject } from '../../../src/domain/json.ts';
import { limits } from '../../../src/domain/limits.ts';

/** What a name in a reference means. */
export interface Meaning {
  /** `steps.a`, `item` or `acc`. */
  readonly path: string;
  /** Whether `.output` and `.result` are the whole result. */
  readonly isWhole: boolean;
  /** Whether the result is text, so that `.status` can only mean that of the step. */
  readonly isText: boolean;
  /** Names of the step's results, for groups that hold a list. */
  readonly member: string | null;
}

export type Names = ReadonlyMap<string, Meaning>;

/** Variables of the original's contexts, with a value in every run of a workflow. */
const CONTEXT = 'TIMESTAMP|TIMESTAMP_UNIX|DATETIME|DATE|TIME|WORKFLOW_ID|SESSION_ID|USER_ID';
export const REFERENCE = /\$\{\s*([A-Za-z_][\w.[\]-]{0,255})\s*\}|\{\{\s*([A-Za-z_][\w.[\]-]{0,255})\s*\}\}/g;
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

const OPERATOR = /==|!=|>=|<=|>|</;

/** The two sides of the first operator; null without one, or if a side is blank. */
function comparisonIn(written: string): readonly [left: string, operator: string, right: string] | null {
  const found = OPERATOR.exec(written.slice(1));
  if (found === null) return null;
  const [operator] = found;
  const left = written.slice(0, found.index + 1).trim();
  const right = written.slice(found.index + 1 + operator.length).trim();
  return left === '' || right === '' ? null : [left, operator, right];
}

/**
 * `review.count > 0`, `${input.environment} == production`: one comparison, in which a word that is no name is text. Any
 * other condition stays as it is, with its references.
 */
export function translateCondition(written: string, names: Names): string {
  if (written.length > limits.workflowConditionChars) return written;
  const comparison = comparisonIn(written);
  const isSimple = comparison !== null && !/&&|\|\||[()?:]/.test(written.replaceAll(/\$\([^()]{0,256}\)/g, ''));
  if (isSimple) {
    const [left, operator, right] = comparison;
    return statusCheck(left, operator, right, names) ?? `${operand(left, names)} ${operator} ${operand(right, names)}`;
  }
  const known = written.trim();
  const path = /^[A-Za-z_][\w.-]*$/.test(known) ? pathOf(known, names) : null;
  if (path !== null) return `${path} == true`;
  return translateText(written, names).replaceAll(/\$\(([\w.[\]-]+)\)/g, '$1');
}

/** `steps.ask.status == 'success'` of a step whose result is text; null for any other comparison. */
function statusCheck(left: string, operator: string, right: string, names: Names): string | null {
  const [, name = ''] = STEP_STATUS.exec(referenced(left)) ?? [];
  const status = right.replaceAll(/["']/g, '').toLowerCase();
  const meaning = names.get(name);
  if (meaning?.isText !== true || (operator !== '==' && operator !== '!=')) return null;
  if (!SUCCEEDED.has(status) && !FAILED.has(status)) return null;
  return `${meaning.path} ${(operator === '==') === SUCCEEDED.has(status) ? '!=' : '=='} null`;
}

const STEP_STATUS = /^(?:steps\.)?([\w-]+)\.status$/;
const SUCCEEDED: ReadonlySet<string> = new Set(['success', 'succeeded', 'successful', 'completed', 'complete', 'ok']);
const FAILED: ReadonlySet<string> = new Set(['failed', 'failure', 'error']);

/** The name in a reference, or the text itself. */
function referenced(written: string): string {
  const inner = /^["']?(?:\$\{([^{}]+)\}|\{\{([^{}]+)\}\}|\$\(([^()]+)\))["']?$/.exec(written);
  return (inner?.[1] ?? inner?.[2] ?? inner?.[3] ?? written).trim();
}

function operand(written: string, names: Names): string {
  const name = referenced(written);
  const path = /^[A-Za-z_][\w.[\]-]*$/.test(name) ? pathOf(name, names) : null;
  if (path !== null) return path;
  if (/^(?:-?\d+(?:\.\d+)?|true|false|null)$/.test(written) || /^(["']).*\1$/s.test(written)) return written;
  return JSON.stringify(translateText(written, names));
}
