/**
 * Reads SQL for an edge relic (R6): one statement of an allowed kind, with bound values.
 *
 * The text is tokenised like in SQLite, so that no string or comment can hide a second statement. SQLite in a Durable
 * Object cannot be interrupted: recursion is rejected here; everything else is checked by words (shape.ts) and by the
 * compiled program (cost.ts).
 */
import type { Json, JsonObject } from '../domain/json.ts';
import { limits } from '../domain/limits.ts';
import type { SqlValue } from '../domain/ports/storage.ts';
import { itemsOf } from './shape.ts';
import type { Token } from './shape.ts';

/** Prefix of the store's own tables; no statement may name them. */
export const OWN_TABLES = 'cortex_relic_';

const READS = ['SELECT', 'VALUES', 'WITH'] as const;
const WRITES = ['INSERT', 'REPLACE', 'UPDATE', 'DELETE', 'WITH', 'CREATE', 'DROP', 'ALTER'] as const;
const CREATES = ['TABLE', 'INDEX', 'UNIQUE', 'VIEW'] as const;

/** A string, a comment, a quoted name, a parameter, a word or number, or one other character. */
const TOKEN =
  /(?<skip>\s+|--[^\n]*|\/\*[\s\S]*?(?:\*\/|$))|(?<text>'(?:[^']|'')*'?)|(?<quoted>"(?:[^"]|"")*"?|`(?:[^`]|``)*`?|\[[^\]]*\]?)|(?<slot>\?\d*|[:@$][A-Za-z_]\w*)|(?<word>[\p{L}\p{N}_$]+)|(?<sign>[\s\S])/gu;

export interface Statement {
  /** With every parameter replaced by `?`. */
  readonly sql: string;
  readonly values: readonly SqlValue[];
  /** Its first word, in upper case. */
  readonly kind: string;
  readonly tokens: readonly Token[];
}

/** @returns the statement, or the issue */
export function readStatement(
  text: string,
  params: Json | undefined,
  endpoint: 'query' | 'execute',
): Statement | { readonly issue: string } {
  if (text.length > limits.relicStatementChars) {
    return { issue: `the statement is longer than ${limits.relicStatementChars} characters` };
  }
  if (text.includes('\0')) return { issue: 'the statement contains a NUL character' };
  if (text.toLowerCase().includes(OWN_TABLES))
    return { issue: `names with "${OWN_TABLES}" are reserved for the store` };
  const values: SqlValue[] = [];
  const tokens: Token[] = [];
  let sql = '';
  let ended = false;
  let depth = 0;
  let taken = 0;
  for (const { 0: token, groups = {} } of text.matchAll(TOKEN)) {
    if (groups['skip'] !== undefined) {
      sql += ' ';
      continue;
    }
    if (ended) return { issue: 'only one statement is allowed: there is text after the ";"' };
    if (token === ';') {
      ended = true;
      continue;
    }
    if (groups['slot'] !== undefined) {
      const value = valueFor(token, params, taken);
      if (typeof value === 'object' && value !== null && 'issue' in value) return value;
      if (token === '?') taken += 1;
      values.push(value);
      sql += '?';
      const written = typeof value === 'string' ? value : '';
      tokens.push({ word: '?', type: 'slot', bytes: Math.max(8, bytesOf(written)), items: itemsOf(written) });
      continue;
    }
    if (token === '(') depth += 1;
    if (token === ')') depth -= 1;
    if (depth > limits.relicStatementDepth) {
      return { issue: `parentheses are nested too deeply (allowed: ${limits.relicStatementDepth} levels)` };
    }
    sql += token;
    tokens.push(tokenOf(token, groups));
  }
  if (Array.isArray(params) && taken !== params.length) {
    return { issue: `"params" has ${params.length} values for ${taken} placeholders "?"` };
  }
  const words = tokens.map(({ word, type }) => ((word === '(' || word === ')') && type !== 'sign' ? '_' : word));
  const [kind = '', what = ''] = words;
  const allowed: readonly string[] = endpoint === 'query' ? READS : WRITES;
  if (!allowed.includes(kind)) {
    return {
      issue: `"${kind.slice(0, limits.excerptChars)}" is not allowed for ${endpoint} (allowed: ${allowed.join(', ')})`,
    };
  }
  if (kind === 'CREATE' && !(CREATES as readonly string[]).includes(what)) {
    return { issue: `CREATE ${what.slice(0, limits.excerptChars)} is not allowed (allowed: ${CREATES.join(', ')})` };
  }
  if (kind === 'ALTER' && words[words.indexOf('RENAME') + 1] === 'TO') {
    // SQLite would also rename it in views, including where an expression of that name refers to the table.
    return { issue: 'a table cannot be renamed' };
  }
  const recursive = recursion(words);
  if (recursive !== null) return { issue: `"${recursive}" refers to itself: recursion is not allowed` };
  return { sql: sql.trim(), values, kind, tokens };
}

