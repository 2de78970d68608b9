/** The parameters of an action as readers see them: limited in size and without secrets (H7, X3). */
import { cutJson } from '../../bounded/cut-json.ts';
import type { ActionDeclaration } from '../../domain/action.ts';
import type { Json, JsonObject } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import type { ResolvedCall } from '../run/resolve-names.ts';

interface ShownParameters {
  readonly parameters?: JsonObject;
  readonly parameters_cut?: true;
}

/** Members of an event or a document. */
export function shownParameters(
  parameters: JsonObject,
  redact?: (text: string) => string,
): Required<ShownParameters> | (Omit<ShownParameters, 'parameters_cut'> & { readonly parameters: JsonObject }) {
  const { value, isCut } = cutJson(parameters, limits.shownParametersChars, redact);
  return { parameters: value, ...(isCut ? { parameters_cut: true as const } : {}) };
}

/**
 * The parameters that are executed, if they differ from the declared ones; values passed to code are `inputs` among
 * them.
 */
export function executedParameters(
  { parameters: declared }: Pick<ActionDeclaration, 'parameters'>,
  { parameters, inputs }: Pick<ResolvedCall, 'parameters' | 'inputs'>,
  redact: (text: string) => string,
): ShownParameters {
  if (Object.keys(inputs).length > 0) return shownParameters({ ...parameters, inputs }, redact);
  return isSame(declared, parameters) ? {} : shownParameters(parameters, redact);
}

/** Stops at the first difference, so a reference's value is not read. */
export function isSame(declared: Json, resolved: Json): boolean {
  if (declared === resolved) return true;
  if (typeof declared !== 'object' || declared === null || typeof resolved !== 'object' || resolved === null) {
    return false;
  }
  if (Array.isArray(declared)) {
    return (
      Array.isArray(resolved) &&
      declared.length === resolved.length &&
      declared.every((item, index) => isSame(item, resolved[index] ?? null))
    );
  }
  if (Array.isArray(resolved)) return false;
  const names = Object.keys(declared);
  return (
    names.length === Object.keys(resolved).length &&
    names.every((name) => Object.hasOwn(resolved, name) && isSame(declared[name] ?? null, resolved[name] ?? null))
  );
}
