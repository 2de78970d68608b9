/**
 * Analyses the words of a statement before SQLite compiles it (R6): how far names expand, and how long values can
 * become. SQLite copies a view or a common table expression wherever it is named, and an expression wherever its column
 * is used, so a short text can expand to a very long one.
 *
 * Uses words, not grammar: each count is an upper bound.
 */
import { limits } from '../domain/limits.ts';
import type { Texts } from './cost.ts';

export interface Token {
  /** In the form used to compare names: upper case, without quotes. */
  readonly word: string;
  readonly type: 'word' | 'quoted' | 'text' | 'slot' | 'sign';
  /** Bytes of a text, or of the value bound here. */
  readonly bytes: number;
  /** Maximum number of values in it as JSON. */
  readonly items: number;
}

/** Maximum number of JSON values in a text: each begins after a comma or a bracket. */
export function itemsOf(text: string): number {
  let items = 1;
  for (let at = 0; at < text.length; at += 1) if (',[{'.includes(text.charAt(at))) items += 1;
  return items;
}

/** Keywords, which name no column. */
const LANGUAGE: ReadonlySet<string> = new Set(
  `SELECT FROM WHERE AND OR NOT AS ON IN IS NULL ISNULL NOTNULL CASE WHEN THEN ELSE END BETWEEN LIKE GLOB ESCAPE JOIN LEFT
   RIGHT FULL INNER OUTER CROSS NATURAL USING BY GROUP ORDER HAVING LIMIT OFFSET ASC DESC UNION ALL EXCEPT INTERSECT
   VALUES DISTINCT WITH EXISTS CAST COLLATE INSERT INTO UPDATE DELETE SET OVER PARTITION ROWS RANGE GROUPS TEXT INTEGER
   REAL INT BLOB NUMERIC TRUE FALSE DEFAULT PRIMARY KEY UNIQUE CHECK CREATE TABLE REFERENCES
   CURRENT_DATE CURRENT_TIME CURRENT_TIMESTAMP EXCLUDED MATERIALIZED CONFLICT DO NOTHING RETURNING`.split(/\s+/),
);

const OWN_NAMES: ReadonlySet<string> = new Set(['SQLITE_MASTER', 'SQLITE_SCHEMA', 'SQLITE_SEQUENCE']);

/** @param views tokens of the store's views, by upper-case name */
export function shapeIssue(tokens: readonly Token[], views: ReadonlyMap<string, readonly Token[]>): string | null {
  const inner = tokens.find(({ word }) => /^(?:PRAGMA|SQLITE)_\w+$/.test(word) && !OWN_NAMES.has(word));
  if (inner !== undefined) return `"${inner.word.toLowerCase()}" is reserved for SQLite`;
  const joins = tokens.filter(({ word, type }) => type === 'word' && (word === 'NATURAL' || word === 'USING')).length;
  if (joins > limits.relicNamedJoins) {
    return `the statement has ${joins} joins by NATURAL or USING (allowed: ${limits.relicNamedJoins}); write ON`;
  }
  const calls = tokens.filter((token, at) => isCall(token, tokens[at + 1])).length;
  if (calls > limits.relicStatementCalls) {
    return `the statement calls ${calls} functions (allowed: ${limits.relicStatementCalls})`;
  }
  const windows = tokens.filter(({ word, type }) => type === 'word' && word === 'OVER').length;
  if (windows > limits.relicStatementWindows) {
    return `the statement has ${windows} window functions (allowed: ${limits.relicStatementWindows})`;
  }
  const { selects, copies } = new Expansion(tokens, views).all();
  if (selects > limits.relicStatementSelects) {
    return `the statement expands to ${count(selects)} SELECTs with its views and common table expressions (allowed: ${limits.relicStatementSelects})`;
  }
  const written = copies * (tokens.length + [...views.values()].reduce((sum, view) => sum + view.length, 0));
  if (selects > 0 && tokens.some(({ word }) => word !== 'VALUES') && written > limits.relicWrittenTokens) {
    return `the statement's column references could expand to ${count(written)} words (allowed: ${limits.relicWrittenTokens}); nest fewer SELECTs, or name fewer columns`;
  }
  return null;
}

