/** `json_query`: a JMESPath expression over JSON data (M3). */
import { search } from '@jmespath-community/jmespath';
import { messageOf } from '../../domain/errors.ts';
import type { Json } from '../../domain/json.ts';
import type { Executor } from '../executor.ts';
import { failure, quote, wrongParameter } from '../failure.ts';

export const jsonQuery: Executor = {
  // oxlint-disable-next-line require-await -- the interface is asynchronous
  async execute({ parameters }) {
    const { query, data } = parameters;
    if (typeof query !== 'string') return wrongParameter('query', 'a JMESPath expression as text', query);
    if (data === undefined) return wrongParameter('data', 'any JSON value', data);
    try {
      const result = search(fromText(data), query) as Json | undefined;
      return { ok: true, output: result ?? null };
    } catch (fault) {
      return failure('invalid_query', `The JMESPath expression ${quote(query)} failed: ${messageOf(fault)}`);
    }
  },
};

/** References in text and most tools give JSON as text; a query on the text itself makes no sense. */
function fromText(data: Json): Json {
  if (typeof data !== 'string' || !/^\s*[[{]/.test(data)) return data;
  try {
    return JSON.parse(data) as Json;
  } catch {
    return data;
  }
}
