/** Built-in endpoints of edge stores (R6). */
import type { Effects } from '../../domain/action.ts';
import type { JsonObject } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import type { RelicEndpoint } from '../../domain/manifest.ts';

const KEY = { type: 'string', minLength: 1, maxLength: limits.relicKeyChars };
const LIMIT = {
  type: 'integer',
  minimum: 1,
  maximum: limits.relicPageRows,
  description: 'How many at most. Default 100.',
};
const TTL = { type: 'number', exclusiveMinimum: 0, description: 'Seconds until it is forgotten.' };
const TEXT = { type: 'string', minLength: 1 };
const PARAMS = { type: ['array', 'object'], description: 'Values for ?, in order, or for :name, by name.' };
const SINCE = {
  type: ['string', 'number'],
  description: 'From this time on: ISO 8601, epoch milliseconds, or an age such as "1h".',
};
const FILTER = { type: 'string', description: 'Only entries whose text holds this.' };

function endpoint(
  name: string,
  effects: Effects,
  summary: string,
  properties: JsonObject,
  required: string[],
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
    returns: null,
    effects,
    timeoutMs: null,
    http: { method: 'POST', path: `/${name}` },
  };
}

const KV = [
  endpoint(
    'get',
    'idempotent',
    'The value of a key; null (or the default) when there is none.',
    { key: KEY, default: {} },
    ['key'],
  ),
  endpoint(
    'set',
    'idempotent',
    'Stores a value under a key.',
    {
      key: KEY,
      value: { description: 'Any JSON value.' },
      ttl: TTL,
      if_version: { type: 'integer', minimum: 0, description: 'Only if this is its version; 0 = only if it is new.' },
    },
    ['key', 'value'],
  ),
  endpoint('delete', 'idempotent', 'Forgets a key.', { key: KEY }, ['key']),
  endpoint(
    'list',
    'idempotent',
    'Keys in order with their values, a page at a time.',
    {
      prefix: { type: 'string', description: 'Only keys that begin with this.' },
      after: { type: 'string', description: 'The last key of the page before.' },
      limit: LIMIT,
      values: { type: 'boolean', description: 'Whether the values come along. Default true.' },
    },
    [],
  ),
  endpoint(
    'increment',
    'unsafe',
    'Adds to the number under a key and returns the sum.',
    { key: KEY, by: { type: 'number', description: 'Default 1.' }, ttl: TTL },
    ['key'],
  ),
];

const LOG = [
  endpoint(
    'tail',
    'idempotent',
    'The latest entries, oldest first.',
    { limit: LIMIT, filter: FILTER, since: SINCE },
    [],
  ),
  endpoint('append', 'unsafe', 'Adds an entry at the end.', { entry: { description: 'Any JSON value.' }, ttl: TTL }, [
    'entry',
  ]),
  endpoint(
    'range',
    'idempotent',
    'Entries by number, oldest first, a page at a time.',
    {
      after: { type: 'integer', minimum: 0, description: 'The number of the last entry of the page before.' },
      until: SINCE,
      limit: LIMIT,
      filter: FILTER,
      since: SINCE,
    },
    [],
  ),
];

const SQL = [
  endpoint('query', 'idempotent', 'Reads with one SELECT of SQLite; returns the rows.', { sql: TEXT, params: PARAMS }, [
    'sql',
  ]),
  endpoint('execute', 'unsafe', 'Runs one statement of SQLite that changes something.', { sql: TEXT, params: PARAMS }, [
    'sql',
  ]),
];

/** The endpoints of each kind of store; a feed without an endpoint uses the first one. */
export const EDGE_ENDPOINTS: Readonly<Record<'kv' | 'log' | 'sql', readonly RelicEndpoint[]>> = {
  kv: KV,
  log: LOG,
  sql: SQL,
};