/** Why a definition is not allowed, or null. @param tables tokens of the store's tables */
export function definitionIssue(tokens: readonly Token[], tables: readonly (readonly Token[])[]): string | null {
  const words = tokens.map(({ word }) => word).join(' ');
  const action = /\bON (?:DELETE|UPDATE) (CASCADE|RESTRICT|SET)\b/.exec(words)?.[1];
  if (action !== undefined) return `the foreign key action ${action} is a trigger, which is not allowed`;
  // Each generated column may be expanded wherever another one names it.
  const before = tokens[0]?.word === 'ALTER' ? Math.max(1, ...tables.map(generatedCopies)) : 1;
  const copies = generatedCopies(tokens) * before;
  if (copies <= limits.relicGeneratedCopies) return null;
  return `the references between the table's generated columns could expand one of them ${count(copies)} times (allowed: ${limits.relicGeneratedCopies})`;
}

function generatedCopies(tokens: readonly Token[]): number {
  let copies = 1;
  for (const [at, { word, type }] of tokens.entries()) {
    if (word !== 'AS' || type !== 'word' || tokens[at + 1]?.word !== '(' || tokens[at + 2]?.word === 'SELECT') continue;
    const named = new Map<string, number>();
    let depth = 1;
    for (let place = at + 2; place < tokens.length && depth > 0; place += 1) {
      const token = tokens[place] as Token;
      if (token.type === 'sign') depth += token.word === '(' ? 1 : token.word === ')' ? -1 : 0;
      else if (token.type !== 'text') named.set(token.word, (named.get(token.word) ?? 0) + 1);
    }
    copies *= Math.max(1, ...named.values());
  }
  return copies;
}

function isCall({ type, word }: Token, after: Token | undefined): boolean {
  return (type === 'word' || type === 'quoted') && after?.type === 'sign' && after.word === '(' && !LANGUAGE.has(word);
}

function count(number: number): string {
  return Number.isFinite(number) && number < 1e9 ? String(number) : 'very many';
}

interface Extent {
  /** Number of `SELECT` and `VALUES` after expansion. */
  readonly selects: number;
  /** How often an innermost column may be expanded. */
  readonly copies: number;
}

type Part = Token | readonly Part[];

class Expansion {
  readonly #root: readonly Part[];
  readonly #bodies: ReadonlyMap<string, readonly (readonly Part[])[]>;
  readonly #known = new Map<string, Extent>();

  constructor(tokens: readonly Token[], views: ReadonlyMap<string, readonly Token[]>) {
    const bodies = new Map<string, (readonly Part[])[]>();
    for (const [name, text] of views)
      bodies.set(name, [...(bodies.get(name) ?? []), withoutDefinitions(nested(text), bodies)]);
    this.#root = withoutDefinitions(nested(tokens), bodies);
    this.#bodies = bodies;
  }

  all(): Extent {
    return this.#of(this.#root, new Set());
  }

  #of(parts: readonly Part[], within: ReadonlySet<string>): Extent {
    let selects = 0;
    let deepest = 1;
    const named = new Map<string, number>();
    const look = (level: readonly Part[]): void => {
      for (const [at, part] of level.entries()) {
        if (!('word' in part)) {
          if (!isQuery(part)) {
            look(part);
            continue;
          }
          const inner = this.#of(part, within);
          selects += inner.selects;
          deepest = Math.max(deepest, inner.copies);
          continue;
        }
        if (part.type === 'sign' || part.type === 'slot') continue;
        if (part.type === 'word' && (part.word === 'SELECT' || part.word === 'VALUES')) selects += 1;
        const inner = this.#named(part.word, within);
        selects += inner.selects;
        deepest = Math.max(deepest, inner.copies);
        const after = level[at + 1];
        if (part.type === 'text' || /^\d/.test(part.word) || LANGUAGE.has(part.word)) continue;
        // A function, a table name before a column, or the `x` of a blob.
        if (after !== undefined && (!('word' in after) || after.word === '.' || after.type === 'text')) continue;
        named.set(part.word, (named.get(part.word) ?? 0) + 1);
      }
    };
    look(parts);
    return { selects, copies: Math.max(1, ...named.values()) * deepest };
  }

  #named(name: string, within: ReadonlySet<string>): Extent {
    const bodies = this.#bodies.get(name);
    if (bodies === undefined || within.has(name)) return { selects: 0, copies: 1 };
    const known = this.#known.get(name);
    if (known !== undefined) return known;
    const inside = new Set([...within, name]);
    const extents = bodies.map((body) => this.#of(body, inside));
    const extent = {
      selects: Math.max(...extents.map(({ selects }) => selects)),
      copies: Math.max(...extents.map(({ copies }) => copies)),
    };
    this.#known.set(name, extent);
    return extent;
  }
}

