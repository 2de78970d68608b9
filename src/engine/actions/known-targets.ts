/** What an agent's manifest says about the targets of its actions, for the parser (P6). */
import { actionSpec } from '../../domain/action-types.ts';
import type { ActionType } from '../../domain/action.ts';
import { isJsonObject } from '../../domain/json.ts';
import type { ResolvedAgent } from '../../domain/manifests/resolved.ts';
import type { KnownTargets } from '../../protocol/parser/action/action-fields.ts';

export function knownTargets({ tools }: Pick<ResolvedAgent, 'tools'>): KnownTargets {
  return {
    isTool: (name) => tools.has(name),
    parameterKind: (type, name, parameter) => {
      if (type !== 'tool') return codeParameter(type, parameter);
      const { properties, additionalProperties } = tools.get(name)?.parameters ?? {};
      const schema = isJsonObject(properties) && Object.hasOwn(properties, parameter) ? properties[parameter] : null;
      if (isJsonObject(schema)) return schema['type'] === 'string' ? 'text' : 'any';
      return additionalProperties === false ? 'none' : 'any';
    },
  };
}

/** The parameters of code are fixed. */
function codeParameter(type: ActionType, parameter: string): 'text' | 'any' | 'none' {
  const { code, parameters } = actionSpec(type);
  if (code === null || parameters === null) return 'any';
  if (code.parameters.includes(parameter)) return 'text';
  return Object.hasOwn(parameters, parameter) || Object.hasOwn(parameters, `${parameter}?`) ? 'any' : 'none';
}
