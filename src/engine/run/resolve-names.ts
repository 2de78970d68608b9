/** What the model's names become: parameters and inputs at dispatch (P12, P14), text in responses (P13). */
import { actionSpec } from '../../domain/action-types.ts';
import type { ActionDeclaration } from '../../domain/action.ts';
import type { Json, JsonObject } from '../../domain/json.ts';
import { isJsonObject } from '../../domain/json.ts';
import type { Reference, WarningCode } from '../../domain/protocol-event.ts';
import { commandReferences } from '../../protocol/references/references.ts';
import { follow, renderText, substitute } from '../../protocol/references/substitution.ts';
import type { NameLookup, SubstitutionQuota } from '../../protocol/references/substitution.ts';
import type { NameValue } from './results.ts';

/** An action whose parameters are ready for its executor. */
export interface ResolvedCall {
  readonly parameters: JsonObject;
  /** Values that reach code as data, by name (P14). */
  readonly inputs: JsonObject;
  readonly warnings: readonly { readonly code: WarningCode; readonly message: string }[];
  /** Values are missing, because the run's references have added too much. */
  readonly spent?: boolean;
  /** What its references came to, as text. */
  readonly renderedChars?: number;
}

interface Sources {
  readonly lookup: (name: string) => NameValue;
  /** What the action depends on, with what came of it; asked for where values go beside code. */
  readonly dependencies: () => readonly { readonly action: ActionDeclaration; readonly output: Json }[];
  /** Shared by the actions of a run. */
  readonly quota: SubstitutionQuota;
}

/** Puts values in the place of an action's references. */
export function resolveCall(action: ActionDeclaration, sources: Sources): ResolvedCall {
  const lookup: NameLookup = (name) => forParameters(sources.lookup(name));
  if (actionSpec(action.type).code === null) {
    const { value, ...rest } = substitute(action.parameters, lookup, sources.quota);
    return { parameters: value, inputs: {}, ...rest };
  }
  // Code is never substituted: values travel beside it, as data.
  const given = substitute({ inputs: namedInputs(action.parameters['inputs']) }, lookup, sources.quota);
  const inputs = new Map<string, Json>();
  for (const { action: dependency, output } of sources.dependencies()) {
    inputs.set(dependency.id, output);
    if (dependency.outputKey !== null) inputs.set(dependency.outputKey, output);
  }
  for (const name of commandReferences(action.type, action.parameters)) {
    const value = sources.lookup(name);
    if (value.type === 'value') inputs.set(name, value.value);
  }
  if (isJsonObject(given.value['inputs'])) {
    for (const [name, value] of Object.entries(given.value['inputs'])) inputs.set(name, value);
  }
  // fromEntries defines own properties, also one called `__proto__`.
  const { value: _given, ...rest } = given;
  return { parameters: action.parameters, inputs: Object.fromEntries(inputs), ...rest };
}

/** `inputs` as an object; a list of references names each after what it refers to. */
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
      // Possible with `wait_for_all: false` only: what has not finished is null (S3).
      return { known: true, value: null };
    case 'without':
      return { known: true, failed: value.why };
    case 'unknown':
      return { known: false };
  }
}

/** The text that stands for a reference in a response. */
export function renderReference(reference: Reference, value: NameValue): { text: string; warning: string | null } {
  switch (value.type) {
    case 'value': {
      const found = follow(value.value, reference.path);
      return found.found
        ? { text: renderText(found.value), warning: null }
        : { text: '', warning: `${reference.raw}: the value of "${reference.name}" has nothing there` };
    }
    case 'without':
      return { text: `[${reference.name}: ${value.why}]`, warning: null };
    case 'running':
      return { text: `[${reference.name}: pending]`, warning: null };
    case 'unknown':
      return {
        text: reference.raw,
        warning: `${reference.raw} refers to nothing that was declared before it; it was left as it is`,
      };
  }
}
