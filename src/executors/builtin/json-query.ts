/** `json_query`: evaluates a JMESPath expression on JSON data (M3), with a work limit. */
import { messageOf } from '../../domain/errors.ts';
import { parseJson, type Json } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import { WorkExceeded } from '../../domain/work.ts';
import type { WorkMeter } from '../../domain/work.ts';
import type { Executor } from '../executor.ts';
import { failure } from '../../domain/failure.ts';
import { quote, wrongParameter } from '../failure.ts';
import { runQuery } from './query.ts';

export const jsonQuery: Executor = {
  async execute({ parameters }, { pacer, signal }) {
    const { query, data } = parameters;
    if (typeof query !== 'string') return wrongParameter('query', 'a JMESPath expression as a string', query);
    if (data === undefined) return wrongParameter('data', 'any JSON value', data);
    try {
      const output = await pacer.run(
        limits.querySteps,
        (meter) => runQuery(fromText(data, meter), query, meter),
        signal,
      );
      return { ok: true, output };
    } catch (fault) {
      if (fault instanceof WorkExceeded) {
        return failure(
          'query_too_expensive',
          `The JMESPath expression ${quote(query)} needs too much work on this data (allowed: ${limits.querySteps} steps); ` +
            'simplify it: fewer nested functions, or a part of the data',
        );
      }
      return failure('invalid_query', `The JMESPath expression ${quote(query)} failed: ${messageOf(fault)}`);
    }
  },
};

/** References in text and most tools pass JSON as a string; a query on the string itself is not useful. */
function fromText(data: Json, meter: WorkMeter): Json {
  if (typeof data !== 'string' || !/^\s*[[{]/.test(data)) return data;
  meter.chargeChars(data.length);
  return parseJson(data) ?? data;
}
