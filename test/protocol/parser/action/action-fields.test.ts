/** The fields of an action in its tag and its body (P6, P18), with their warnings and rejections. */
import { describe, expect, test } from 'vitest';
import { ACTION_TYPES } from '../../../../src/domain/action-types.ts';
import { limits } from '../../../../src/domain/limits.ts';
import type { ProtocolEvent } from '../../../../src/domain/protocol-event.ts';
import { actionsOf, describe as described, parse, rejectionsOf } from '../parser-kit.ts';

const messagesOf = (events: readonly ProtocolEvent[]): string[] =>
  events.flatMap((event) => (event.type === 'warning' ? [`${event.code}: ${event.message}`] : []));
const full = (fields: string): string => `<action name="t" id="a">{"parameters": {}, ${fields}}</action>`;
const field = (fields: string): string =>
  actionsOf(parse(full(fields)))
    .map((action) => described(action).replace('a tool:t sync {}', '').trim())
    .join('|');

describe('[P6] a field', () => {
  test.each([
    ['"output_key": "report"', 'output_key=report'],
    ['"output_key": "$report"', 'output_key=report'],
    ['"output_key": " report "', 'output_key=report'],
    ['"output_key": ""', ''],
    ['"output_key": "$"', 'output_key=$'],
    ['"output_key": 7', 'output_key=7'],
    ['"depends_on": ["b", "c", "b", "$d", "${e}", 7]', 'depends_on=[b,c,d,e,7]'],
    ['"depends_on": "b, c"', 'depends_on=[b,c]'],
    ['"depends_on": "b"', 'depends_on=[b]'],
    ['"depends_on": 7', 'depends_on=[7]'],
    ['"depends_on": []', 'depends_on=[]'],
    ['"depends_on": ["", " "]', 'depends_on=[]'],
    ['"depends_on": "none"', ''],
    ['"depends_on": null', ''],
    ['"wait_for_all": false', 'wait_for_all=false'],
    ['"wait_for_all": "no"', 'wait_for_all=false'],
    ['"wait_for_all": true', ''],
    ['"timeout": 1.5', 'timeout=1500'],
    ['"timeout": "2m"', 'timeout=120000'],
    ['"timeout": 0.001', 'timeout=1'],
    ['"timeout": 0', ''],
    ['"cache_ttl": 0', 'cache=0'],
    ['"cache_ttl": 60', 'cache=60000'],
    ['"priority": 3', 'priority=3'],
    ['"priority": "-2"', 'priority=-2'],
    ['"priority": 1.5', ''],
    ['"on_error": "skip"', 'on_error=skip'],
    ['"on_error": " FAIL "', 'on_error=fail'],
    ['"on_error": "retry"', 'on_error=retry'],
    ['"on_error": "explode"', ''],
    ['"skip_on_error": true', 'on_error=skip'],
    ['"skip_on_error": false', ''],
    ['"skip_on_error": true, "on_error": "retry"', 'on_error=retry'],
    ['"skip_on_error": true, "on_error": "explode"', 'on_error=skip'],
    ['"when": " x > 1 "', 'when=x > 1 refs=[x]'],
    ['"when": true', 'when=true'],
    ['"when": "  "', ''],
    ['"idempotency_key": "k 1"', 'key=k 1'],
    ['"idempotency_key": 7', 'key=7'],
    ['"retry": 5', 'retry=5/exponential/500/30000'],
    ['"retry": "5"', 'retry=5/exponential/500/30000'],
    ['"retry": 0', 'retry=1/exponential/500/30000'],
    ['"retry": true', 'retry=3/exponential/500/30000'],
    ['"retry": false', 'retry=1/exponential/500/30000'],
    ['"retry": 99', 'retry=10/exponential/500/30000'],
    ['"retry": {}', 'retry=3/exponential/500/30000'],
    ['"retry": {"max_attempts": 2, "backoff": "linear", "delay": 1, "max_delay": "2s"}', 'retry=2/linear/1000/2000'],
    ['"retry": "{\\"max_attempts\\": 2}"', 'retry=2/exponential/500/30000'],
    ['"retry": {"max_attempts": 0}', 'retry=1/exponential/500/30000'],
    ['"retry": {"max_attempts": "x", "backoff": "never", "delay": -1}', 'retry=3/exponential/500/30000'],
    ['"retry": "often"', ''],
    ['"retry_count": 2', 'retry=3/exponential/500/30000'],
    ['"retry_delay_seconds": 2', 'retry=3/exponential/2000/30000'],
    [
      '"retry": {"max_attempts": 7, "delay": 9}, "retry_count": 1, "retry_delay_seconds": 2',
      'retry=2/exponential/2000/30000',
    ],
    ['"retry_count": -1', ''],
    ['"mode": "async"', 'a tool:t async {}'],
    ['"mode": "later"', ''],
  ])('%s becomes %j', (fields, expected) => {
    expect(field(fields)).toBe(expected);
  });

  const ALLOWED: readonly (readonly [fields: string, message: string])[] = [
    ['"timeout": 0', 'timeout 0 (allowed: seconds)'],
    ['"cache_ttl": "x"', 'cache_ttl "x" (allowed: seconds)'],
    ['"timeout": 1e306', 'timeout 1e+306 (allowed: seconds)'],
    ['"priority": 1.5', 'priority 1.5 (allowed: an integer)'],
    ['"wait_for_all": "maybe"', 'wait_for_all "maybe" (allowed: true or false)'],
    ['"mode": "later"', 'mode "later" (allowed: sync, async or fire_and_forget)'],
    ['"on_error": "explode"', 'on_error "explode" (allowed: fail, skip or retry)'],
    ['"retry": 99', `retry 99 (allowed: at most ${limits.maxRetryAttempts})`],
    ['"retry": "often"', 'retry "often" (allowed: a number or an object with max_attempts, backoff, delay,…'],
    ['"retry": {"max_attempts": 0}', 'retry.max_attempts 0 (allowed: an integer of at least 1)'],
    ['"retry": {"backoff": "never"}', 'retry.backoff "never" (allowed: none, linear or exponential)'],
    ['"retry_count": -1', 'retry_count -1 (allowed: an integer)'],
  ];
  test.each(ALLOWED)('[P6] %s is ignored, with a warning that lists the allowed values', (fields, message) => {
    expect(messagesOf(parse(full(fields)))).toEqual([expect.stringContaining(`${message}: not valid; ignored`)]);
  });

  test('[P6] valid fields give no warning', () => {
    for (const fields of [
      '"retry": 10',
      '"retry": {"max_attempts": 1, "backoff": "none"}',
      '"retry_count": 0',
      '"timeout": 0.001',
      '"skip_on_error": "yes"',
      '"mode": "background"',
    ]) {
      expect(messagesOf(parse(full(fields)))).toEqual([]);
    }
  });
});

