/**
 * What an agent or a model is asked (P6): the `message` or the `prompt`. Callers that write named values instead, such as
 * `{"instruction": "…"}` or `{"data": …, "depth": 2}`, mean a lone text, or all values together.
 */
import type { Json, JsonObject } from './json.ts';

export type AskedType = 'agent' | 'llm';

/** Parameters that are not part of the text. */
const OTHERS: Readonly<Record<AskedType, readonly string[]>> = {
  // Of agent-lib: each sub-agent call is a session of its own here.
  agent: ['op', 'inspect', 'last_n', 'ephemeral', 'dump_context'],
  llm: ['system', 'model', 'output_schema'],
};
/** The parameter of each type that holds the text. */
export const ASKED = { agent: 'message', llm: 'prompt' } as const satisfies Record<AskedType, string>;

export function isAsked(type: string): type is AskedType {
  return Object.hasOwn(ASKED, type);
}

/** How the parameters hold the text: in `name`, or, if null, as a whole. `own`: `name` is the type's own parameter. */
export interface AskedBy {
  readonly own: boolean;
  readonly name: string | null;
  readonly values: JsonObject;
}

/** @returns null if there is no value */
export function askedBy(type: AskedType, parameters: JsonObject): AskedBy | null {
  const own = ASKED[type];
  if (Object.hasOwn(parameters, own)) return { own: true, name: own, values: parameters };
  const entries = Object.entries(parameters).filter(([name]) => !OTHERS[type].includes(name));
  const [first] = entries;
  if (first === undefined) return null;
  return { own: false, name: entries.length === 1 ? first[0] : null, values: Object.fromEntries(entries) };
}

/** @returns undefined if there is no value; not a text if the type's own parameter is not one */
export function askedText(type: AskedType, parameters: JsonObject): Json | undefined {
  const asked = askedBy(type, parameters);
  if (asked === null) return undefined;
  const value = asked.name === null ? undefined : asked.values[asked.name];
  return asked.own || typeof value === 'string' ? value : JSON.stringify(asked.values);
}

/** The note about named values; null if there are none, or if the parameters are in their own form. */
export function namedValuesNote(type: AskedType, parameters: JsonObject): string | null {
  const asked = askedBy(type, parameters);
  if (asked === null || asked.own) return null;
  const { name } = asked;
  const what = name === null ? 'all values together, as compact JSON, are' : `the value of "${name}" is`;
  return `it has no "${ASKED[type]}": ${what} its ${ASKED[type]}`;
}
