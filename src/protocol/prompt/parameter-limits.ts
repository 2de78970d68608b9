/** The limits of a parameter for the prompt, in a few characters (L4). */
import type { Json, JsonObject } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';

/**
 * What a JSON Schema says about its values beyond their type: ` 1..60`, ` 2..10 characters, format date`.
 *
 * @returns text to append to the type; empty without limits
 */
export function limitsOf(spec: JsonObject): string {
  const range = [atLeast(spec, 'minimum', 'exclusiveMinimum'), atMost(spec, 'maximum', 'exclusiveMaximum')] as const;
  const { format, pattern } = spec;
  const further = [
    ...(typeof format === 'string' && isShort(format) ? [`format ${format}`] : []),
    ...(typeof pattern === 'string' && isShort(pattern) ? [`pattern ${pattern}`] : []),
  ];
  // After a comma, because the type of the items may have limits of its own.
  const items = counted(spec, 'minItems', 'maxItems', 'items');
  return [
    between(range),
    counted(spec, 'minLength', 'maxLength', 'characters'),
    items === '' ? '' : `,${items}`,
    ...further.map((one) => `, ${one}`),
  ].join('');
}

/** `default 5`; null without a default, and for one that is too long for a prompt. */
export function defaultOf(spec: JsonObject): string | null {
  if (spec['default'] === undefined) return null;
  const text = JSON.stringify(spec['default']);
  return isShort(text) ? `default ${text}` : null;
}

/** Half a pattern would be another pattern, so nothing is cut. */
function isShort(text: string): boolean {
  return text.length <= limits.parameterLimitPromptChars && !/[\r\n]/.test(text);
}

interface Bound {
  readonly value: number;
  readonly exclusive: boolean;
}

function atLeast(spec: JsonObject, inclusive: string, exclusive: string): Bound | null {
  return tighter(spec[inclusive], spec[exclusive], (a, b) => a > b);
}

function atMost(spec: JsonObject, inclusive: string, exclusive: string): Bound | null {
  return tighter(spec[inclusive], spec[exclusive], (a, b) => a < b);
}

function tighter(
  inclusive: Json | undefined,
  exclusive: Json | undefined,
  isTighter: (a: number, b: number) => boolean,
): Bound | null {
  if (typeof exclusive === 'number' && (typeof inclusive !== 'number' || !isTighter(inclusive, exclusive)))
    return { value: exclusive, exclusive: true };
  return typeof inclusive === 'number' ? { value: inclusive, exclusive: false } : null;
}

function between([least, most]: readonly [Bound | null, Bound | null]): string {
  if (least !== null && most !== null && !least.exclusive && !most.exclusive)
    return least.value === most.value ? ` ${least.value}` : ` ${least.value}..${most.value}`;
  return [
    ...(least === null ? [] : [` >${least.exclusive ? '' : '='}${least.value}`]),
    ...(most === null ? [] : [` <${most.exclusive ? '' : '='}${most.value}`]),
  ].join('');
}

function counted(spec: JsonObject, least: string, most: string, unit: string): string {
  const range = between([atLeast(spec, least, ''), atMost(spec, most, '')]);
  return range === '' ? '' : `${range} ${unit}`;
}
