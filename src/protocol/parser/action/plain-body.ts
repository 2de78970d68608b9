/**
 * A body that is plain text instead of JSON (P6): the message of an agent, the prompt of a model, or code.
 *
 * Text that could be broken JSON is never taken as text: it might be run as code.
 */
import { actionSpec } from '../../../domain/action-types.ts';
import { isJsonObject } from '../../../domain/json.ts';
import type { JsonObject } from '../../../domain/json.ts';
import type { ActionHead } from './action-head.ts';
import type { BodyText } from './action-json.ts';

/** The beginning of JSON, as models write it: a bracket, a fence, a comment, `json`, or a quoted key. */
const LIKE_JSON =
  /^(?:[{[]|```|~~~|\/[/*]|json\s*[{[]|["'\u2018\u201C][^"'\u2018\u2019\u201C\u201D\n]*["'\u2019\u201D]\s*:)/i;

/** @returns the parameters; null if the body is not plain text, or if the action does not take it */
export function plainBody(head: ActionHead, { source, value }: BodyText): JsonObject | null {
  if (head.type === null || isJsonObject(value)) return null;
  const { text, named } = actionSpec(head.type);
  if (text === null || (named && head.name === null) || head.raw.parameters !== undefined) return null;
  const plain = withoutIndent(source);
  return plain === '' || LIKE_JSON.test(plain) ? null : { [text]: plain };
}

/** Without blank lines around the text. If it begins on a line of its own, without the indent that all lines share. */
function withoutIndent(source: string): string {
  const [first = '', ...rest] = source.trimEnd().split(/\r?\n/);
  if (first.trim() !== '') return source.trim();
  const from = rest.findIndex((line) => line.trim() !== '');
  const lines = from === -1 ? [] : rest.slice(from);
  const indent = lines.reduce((least, line) => Math.min(least, line.trim() === '' ? least : indentOf(line)), Infinity);
  return lines.map((line) => line.slice(indent)).join('\n');
}

function indentOf(line: string): number {
  return line.length - line.trimStart().length;
}