describe('[P6] an action is rejected', () => {
  const rejections: readonly (readonly [fields: string, code: string, message: string])[] = [
    ['"output_key": "a b"', 'invalid_id', 'output_key'],
    ['"depends_on": [true]', 'invalid_action', 'depends_on must be a list of ids, not [true]'],
    ['"depends_on": {"a": 1}', 'invalid_action', 'depends_on must be a list of ids, not {"a":1}'],
    ['"when": 7', 'invalid_action', 'when must be a CEL expression in a string, not 7'],
    [
      '"idempotency_key": ""',
      'invalid_action',
      `idempotency_key must be a string of 1 to ${limits.idempotencyKeyChars} characters, not ""`,
    ],
    ['"idempotency_key": [1]', 'invalid_action', 'characters, not [1]'],
    ['"type": "magic"', 'invalid_action', `type "magic" does not exist (known: ${ACTION_TYPES.join(', ')})`],
    ['"type": 7', 'invalid_action', 'type 7 does not exist'],
    [
      `"idempotency_key": "${'k'.repeat(limits.idempotencyKeyChars + 1)}"`,
      'invalid_action',
      `not "${'k'.repeat(limits.excerptChars - 1)}…`,
    ],
  ];
  test.each(rejections)('for %s', (fields, code, message) => {
    const [rejection] = rejectionsOf(parse(full(fields)));
    expect(rejection).toMatchObject({ code, message: expect.stringContaining(message) });
  });

  test.each([
    ['<action>{"parameters": {}}</action>', 'the tool action has no name: put "name" in the body'],
    ['<action type="agent">{"name": " ", "parameters": {}}</action>', 'the agent action has no name'],
    ['<action>{"name": 7, "parameters": {}}</action>', 'name must be a string, not 7'],
    ['<action>{"name": "t", "parameters": [1]}</action>', 'parameters must be a JSON object, not [1]'],
    ['<action>{"name": "t", "parameters": "{}"}</action>', 'parameters must be a JSON object, not "{}"'],
    ['<action name="t" parameters="[1]"></action>', 'parameters must be a JSON object, not "[1]"'],
  ])('for %s', (text, message) => {
    expect(rejectionsOf(parse(text))).toEqual([
      expect.objectContaining({ code: 'invalid_action', message: expect.stringContaining(message) }),
    ]);
  });

  test('[P6] a key of the maximum length is accepted', () => {
    const key = 'k'.repeat(limits.idempotencyKeyChars);
    expect(field(`"idempotency_key": "${key}"`)).toBe(`key=${key}`);
  });
});

