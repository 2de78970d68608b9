/** Resolves the model's names: parameters and inputs at dispatch (P12, P14), text in responses (P13). */
import { actionSpec } from '../../domain/action-types.ts';
import type { ActionDeclaration } from '../../domain/action.ts';
import type { Json, JsonObject } from '../../domain/json.ts';
import { isJsonObject } from '../../domain/json.ts';
import type { Reference, WarningCode } from '../../domain/protocol-event.ts';
import { commandReferences } from '../../protocol/references/references.ts';
import { hasBlockForm, renderBlock } from '../../protocol/references/markdown-value.ts';
import { fillIn, follow, renderText, substitute } from '../../protocol/references/substitution.ts';
import { isVisible } from '../../protocol/references/visible-text.ts';
import type { NameLookup, SubstitutionQuota } from '../../protocol/references/substitution.ts';
import type { NameValue } from './results.ts';

/** An action's call, ready for its executor. */
export interface ResolvedCall {
  readonly parameters: JsonObject;
  /** Values passed to code as data, by name (P14). */
  readonly inputs: JsonObject;
  readonly warnings: readonly { readonly code: WarningCode; readonly message: string }[];
  /** References in text whose path does not exist (P12). */
  readonly blanks?: readonly Reference[];
  /** Values are missing, because the run's references exceeded their quota. */
  readonly spent?: boolean;
  /** Number of characters rendered for its references. */
  readonly renderedChars?: number;
}

interface Sources {
  readonly lookup: (name: string) => NameValue;
  /** The action's dependencies with their outputs; called if values are passed to code. */
  readonly dependencies: () => readonly { readonly action: ActionDeclaration; readonly output: Json }[];
  /** Shared by the actions of a run. */
  readonly quota: SubstitutionQuota;
}

/** Replaces an action's references with values. */
export function resolveCall(action: ActionDeclaration, sources: Sources): ResolvedCall {
  const lookup: NameLookup = (name) => forParameters(sources.lookup(name));
  const { bound } = action;
  const replaced = (parameters: JsonObject): ReturnType<typeof substitute> =>
    bound === undefined
      ? substitute(parameters, lookup, sources.quota)
      : fillIn(parameters, bound.texts, lookup, sources.quota);
  if (actionSpec(action.type).code === null) {
    const { value, ...rest } = replaced(action.parameters);
    return { parameters: value, inputs: {}, ...rest };
  }
  // Code is never substituted: values are passed separately, as data.
  const given = replaced({ inputs: namedInputs(action.parameters['inputs']) });
  const inputs = new Map<string, Json>();
  for (const { action: dependency, output } of sources.dependencies()) {
    inputs.set(dependency.id, output);
    if (dependency.outputKey !== null) inputs.set(dependency.outputKey, output);
  }
  for (const name of commandReferences(action.type, action.parameters)) {
    const value = sources.lookup(name);
    // In a command, the sandbox's own `$HOME` and `$DATE` count.
    if (value.type === 'value' && value.isContext !== true) inputs.set(name, value.value);
  }
  if (isJsonObject(given.value['inputs'])) {
    for (const [name, value] of Object.entries(given.value['inputs'])) inputs.set(name, value);
  }
  // fromEntries defines own properties, even for `__proto__`.
  const { value: _given, ...rest } = given;
  return { parameters: action.parameters, inputs: Object.fromEntries(inputs), ...rest };
}

/** `inputs` as an object; in a list of references, each is named after its target. */
function namedInputs(inputs: Json | undefined): JsonObject {
  if (isJsonObject(inputs)) return inputs;
  if (!Array.isArray(inputs)) return {};
  const named = inputs
    .filter((item): item is string => typeof item === 'string')
    .map((item) => [item.replace(/^\$\{?|\}$/g, '').split(/[.[]/)[0] ?? item, item] as const);
  return Object.fromEntries(named);
}

function forParameters(value: NameValue): ReturnType<NameLookup> {
  switch (value.type) {
    case 'value':
      return { known: true, value: value.value };
    case 'running':
      // Only possible with `wait_for_all: false`: an unfinished dependency is null (S3).
      return { known: true, value: null };
    case 'absent':
      return { known: true, failed: value.why };
    case 'unknown':
      return { known: false };
  }
}

/** A reference with the current value of its name. */
export interface OpenReference {
  readonly reference: Reference;
  readonly resolve: () => NameValue;
}

/** A reference in a response, ready to be written. */
export interface RenderedReference {
  readonly text: string;
  /** The value has a form of its own for a line of its own; `indent` is the white space before further lines. */
  readonly block: ((indent: string) => { readonly text: string; readonly isTable: boolean }) | null;
  readonly warning: { readonly code: WarningCode; readonly message: string } | null;
}

/**
 * Why a reference in a response has nothing to show: the value does not exist or is null, is blank text, or waits for an
 * approval. `unknown`: there is no such name; only with a path, because `$name` alone is often not a reference.
 */
export type ReferenceGap = 'missing' | 'empty' | 'pending' | 'unknown' | null;

export function gapOf({ path }: Reference, value: NameValue): ReferenceGap {
  switch (value.type) {
    case 'value':
      return gapIn(follow(value.value, path).value);
    case 'absent':
      return value.why === 'pending' ? 'pending' : null;
    case 'running':
      return 'pending';
    case 'unknown':
      return path.length > 0 ? 'unknown' : null;
  }
}

function gapIn(value: Json): 'missing' | 'empty' | null {
  if (value === null) return 'missing';
  return typeof value === 'string' && !isVisible(value) ? 'empty' : null;
}

/** Renders a reference in a response (P13). Never blank. */
export function renderReference(reference: Reference, value: NameValue): RenderedReference {
  const plain = (text: string): RenderedReference => ({ text, block: null, warning: null });
  switch (value.type) {
    case 'value': {
      const { found, value: shown } = follow(value.value, reference.path);
      const gap = gapIn(shown);
      if (gap === null) {
        const block = hasBlockForm(shown) ? (indent: string) => renderBlock(shown, indent) : null;
        return { text: renderText(shown), block, warning: null };
      }
      const message = found
        ? `${reference.raw}: this value is ${gap === 'missing' ? 'null' : 'empty text'}`
        : `${reference.raw}: this path does not exist in the value of "${reference.name}"`;
      return { ...plain(`[${spelled(reference)}: ${gap}]`), warning: { code: 'missing_path', message } };
    }
    case 'absent':
      return plain(`[${reference.name}: ${value.why}]`);
    case 'running':
      return plain(`[${reference.name}: pending]`);
    case 'unknown': {
      const message = `${reference.raw} refers to a name that was not declared before; left unchanged`;
      return { ...plain(reference.raw), warning: { code: 'unknown_reference', message } };
    }
  }
}

/** The reference as written, without its `$` and braces. */
export function spelled({ raw }: Reference): string {
  return raw.replace(/^\$\{?|\}$/g, '');
}
