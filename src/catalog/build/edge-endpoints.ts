/** Built-in endpoints of edge stores (R6). */
import type { Effects } from '../../domain/action.ts';
import type { JsonObject } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import type { RelicEndpoint } from '../../domain/manifests/relic.ts';

const KEY = { type: 'string', minLength: 1, maxLength: limits.relicKeyChars };
const LIMIT = {
  type: 'integer',
  minimum: 1,
  maximum: limits.relicPageRows,
  description: 'Maximum number. Default 100.',
};
const TTL = { type: 'number', exclusiveMinimum: 0, description: 'Lifetime in seconds.' };
const TEXT = { type: 'string', minLength: 1 };
const PARAMS = { type: ['array', 'object'], description: 'Values for ? by position, or for :name by name.' };
const SINCE = {
  type: ['string', 'number'],
  description: 'Earliest time: ISO 8601, epoch milliseconds, or an age such as "1h".',
};
const UNTIL = {
  type: ['string', 'number'],
  description: 'Latest time: ISO 8601, epoch milliseconds, or an age such as "1h".',
};
const ANY = {};
const STRING = { type: 'string' };
const INTEGER = { type: 'integer' };
const listOf = (properties: JsonObject): JsonObject => ({ type: 'array', items: objectOf(properties) });
const objectOf = (properties: JsonObject): JsonObject => ({ type: 'object', properties });
const LOG_ENTRIES = listOf({ number: INTEGER, at: STRING, entry: ANY });
const ROWS = { type: 'array', items: { type: 'object' } };
const FILTER = { type: 'string', description: 'Only entries whose JSON contains this text.' };

function endpoint(
  name: string,
  effects: Effects,
  summary: string,
  properties: JsonObject,
  required: string[],
  returns: JsonObject,
): RelicEndpoint {
  return {
    name,
    summary,
    parameters: {
      type: 'object',
      properties,
      ...(required.length > 0 ? { required } : {}),
      additionalProperties: false,
    },
    returns,
    effects,
    timeoutMs: null,
    http: { method: 'POST', path: `/${name}` },
  };
}

const KV = [
  endpoint(
    'get',
    'idempotent',
    'The value of a key; null or the default if the key does not exist.',
    { key: KEY, default: {} },
    ['key'],
    ANY,
  ),
  endpoint(
    'set',
    'idempotent',
    'Stores a value under a key.',
    {
      key: KEY,
      value: { description: 'Any JSON value.' },
      ttl: TTL,
      if_version: {
        type: 'integer',
        minimum: 0,
        description: 'Only if the key has this version; 0 = only if it does not exist.',
      },
    },
    ['key', 'value'],
    objectOf({ key: STRING, version: INTEGER }),
  ),
  endpoint(
    'delete',
    'idempotent',
    'Deletes a key.',
    { key: KEY },
    ['key'],
    objectOf({ key: STRING, deleted: { type: 'boolean' } }),
  ),
  endpoint(
    'list',
    'idempotent',
    'One page of keys in order, with their values.',
    {
      prefix: { type: 'string', description: 'Only keys with this prefix.' },
      after: { type: 'string', description: 'The last key of the previous page.' },
      limit: LIMIT,
      values: { type: 'boolean', description: 'Whether to include the values. Default true.' },
    },
    [],
    objectOf({ entries: listOf({ key: STRING, value: ANY, version: INTEGER, updated_at: STRING }), next: STRING }),
  ),
  endpoint(
    'increment',
    'unsafe',
    'Adds to the number stored under a key; returns the sum.',
    { key: KEY, by: { type: 'number', description: 'Default 1.' }, ttl: TTL },
    ['key'],
    { type: 'number' },
  ),
];

const LOG = [
  endpoint(
    'tail',
    'idempotent',
    'The latest entries, oldest first.',
    { limit: LIMIT, filter: FILTER, since: SINCE },
    [],
    LOG_ENTRIES,
  ),
  endpoint(
    'append',
    'unsafe',
    'Adds an entry at the end.',
    { entry: { description: 'Any JSON value.' }, ttl: TTL },
    ['entry'],
    objectOf({ number: INTEGER }),
  ),
  endpoint(
    'range',
    'idempotent',
    'One page of entries in order, oldest first.',
    {
      after: { type: 'integer', minimum: 0, description: 'The number of the last entry of the previous page.' },
      until: UNTIL,
      limit: LIMIT,
      filter: FILTER,
      since: SINCE,
    },
    [],
    objectOf({ entries: LOG_ENTRIES, next: INTEGER }),
  ),
];

const SQL = [
  endpoint(
    'query',
    'idempotent',
    'Runs one SQLite SELECT; returns the rows.',
    { sql: TEXT, params: PARAMS },
    ['sql'],
    objectOf({ rows: ROWS, truncated: { type: 'boolean' } }),
  ),
  endpoint(
    'execute',
    'unsafe',
    'Runs one SQLite statement that changes data.',
    { sql: TEXT, params: PARAMS },
    ['sql'],
    { ...objectOf({ changes: INTEGER, rows: ROWS }), required: ['changes'] },
  ),
];

/** The endpoints of each kind of store; a feed without an endpoint uses the first one. */
export const EDGE_ENDPOINTS: Readonly<Record<'kv' | 'log' | 'sql', readonly RelicEndpoint[]>> = {
  kv: KV,
  log: LOG,
  sql: SQL,
};
