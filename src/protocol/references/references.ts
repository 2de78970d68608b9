/** References in the parameters of an action, and the dependencies that they create (P12, P14). */
import { actionSpec } from '../../domain/action-types.ts';
import type { ActionType } from '../../domain/action.ts';
import type { Json, JsonObject } from '../../domain/json.ts';
import type { Reference } from '../../domain/protocol-event.ts';
import { ReferenceMatcher } from './reference-matcher.ts';
import type { MatchOutcome } from './reference-matcher.ts';

/** Splits text at its references. In text parts, `$$` is already `$`. Empty text parts are left out. */
export function scanText(text: string): (string | Reference)[] {
  const parts: (string | Reference)[] = [];
  const matcher = new ReferenceMatcher();
  let literal = '';
  let from = 0;
  let dollar = text.indexOf('$');
  while (dollar !== -1) {
    literal += text.slice(from, dollar);
    matcher.reset();
    let index = dollar + 1;
    let outcome: MatchOutcome = 'pending';
    while (index < text.length) {
      outcome = matcher.step(text.charCodeAt(index));
      if (outcome !== 'pending') break;
      index += 1;
    }
    if (outcome === 'pending') outcome = matcher.finish();
    switch (outcome) {
      case 'ends_before':
      case 'ends_with':
        from = outcome === 'ends_with' ? index + 1 : index - matcher.tailChars;
        if (literal !== '') parts.push(literal);
        literal = '';
        parts.push(matcher.reference(text.slice(dollar, from)));
        break;
      case 'dollar':
        literal += '$';
        from = index + 1;
        break;
      case 'pending':
      case 'text_before':
        literal += text.slice(dollar, index);
        from = index;
        break;
    }
    dollar = text.indexOf('$', from);
  }
  literal += text.slice(from);
  if (literal !== '') parts.push(literal);
  return parts;
}

const NO_NAMES: readonly string[] = [];

/** Root names of all references in the strings of a value, each once, in order of appearance. Keys are not searched. */
export function referenceNames(value: Json): readonly string[] {
  const names = collectNames(value, null);
  return names === null ? NO_NAMES : [...names];
}

/** Most parameters contain no reference, so the set is created with the first one. */
function collectNames(value: Json, found: Set<string> | null): Set<string> | null {
  let names = found;
  if (typeof value === 'string') {
    if (value.indexOf('$') === -1) return names;
    for (const part of scanText(value)) {
      if (typeof part === 'string') continue;
      names ??= new Set();
      names.add(part.name);
    }
  } else if (Array.isArray(value)) {
    for (const item of value) names = collectNames(item, names);
  } else if (typeof value === 'object' && value !== null) {
    for (const key in value) names = collectNames(value[key] ?? null, names);
  }
  return names;
}

const SHELL_NAME = /\\\$|\$\$|\$\{?([A-Za-z_][A-Za-z0-9_]{0,63})(?![A-Za-z0-9_])/g;

/**
 * Every `$name` in code whose inputs are environment variables, each once. Known names become environment variables and
 * dependencies. Shell forms such as `${name:-x}` count.
 */
export function commandReferences(type: ActionType, parameters: JsonObject): readonly string[] {
  const { code } = actionSpec(type);
  if (code?.inputs !== 'environment') return NO_NAMES;
  const names = new Set<string>();
  for (const key of code.parameters) {
    const value = Object.hasOwn(parameters, key) ? parameters[key] : undefined;
    const texts = Array.isArray(value) ? value : [value];
    for (const text of texts) {
      if (typeof text !== 'string') continue;
      for (const [, name] of text.matchAll(SHELL_NAME)) if (name !== undefined) names.add(name);
    }
  }
  return [...names];
}

/** The names in an action's parameters that create dependencies, depending on its type (P12, P14). */
export function parameterReferences(type: ActionType, parameters: JsonObject): readonly string[] {
  if (actionSpec(type).code === null) return referenceNames(parameters);
  const inputs = Object.hasOwn(parameters, 'inputs') ? (parameters['inputs'] ?? null) : null;
  const names = referenceNames(inputs);
  return [...new Set([...names, ...commandReferences(type, parameters)])];
}
