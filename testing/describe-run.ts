/** A run in the message of an assertion that failed. */
import type { TestAction, TestRun } from './test-run.ts';

/** Characters of one value in a message. */
const VALUE_CHARS = 300;
/** Actions in a message. */
const LISTED_ACTIONS = 30;

/** Its status, its actions and its answer, one line each. */
export function describeRun(run: TestRun): string {
  const { actions, text, status, error } = run;
  const more = actions.length - LISTED_ACTIONS;
  return [
    `The run is ${status}${error === null ? '' : ` (${error.code})`}.`,
    actions.length === 0 ? 'It has no actions.' : 'Its actions:',
    ...actions.slice(0, LISTED_ACTIONS).map(lineOf),
    ...(more > 0 ? [`  and ${more} more`] : []),
    `Its answer: ${shown(text)}`,
  ].join('\n');
}

function lineOf({ id, name, type, status, parameters, output, error }: TestAction): string {
  const call = `${name ?? type ?? 'an action'}(${shown(parameters)})`;
  const end = error === null ? (status === 'completed' ? ` -> ${shown(output)}` : '') : `: ${shown(error)}`;
  return `  ${id} ${call} ${status}${end}`;
}

/** A value as JSON, cut. */
export function shown(value: unknown): string {
  const text = JSON.stringify(value, (_, member: unknown) => readable(member)) ?? 'undefined';
  return text.length <= VALUE_CHARS ? text : `${text.slice(0, VALUE_CHARS)}…`;
}

/** Expressions and asymmetric matchers have no JSON. */
function readable(member: unknown): unknown {
  if (member instanceof RegExp) return String(member);
  if (typeof member !== 'object' || member === null || !('asymmetricMatch' in member)) return member;
  const { toAsymmetricMatcher: describe } = member as { readonly toAsymmetricMatcher?: () => string };
  return typeof describe === 'function' ? describe.call(member) : String(member);
}
