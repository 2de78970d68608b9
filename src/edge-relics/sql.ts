/**
 * What of SQL an edge relic runs (R6): one statement of an allowed kind, with its values bound.
 *
 * The text is cut into tokens as SQLite does it, so that no string or comment hides a second statement.
 * SQLite at the edge cannot be interrupted: recursion is refused here, and what else a statement may do is
 * judged by its words (`shape.ts`) and by the program that SQLite makes of it (`cost.ts`).
 */
import type { Json, JsonObject } from '../domain/json.ts';
import { limits } from '../domain/limits.ts';
import type { SqlValue } from '../domain/ports.ts';
import { itemsOf } from './shape.ts';
import type { Token } from './shape.ts';

/** Names of the store's own tables begin so; no statement may name them. */
export const OWN_TABLES = 'cortex_relic_';

const READS = ['SELECT', 'VALUES', 'WITH'] as const;
const WRITES = ['INSERT', 'REPLACE', 'UPDATE', 'DELETE', 'WITH', 'CREATE', 'DROP', 'ALTER'] as const;
const CREATES = ['TABLE', 'INDEX', 'UNIQUE', 'VIEW'] as const;

/** A string, a comment, a quoted name, a parameter, a word or number, or one other character. */
const TOKEN =
  /(?<skip>\s+|--[^\n]*|\/\*[\s\S]*?(?:\*\/|$))|(?<text>'(?:[^']|'')*'?)|(?<quoted>"(?:[^"]|"")*"?|`(?:[^`]|``)*`?|\[[^\]]*\]?)|(?<slot>\?\d*|[:@$][A-Za-z_]\w*)|(?<word>[\p{L}\p{N}_$]+)|(?<sign>[\s\S])/gu;

export interface Statement {
  /** With every parameter written `?`. */
  readonly sql: string;
  readonly values: readonly SqlValue[];
  /** Its first word, in capitals. */
  readonly kind: string;
  readonly tokens: readonly Token[];
}

/** @returns the statement, or what is wrong with it */
export function readStatement(
  text: string,
  params: Json | undefined,
  endpoint: 'query' | 'execute',
): Statement | { readonly fault: string } {
  if (text.length > limits.relicStatementChars) {
    return { fault: `the statement is longer than ${limits.relicStatementChars} characters` };
  }
  if (text.includes('\0')) return { fault: 'the statement holds a NUL character' };
  if (text.toLowerCase().includes(OWN_TABLES)) return { fault: `names with "${OWN_TABLES}" belong to the store` };
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
    if (ended) return { fault: 'one statement at a time: there is something behind the ";"' };
    if (token === ';') {
      ended = true;
      continue;
    }
    if (groups['slot'] !== undefined) {
      const value = valueFor(token, params, taken);
      if (typeof value === 'object' && value !== null && 'fault' in value) return value;
      if (token === '?') taken += 1;
      values.push(value);
      sql += '?';
      const said = typeof value === 'string' ? value : '';
      tokens.push({ word: '?', type: 'slot', bytes: Math.max(8, bytesOf(said)), items: itemsOf(said) });
      continue;
    }
    if (token === '(') depth += 1;
    if (token === ')') depth -= 1;
    if (depth > limits.relicStatementDepth) {
      return { fault: `the statement has more than ${limits.relicStatementDepth} brackets within each other` };
    }
    sql += token;
    tokens.push(tokenOf(token, groups));
  }
  if (Array.isArray(params) && taken !== params.length) {
    return { fault: `"params" has ${params.length} values for ${taken} placeholders "?"` };
  }
  const words = tokens.map(({ word, type }) => ((word === '(' || word === ')') && type !== 'sign' ? '_' : word));
  const [kind = '', what = ''] = words;
  const allowed: readonly string[] = endpoint === 'query' ? READS : WRITES;
  if (!allowed.includes(kind)) {
    return { fault: `"${kind.slice(0, limits.excerptChars)}" is not for ${endpoint} (allowed: ${allowed.join(', ')})` };
  }
  if (kind === 'CREATE' && !(CREATES as readonly string[]).includes(what)) {
    return { fault: `CREATE ${what.slice(0, limits.excerptChars)} is not allowed (allowed: ${CREATES.join(', ')})` };
  }
  if (kind === 'ALTER' && words[words.indexOf('RENAME') + 1] === 'TO') {
    // SQLite would write the new name into views, also where an expression of that name refers to the table.
    return { fault: 'a table cannot be given another name' };
  }
  const recursive = recursion(words);
  if (recursive !== null) return { fault: `"${recursive}" is defined by itself: recursion is not allowed` };
  return { sql: sql.trim(), values, kind, tokens };
}

/** A text of the database's own, which SQLite wrote: the words of a view, a table or an index. */
export function tokensOf(text: string): readonly Token[] {
  const tokens: Token[] = [];
  for (const { 0: token, groups = {} } of text.matchAll(TOKEN)) {
    if (groups['skip'] === undefined && token !== ';') tokens.push(tokenOf(token, groups));
  }
  return tokens;
}

/** As names are compared: a doubled quote is the one it means; SQLite takes strings for names, too. */
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

function valueFor(slot: string, params: Json | undefined, taken: number): SqlValue | { readonly fault: string } {
  if (slot.length > 1 && slot.startsWith('?')) return { fault: `"${slot}": write "?" or ":name"` };
  if (slot === '?') {
    if (Array.isArray(params) && taken < params.length) return bound(params[taken] ?? null);
    return { fault: '"params" must be a list with a value for each "?"' };
  }
  const name = slot.slice(1);
  const named = typeof params === 'object' && params !== null && !Array.isArray(params) ? (params as JsonObject) : {};
  return Object.hasOwn(named, name) ? bound(named[name] ?? null) : { fault: `"params" has no value for "${slot}"` };
}

function bound(value: Json): SqlValue {
  if (typeof value === 'boolean') return value ? 1 : 0;
  return typeof value === 'object' && value !== null ? JSON.stringify(value) : value;
}

/** The name of a common table expression that refers to itself; SQLite does not need the word RECURSIVE for that. */
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
