/** Objects and lists in an answer, where they have a line of their own (P13). */
import type { Json, JsonObject } from '../../domain/json.ts';
import { isJsonObject } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import { isVisible } from './visible-text.ts';

/** Whether a value is shown as a table or a code block if it has a line of its own. */
export function hasBlockForm(value: Json): value is JsonObject | Json[] {
  if (Array.isArray(value)) return value.length > 0;
  return isJsonObject(value) && Object.keys(value).length > 0;
}

/**
 * A list of flat objects as a Markdown table, anything else as JSON in a code block. The first line is not indented.
 *
 * @param indent white space before every further line
 */
export function renderBlock(value: JsonObject | Json[], indent: string): { text: string; isTable: boolean } {
  const table = tableOf(value);
  const lines = table ?? ['```json', ...jsonLines(value), '```'];
  return { text: lines.join(`\n${indent}`), isTable: table !== null };
}

/** Indented JSON; a large value stays on one line, because indentation can multiply its size. */
function jsonLines(value: JsonObject | Json[]): string[] {
  const compact = JSON.stringify(value);
  return compact.length > limits.indentedJsonChars ? [compact] : JSON.stringify(value, null, 2).split('\n');
}

/** Null if the value is not a list of flat objects, or is too large for a table. */
function tableOf(value: JsonObject | Json[]): string[] | null {
  if (!Array.isArray(value) || value.length > limits.tableRows) return null;
  const columns = new Set<string>();
  const rows: JsonObject[] = [];
  for (const row of value) {
    if (!isJsonObject(row) || !isFlat(row)) return null;
    for (const key of Object.keys(row)) columns.add(key);
    if (columns.size > limits.tableColumns) return null;
    rows.push(row);
  }
  if (columns.size === 0) return null;
  const keys = [...columns];
  return [
    tableLine(keys.map(cell)),
    tableLine(keys.map(() => '---')),
    ...rows.map((row) => tableLine(keys.map((key) => cell(Object.hasOwn(row, key) ? (row[key] ?? null) : null)))),
  ];
}

function isFlat(row: JsonObject): boolean {
  return Object.values(row).every((item) => typeof item !== 'object' || item === null);
}

function tableLine(cells: readonly string[]): string {
  return `| ${cells.join(' | ')} |`;
}

/** A cell is one line, and a vertical bar would end it. A dash stands for a value that is null or blank. */
function cell(value: Json): string {
  const text = value === null ? '' : typeof value === 'string' ? value : JSON.stringify(value);
  if (!isVisible(text)) return '–';
  // A run of backslashes is read once, whether or not a bar follows.
  return text.replace(/\\+\|?|\|/g, escapedBar).replace(/[\r\n]+/g, ' ');
}

/** Backslashes before a bar are doubled, so that the bar stays escaped; others are unchanged. */
function escapedBar(found: string): string {
  return found.endsWith('|') ? `${found.slice(0, -1).repeat(2)}\\|` : found;
}