/** A parenthesised query. */
function isQuery(parts: readonly Part[]): boolean {
  const [first] = parts;
  if (first === undefined) return false;
  if (!('word' in first)) return isQuery(first);
  return first.type === 'word' && ['SELECT', 'VALUES', 'WITH'].includes(first.word);
}

/** Parentheses as nested lists. */
function nested(tokens: readonly Token[]): readonly Part[] {
  const root: Part[] = [];
  const open: Part[][] = [root];
  for (const token of tokens) {
    const top = open.at(-1) ?? root;
    if (token.type === 'sign' && token.word === '(') {
      const list: Part[] = [];
      top.push(list);
      open.push(list);
    } else if (token.type === 'sign' && token.word === ')') {
      if (open.length > 1) open.pop();
    } else top.push(token);
  }
  return root;
}

/** Removes `name [(columns)] AS [NOT MATERIALIZED] (…)`, and stores the parenthesised part by name. */
function withoutDefinitions(parts: readonly Part[], bodies: Map<string, (readonly Part[])[]>): readonly Part[] {
  const rest: Part[] = [];
  for (let at = 0; at < parts.length; at += 1) {
    const part = parts[at] as Part;
    if (!('word' in part)) {
      rest.push(withoutDefinitions(part, bodies));
      continue;
    }
    const name = rest.at(-1);
    const titled = name !== undefined && !('word' in name) ? rest.at(-2) : name;
    let body = at + 1;
    while (isWord(parts[body], 'NOT') || isWord(parts[body], 'MATERIALIZED')) body += 1;
    const inside = parts[body];
    if (!isWord(part, 'AS') || inside === undefined || 'word' in inside || !isQuery(inside)) {
      rest.push(part);
      continue;
    }
    if (titled !== undefined && 'word' in titled) {
      bodies.set(titled.word, [...(bodies.get(titled.word) ?? []), withoutDefinitions(inside, bodies)]);
      at = body;
    } else rest.push(part);
  }
  return rest;
}

function isWord(part: Part | undefined, word: string): boolean {
  return part !== undefined && 'word' in part && part.type === 'word' && part.word === word;
}

/** @param statements the statement, and the texts of the database's tables, indexes and views */
export function textsOf(statement: readonly Token[], others: readonly (readonly Token[])[]): Texts {
  const all = [statement, ...others];
  const values = all.flatMap((tokens) => tokens.filter(({ type }) => type === 'text' || type === 'slot'));
  const bytes = values.map((token) => token.bytes);
  const totalBytes = bytes.reduce((sum, one) => sum + one, 0);
  const words = (word: string): number =>
    all.reduce((sum, tokens) => sum + tokens.filter((token) => token.type !== 'sign' && token.word === word).length, 0);
  return {
    totalBytes,
    repeatedBytes: totalBytes - documentBytes(all),
    longestBytes: bytes.reduce((most, one) => Math.max(most, one), 0),
    levels: Math.max(1, words('SELECT')),
    patternBytes: patternBytes(all),
    needleBytes: needleBytes(all),
    replaceTimes: replaceTimes(all),
    formatBytes: formatBytes(all),
    jsonTables: words('JSON_EACH') + words('JSON_TREE'),
    jsonTree: words('JSON_TREE') > 0,
    jsonItems: jsonItems(all),
    alters: statement[0]?.word === 'ALTER',
  };
}

/** Bytes of the longest pattern in the text; SQLite's maximum if one is not in the text. */
function patternBytes(texts: readonly (readonly Token[])[]): number {
  let most = 1;
  for (const tokens of texts) {
    for (const [at, { type, word }] of tokens.entries()) {
      if (type !== 'word' && type !== 'quoted') continue;
      if (word !== 'LIKE' && word !== 'GLOB') continue;
      const pattern = tokens[at + 1];
      const written =
        type === 'word' && (pattern?.type === 'text' || pattern?.type === 'slot') && isAlone(tokens[at + 2]);
      most = Math.max(most, written ? (pattern?.bytes ?? 0) : limits.relicPatternBytes);
    }
  }
  return Math.min(most, limits.relicPatternBytes);
}

