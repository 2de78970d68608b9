/** Scorers that need no model (O3). */
import { describe, expect, test } from 'vitest';
import type { Expectation } from '../../../cli/eval/dataset.ts';
import { score } from '../../../cli/eval/scorers.ts';
import type { JsonObject } from '../../../src/domain/json.ts';

const document = (response: string): JsonObject => ({
  status: 'completed',
  response,
  session_id: 'ses_1',
  actions: [{ name: 'calculator', status: 'completed' }],
  usage: { prompt_tokens: 10, completion_tokens: 5, cost: 0.01 },
});

describe('[O3] scorers', () => {
  test.each<[Omit<Expectation, 'judge'>, string, string | null]>([
    [{ exact: 'yes' }, ' yes\n', null],
    [{ exact: 'yes' }, 'yes!', 'the answer is "yes!"'],
    [{ contains: '42' }, 'it is 42', null],
    [{ contains: '43' }, 'it is 42', 'does not contain "43"'],
    [{ matches: '^[0-9]+$' }, '42', null],
    [{ matches: '^[a-z]+$' }, '42', 'does not match ^[a-z]+$'],
    [{ matches: '(a)\\1' }, 'aa', 'cannot be matched in linear time'],
    [{ json: { a: 1, b: [true] } }, '{"a":1,"b":[true],"c":0}', null],
    [{ json: { a: 1 } }, '```json\n{"a":1}\n```', null],
    [{ json: { a: { b: 2 } } }, '{"a":{"b":3}}', 'the answer.a.b is "3", not 2'],
    [{ json: { a: null } }, '{}', 'the answer.a is missing'],
    [{ json: { constructor: 'Ford' } }, '{}', 'the answer.constructor is missing'],
    [{ json: { a: { toString: { b: 1 } } } }, '{"a":{}}', 'the answer.a.toString is missing'],
    [{ json: { constructor: 'Ford' } }, '{"constructor":"Ford"}', null],
    [{ json: [1, 2] }, '[1]', 'is not a list of 2 items'],
    [{ json: {} }, 'no', 'is not JSON'],
    [{ json: {} }, '['.repeat(9_000) + ']'.repeat(9_000), 'is nested deeper than 64 levels'],
    [{ cel: 'actions.exists(a, a.name == "calculator")' }, '', null],
    [{ cel: 'usage.prompt_tokens < 5' }, '', 'the condition is false'],
    [{ cel: 'nothing == 1' }, '', 'the condition cannot be evaluated: '],
    [{ cel: 'actions[1].status == "failed"' }, '', 'the condition is false'],
    [{ cel: 'actions[0].status > 1' }, '', 'the condition cannot be evaluated: '],
  ])('%j on %j: %s', (expectation, response, reason) => {
    const found = score(expectation, { response, document: document(response) });
    if (reason === null) expect(found).toBeNull();
    else expect(found).toContain(reason);
  });
});
