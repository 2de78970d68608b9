/** Whether an answer is right: it has the values of the task, however it words and formats them. */
import { isJsonObject } from '../../../src/domain/json.ts';
import type { Json } from '../../../src/domain/json.ts';
import type { Expectation } from '../tasks/dataset.ts';

const SHOWN_CHARS = 160;

/** @returns null if the answer is right, else why not */
export function judge({ contains = [], lacks = [], json }: Expectation, answer: string): string | null {
  const missing = contains.filter((value) => !has(answer, value));
  if (missing.length > 0) return `the answer lacks ${missing.join(', ')}: ${quoted(answer)}`;
  const surplus = lacks.filter((value) => has(answer, value));
  if (surplus.length > 0) return `the answer must not have ${surplus.join(', ')}: ${quoted(answer)}`;
  if (json === undefined) return null;
  const found = jsonOf(answer);
  if (found === undefined) return `the answer is not JSON: ${quoted(answer)}`;
  return isPart(json, found) ? null : `the JSON of the answer has other values: ${quoted(answer)}`;
}

/** Whether it is there as a word or number of its own, also with marks between thousands: `1,296` or `1 296` for 1296. */
function has(answer: string, value: string | number): boolean {
  const text = normalised(answer);
  const wanted = normalised(String(value));
  return hasWord(text, wanted) || hasWord(withoutThousandsMarks(text), wanted);
}

/** One form of minus signs and blanks, in lower case. */
function normalised(text: string): string {
  return text
    .replaceAll(/[\u2212\u2010\u2011]/g, '-')
    .replaceAll(/[\u00A0\u202F\u2009]/g, ' ')
    .toLowerCase();
}

function withoutThousandsMarks(text: string): string {
  return text.replaceAll(/(?<![\d.])\d{1,3}(?:[, ']\d{3})+(?!\d)/g, (number) => number.replaceAll(/[, ']/g, ''));
}

/** 417 is not in 14170, 417.5 or x417. */
function hasWord(text: string, wanted: string): boolean {
  for (let at = text.indexOf(wanted); at !== -1; at = text.indexOf(wanted, at + 1)) {
    const before = text.slice(Math.max(0, at - 2), at);
    const after = text.slice(at + wanted.length, at + wanted.length + 2);
    const isPart =
      /[\p{L}\d]$/u.test(before) || /\d\.$/.test(before) || /^[\p{L}\d]/u.test(after) || /^\.\d/.test(after);
    if (!isPart) return true;
  }
  return false;
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