/** Whether the preceding text is a plain value, without an operator that could enlarge it. */
function isAlone(after: Token | undefined): boolean {
  return after?.word !== '|' && after?.word !== '-' && after?.word !== 'COLLATE';
}

/** Number of rows of the largest `json_each` document; null if one is not in the text. */
function jsonItems(texts: readonly (readonly Token[])[]): number | null {
  let most = 1;
  for (const call of callsOf(texts, ['JSON_EACH', 'JSON_TREE'])) {
    const [document, ...more] = call[0] ?? [];
    if (more.length > 0 || (document?.type !== 'text' && document?.type !== 'slot')) return null;
    most = Math.max(most, document.items);
  }
  return most;
}

/** Bytes of the documents of `json_each` that are in the text: only their parts are read for each row. */
function documentBytes(texts: readonly (readonly Token[])[]): number {
  return callsOf(texts, ['JSON_EACH', 'JSON_TREE']).reduce((sum, call) => sum + (literalBytes(call[0]) ?? 0), 0);
}

/** Bytes of an argument, if it is a literal. */
function literalBytes(argument: readonly Token[] | undefined): number | null {
  const [value, ...more] = argument ?? [];
  return more.length === 0 && (value?.type === 'text' || value?.type === 'slot') ? value.bytes : null;
}

/** The largest of some sizes; null if one is unknown. */
function longestOf(sizes: readonly (number | null)[]): number | null {
  return sizes.reduce<number | null>((most, size) => (most === null || size === null ? null : Math.max(most, size)), 1);
}

function needleBytes(texts: readonly (readonly Token[])[]): number | null {
  const calls = callsOf(texts, ['INSTR', 'REPLACE', 'TRIM', 'LTRIM', 'RTRIM']);
  return longestOf(calls.flatMap((call) => (call.length < 2 ? [] : [literalBytes(call[1])])));
}

function replaceTimes(texts: readonly (readonly Token[])[]): number | null {
  return longestOf(callsOf(texts, ['REPLACE']).flatMap((call) => (call.length < 3 ? [] : [literalBytes(call[2])])));
}

/** Bytes that formats such as `%5.2f` add to those of their arguments; `*` would take a width from a value. */
function formatBytes(texts: readonly (readonly Token[])[]): number | null {
  let most = 0;
  for (const call of callsOf(texts, ['PRINTF', 'FORMAT'])) {
    const [format] = call[0] ?? [];
    if (format?.type !== 'text' || literalBytes(call[0]) === null || format.word.includes('*')) return null;
    let bytes = format.bytes;
    for (const [, flags = '', letter = ''] of format.word.matchAll(/%([^A-Z%]*)([A-Z])/g)) {
      // A number without an exponent has up to 309 digits.
      bytes += letter === 'F' ? 340 : 40;
      for (const [width] of flags.matchAll(/\d+/g)) bytes += Number(width);
    }
    most = Math.max(most, bytes);
  }
  return most;
}

/** The arguments of each call of these functions. */
function callsOf(texts: readonly (readonly Token[])[], names: readonly string[]): (readonly Token[])[][] {
  const calls: (readonly Token[])[][] = [];
  for (const tokens of texts) {
    for (const [at, { type, word }] of tokens.entries()) {
      const open = tokens[at + 1];
      if (
        (type !== 'word' && type !== 'quoted') ||
        !names.includes(word) ||
        open?.type !== 'sign' ||
        open.word !== '('
      ) {
        continue;
      }
      const parts: Token[][] = [[]];
      let depth = 1;
      for (let place = at + 2; place < tokens.length && depth > 0; place += 1) {
        const token = tokens[place] as Token;
        const sign = token.type === 'sign' ? token.word : '';
        if (sign === '(') depth += 1;
        if (sign === ')') depth -= 1;
        if (sign === ',' && depth === 1) parts.push([]);
        else if (depth > 0) parts.at(-1)?.push(token);
      }
      calls.push(parts);
    }
  }
  return calls;
}