describe('[P6] tag and body', () => {
  const one = (text: string): string => actionsOf(parse(text)).map(described).join('|');

  test.each([
    ['<action name="t" parameters=\'{"a": 1}\'/>', 'auto_1 tool:t sync {"a":1}'],
    ['<action type="llm">{"prompt": "x"}</action>', 'auto_1 llm:llm sync {"prompt":"x"}'],
    ['<action type="llm">{"parameters": {"prompt": "x"}}</action>', 'auto_1 llm:llm sync {"prompt":"x"}'],
    ['<action name="t">{"id": "in_parameters"}</action>', 'auto_1 tool:t sync {"id":"in_parameters"}'],
    ['<action>{"name": " t ", "id": " b ", "parameters": {}}</action>', 'b tool:t sync {}'],
    ['<action id="tag">{"name": "t", "id": "  ", "parameters": {}}</action>', 'tag tool:t sync {}'],
    ['<action id="tag">{"name": "t", "id": 7, "parameters": {}}</action>', '7 tool:t sync {}'],
    ['<action id="tag">{"name": "t", "id": [1], "parameters": {}}</action>', 'tag tool:t sync {}'],
    ['<action name="t">{"dependsOn": ["b"], "parameters": {}}</action>', 'auto_1 tool:t sync {} depends_on=[b]'],
    [
      '<action name="t">{"dependsOn": ["b"], "depends_on": ["c"], "parameters": {}}</action>',
      'auto_1 tool:t sync {} depends_on=[c]',
    ],
    ['<action name="t" timeout="5">{"timeout": null, "parameters": {}}</action>', 'auto_1 tool:t sync {} timeout=5000'],
    [
      '<action name="t">{"parameters": {"a": "$b"}, "when": "c && $b"}</action>',
      'auto_1 tool:t sync {"a":"$b"} when=c && $b refs=[b,c]',
    ],
    ['<action name="t">{"parameters": {"a": "\\u0024b"}}</action>', 'auto_1 tool:t sync {"a":"$b"} refs=[b]'],
  ])('%s', (text, action) => {
    expect(one(text)).toBe(action);
  });

  test.each([
    ['<action name="t" timeout="5">{"timeout": 6, "parameters": {}}</action>', 'timeout', 'timeout=6000'],
    [
      '<action name="t" depends_on="a,b">{"depends_on": ["b"], "parameters": {}}</action>',
      'depends_on',
      'depends_on=[b]',
    ],
    ['<action name="t" mode="sync">{"mode": "async", "parameters": {}}</action>', 'mode', 'async'],
  ])('[P6] if they differ the body counts, with a warning: %s', (text, name, shown) => {
    expect(one(text)).toContain(shown);
    expect(messagesOf(parse(text))).toEqual([
      expect.stringContaining(`${name}: the tag and the body differ; the value in the body was used`),
    ]);
  });

  test('[P6] a name in the body does not replace the name in the tag, but the difference gives a warning', () => {
    const text = '<action name="t">{"name": "other", "parameters": {}}</action>';
    expect(one(text)).toBe('auto_1 tool:t sync {}');
    expect(messagesOf(parse(text))).toHaveLength(1);
  });

  test.each([
    '<action name="t" timeout=" 5 ">{"timeout": 5, "parameters": {}}</action>',
    '<action name="t" timeout="5">{"timeout": "5", "parameters": {}}</action>',
    '<action name="t" depends_on="a, b">{"depends_on": ["a", "$b"], "parameters": {}}</action>',
    '<action name="t" retry=\'{"max_attempts": 2}\'>{"retry": {"max_attempts":2}, "parameters": {}}</action>',
  ])('[P6] if they are equal there is no warning: %s', (text) => {
    expect(messagesOf(parse(text))).toEqual([]);
  });

  test('[P6] the first eight unknown fields are listed in a warning', () => {
    const keys = Array.from({ length: 10 }, (_, n) => `"x${n}": 1`).join(', ');
    expect(messagesOf(parse(`<action name="t">{"parameters": {}, ${keys}}</action>`))).toEqual([
      expect.stringContaining(
        'x0, x1, x2, x3, x4, x5, x6, x7 and 2 more: not part of the protocol; ignored. Put parameters in "parameters"',
      ),
    ]);
    expect(messagesOf(parse('<action name="t" color="red">{"parameters": {}}</action>'))).toEqual([
      expect.stringContaining('color: not part of the protocol; put parameters in the body'),
    ]);
    const eight = Array.from({ length: 8 }, (_, n) => `"x${n}": 1`).join(', ');
    expect(messagesOf(parse(`<action name="t">{"parameters": {}, ${eight}}</action>`))[0]).not.toContain('more');
  });

  test('[P5] a response has no attribute except final', () => {
    expect(messagesOf(parse('<response mood="good" size="1">x</response>'))).toEqual([
      expect.stringContaining('<response> has no attribute mood, size'),
    ]);
  });

  test('[P8] a warning about a repaired body contains the id, otherwise the name', () => {
    expect(messagesOf(parse('<action name="t" id="a">{a: 1}</action>'))).toEqual([
      'repaired_json: The body of "a" was not strict JSON; it was repaired',
    ]);
    expect(messagesOf(parse('<action name="t">{a: 1}</action>'))[0]).toContain('The body of "t" was not');
  });

  test('[P8] a repaired body is refused for an action with unsafe effects', () => {
    const unsafe = (_type: string, name: string): boolean => name === 't';
    const [rejection] = rejectionsOf(parse('<action name="t" id="a">{a: 1}</action>', { unsafe }));
    expect(rejection).toMatchObject({
      code: 'repair_refused',
      message: expect.stringContaining(
        'The body is not strict JSON, and tool "t" has unsafe effects, so a repaired body is not accepted: send strict JSON',
      ),
    });
    expect(actionsOf(parse('<action name="s">{a: 1}</action>', { unsafe }))).toHaveLength(1);
  });
});