/** Tokens of a text that SQLite stores: the definition of a view, a table or an index. */
export function tokensOf(text: string): readonly Token[] {
  const tokens: Token[] = [];
  for (const { 0: token, groups = {} } of text.matchAll(TOKEN)) {
    if (groups['skip'] === undefined && token !== ';') tokens.push(tokenOf(token, groups));
  }
  return tokens;
}

/** In the form used to compare names: a doubled quote is a single one. SQLite also accepts strings as names. */
function tokenOf(token: string, groups: Readonly<Record<string, string | undefined>>): Token {
  if (groups['text'] !== undefined) {
    return { word: unquoted(token).toUpperCase(), type: 'text', bytes: bytesOf(token), items: itemsOf(token) };
  }
  if (groups['quoted'] !== undefined) {
    return { word: unquoted(token).toUpperCase(), type: 'quoted', bytes: bytesOf(token), items: itemsOf(token) };
  }
  return { word: token.toUpperCase(), type: groups['sign'] === undefined ? 'word' : 'sign', bytes: 0, items: 0 };
}

const encoder = new TextEncoder();

function bytesOf(text: string): number {
  return encoder.encode(text).length;
}

function unquoted(token: string): string {
  const quote = token.slice(0, 1);
  const inner = token.slice(1, -1);
  return quote === '[' ? inner : inner.replaceAll(quote + quote, quote);
}

function valueFor(slot: string, params: Json | undefined, taken: number): SqlValue | { readonly issue: string } {
  if (slot.length > 1 && slot.startsWith('?')) return { issue: `"${slot}": write "?" or ":name"` };
  if (slot === '?') {
    if (Array.isArray(params) && taken < params.length) return bound(params[taken] ?? null);
    return { issue: '"params" must be a list with one value for each "?"' };
  }
  const name = slot.slice(1);
  const named = typeof params === 'object' && params !== null && !Array.isArray(params) ? (params as JsonObject) : {};
  return Object.hasOwn(named, name) ? bound(named[name] ?? null) : { issue: `"params" has no value for "${slot}"` };
}

function bound(value: Json): SqlValue {
  if (typeof value === 'boolean') return value ? 1 : 0;
  return typeof value === 'object' && value !== null ? JSON.stringify(value) : value;
}

/** The name of a common table expression that refers to itself; SQLite does not require the word RECURSIVE. */
function recursion(words: readonly string[]): string | null {
  if (!words.includes('WITH')) return null;
  for (const [at, word] of words.entries()) {
    if (word !== 'AS') continue;
    let open = at + 1;
    if (words[open] === 'NOT') open += 1;
    if (words[open] === 'MATERIALIZED') open += 1;
    if (words[open] !== '(') continue;
    let from = at - 1;
    if (words[from] === ')') {
      while (from > 0 && words[from] !== '(') from -= 1;
      from -= 1;
    }
    const name = words[from] ?? '';
    let depth = 0;
    for (let place = open; place < words.length; place += 1) {
      const inside = words[place];
      if (inside === '(') depth += 1;
      if (inside === ')') depth -= 1;
      if (depth === 0) break;
      if (inside === name) return name.toLowerCase();
    }
  }
  return null;
}
