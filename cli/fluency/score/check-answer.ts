/** Whether an answer is right: it has the values of the task, however it words and formats them. */
import { isJsonObject } from '../../../src/domain/json.ts';
import type { Json } from '../../../src/domain/json.ts';
import type { Expectation } from '../tasks/dataset.ts';

const SHOWN_CHARS = 160;

type Value = string | number;

/** @returns null if the answer is right, else why not */
export function checkAnswer(
  { contains = [], lacks = [], labelled = {}, ordered, json }: Expectation,
  answer: string,
): string | null {
  const text = normalised(answer);
  const labels = Object.entries(labelled).map(([name, values]) => ({ name, values: [values].flat() }));
  const missing = [...contains, ...labels.flatMap(({ values }) => values)].filter((value) => !has(text, value));
  if (missing.length > 0) return `the answer lacks ${missing.join(', ')}: ${quoted(answer)}`;
  const surplus = lacks.filter((value) => has(text, value));
  if (surplus.length > 0) return `the answer must not have ${surplus.join(', ')}: ${quoted(answer)}`;
  if (ordered === true && !hasInOrder(text, contains)) return `the values are in another order: ${quoted(answer)}`;
  if (labels.length > 0 && !isLabelled(text, labels)) return `the values belong to other names: ${quoted(answer)}`;
  if (json === undefined) return null;
  const found = jsonOf(answer);
  if (found === undefined) return `the answer is not JSON: ${quoted(answer)}`;
  return isPart(json, found) ? null : `the JSON of the answer has other values: ${quoted(answer)}`;
}

interface Label {
  readonly name: string;
  readonly values: readonly Value[];
}

/**
 * Whether each name has its own values: after it, before it, or (as in "a and b have 1 and 2") all values after all names,
 * in the same order. Without the names, the values must be in the order of the task.
 */
function isLabelled(text: string, labels: readonly Label[]): boolean {
  const places = labels.flatMap((label) => [...text.matchAll(nameExpression(label.name))].map((at) => ({ label, at })));
  places.sort((a, b) => a.at.index - b.at.index);
  const named = [...new Set(places.map(({ label }) => label))];
  if (named.length < labels.length) return hasInOrder(text, valuesOf(labels));
  const endOf = (at: RegExpExecArray): number => at.index + at[0].length;
  const isAfter = (label: Label): boolean =>
    places.some((place, index) => {
      const next = places.slice(index).find((other) => other.label !== label);
      return place.label === label && hasInOrder(text.slice(endOf(place.at), next?.at.index), label.values);
    });
  const isBefore = (label: Label): boolean =>
    places.some((place, index) => {
      const last = places.slice(0, index).findLast((other) => other.label !== label);
      const start = last === undefined ? 0 : endOf(last.at);
      return place.label === label && hasInOrder(text.slice(start, place.at.index), label.values);
    });
  if (labels.every((label) => isAfter(label) || isBefore(label))) return true;
  const last = places.at(-1);
  return last !== undefined && hasInOrder(text.slice(endOf(last.at)), valuesOf(named));
}

function valuesOf(labels: readonly Label[]): Value[] {
  return labels.flatMap(({ values }) => values);
}

/** The name, also in the plural. */
function nameExpression(name: string): RegExp {
  return new RegExp(`(?<![\\p{L}\\d])${escaped(name.toLowerCase())}\\p{L}*(?!\\d)`, 'gu');
}

function has(text: string, value: Value): boolean {
  return hasInOrder(text, [value]);
}

function hasInOrder(text: string, values: readonly Value[]): boolean {
  let from = 0;
  for (const value of values) {
    const expression = valueExpression(value);
    expression.lastIndex = from;
    if (expression.exec(text) === null) return false;
    from = expression.lastIndex;
  }
  return true;
}

function valueExpression(value: Value): RegExp {
  return new RegExp(typeof value === 'number' ? numberSource(value) : wordSource(value), 'gu');
}

/** A word of its own: VLG is not in VLGX. */
function wordSource(value: string): string {
  return `(?<![\\p{L}\\d]|\\d\\.)${escaped(normalised(value))}(?![\\p{L}\\d]|\\.\\d)`;
}

/**
 * A number of its own, perhaps with marks between thousands (1,296 or 1.296 for 1296), zeros after it (239.00) and a unit
 * (187min). 417 is not in 14170, 417.5, x417, 417k or -417. A sign is a minus that follows no letter or digit.
 */
function numberSource(value: number): string {
  const [whole = '', decimals = ''] = String(Math.abs(value)).split('.');
  const grouped = whole.replaceAll(/\B(?=(?:\d{3})+$)/g, "[,. ']?");
  const sign = value < 0 ? '(?<![\\p{L}\\d])-' : '(?<![\\p{L}\\d]|\\d\\.)(?<!(?<![\\p{L}\\d])-)';
  const rest = decimals === '' ? '(?:\\.0+)?' : `[.,]${decimals}0*`;
  return `${sign}${grouped}${rest}(?!\\d|\\.\\d|e[+-]?\\d|k(?!\\p{L}))`;
}

/** A text as a part of a regular expression. */
function escaped(text: string): string {
  return text.replaceAll(/[\\^$.*+?()[\]{}|/]/g, String.raw`\$&`);
}

/** One form of minus signs and blanks, in lower case, without the error of binary fractions. */
function normalised(text: string): string {
  return text
    .replaceAll(/[\u2212\u2010\u2011]|\u2013(?=\d)/g, '-')
    .replaceAll(/[\u00A0\u202F\u2009]/g, ' ')
    .replaceAll(/\d+\.\d{9,}/g, (number) => String(Number(Number(number).toFixed(6))))
    .toLowerCase();
}

/** The answer, or the code fence in it, as JSON. */
function jsonOf(answer: string): Json | undefined {
  const fenced = /```(?:json)?\n([^]*?)\n```/.exec(answer)?.[1];
  try {
    return JSON.parse(fenced ?? answer) as Json;
  } catch {
    return undefined;
  }
}

/** Objects may have further members; everything else must be equal. */
function isPart(expected: Json, found: Json | undefined): boolean {
  if (isJsonObject(expected)) {
    if (found === undefined || !isJsonObject(found)) return false;
    return Object.entries(expected).every(([name, value]) => Object.hasOwn(found, name) && isPart(value, found[name]));
  }
  if (Array.isArray(expected)) {
    return (
      Array.isArray(found) && found.length === expected.length && expected.every((item, at) => isPart(item, found[at]))
    );
  }
  return expected === found;
}

function quoted(text: string): string {
  return JSON.stringify(text.length > SHOWN_CHARS ? `${text.slice(0, SHOWN_CHARS)}…` : text);
}
