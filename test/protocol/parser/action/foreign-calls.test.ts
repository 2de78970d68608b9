/** Calls in the forms of other systems (P6, P10): how they are understood, and the warning that says so. */
import { describe, expect, test } from 'vitest';
import type { KnownTargets } from '../../../../src/protocol/parser/action/action-fields.ts';
import {
  actionsOf,
  describe as shown,
  feedChunks,
  join,
  lines,
  parse,
  rejectionsOf,
  waysToCut,
} from '../parser-kit.ts';

const SURE: KnownTargets = {
  isTool: (name) => name === 'delegate_to_agent',
  parameterKind: (_type, name, parameter) => (name === 'closed' ? 'none' : parameter === 'zip' ? 'text' : 'any'),
};

/** The only action, or its rejection, and the messages of the warnings. Every way of cutting gives the same. */
function read(text: string, options: Parameters<typeof parse>[1] = {}): [action: string, ...warnings: string[]] {
  const whole = parse(text, options);
  for (const { name, chunks } of waysToCut(text, 6)) expect(join(feedChunks(chunks, options)), name).toEqual(whole);
  const [action] = actionsOf(whole);
  const [rejection] = rejectionsOf(whole);
  const warnings = whole.flatMap((event) => (event.type === 'warning' ? [`${event.code}: ${event.message}`] : []));
  return [action === undefined ? (rejection?.code ?? 'none') : shown(action), ...warnings];
}

describe('[P6] a body in plain text', () => {
  test.each<[text: string, action: string, parameter: string]>([
    [
      '<action type="agent" name="ann" id="a">\n  Look at $x.\n  Be brief.\n</action>',
      'a agent:ann sync {"message":"Look at $x.\\nBe brief."} refs=[x]',
      'message',
    ],
    ['<action type="llm" id="a">Say "hi": twice</action>', 'a llm:llm sync {"prompt":"Say \\"hi\\": twice"}', 'prompt'],
    ['<action type="llm_call" name="primary" id="a">42</action>', 'a llm:primary sync {"prompt":"42"}', 'prompt'],
    [
      '<action type="python" id="a">\n\n    for n in range(2):\n        print(n)\n\n</action>',
      'a python:python sync {"code":"for n in range(2):\\n    print(n)"}',
      'code',
    ],
    [
      '<action type="python" id="a">"""Doc: x"""\nprint($a)</action>',
      'a python:python sync {"code":"\\"\\"\\"Doc: x\\"\\"\\"\\nprint($a)"}',
      'code',
    ],
    [
      '<action type="shell" id="a">\tls /tmp | wc -l \n</action>',
      'a shell:shell sync {"command":"ls /tmp | wc -l"}',
      'command',
    ],
    [
      '<action type="shell" mode="async" id="a" depends_on="b">echo $b</action>',
      'a shell:shell async {"command":"echo $b"} depends_on=[b] refs=[b]',
      'command',
    ],
  ])('%j', (text, action, parameter) => {
    const type = action.split(':')[0]?.split(' ')[1];
    expect(read(text)).toEqual([action, `foreign_form: ${type} "a": the body is plain text: it is the ${parameter}`]);
  });

  test('[P14] code is the text, and values do not become code', () => {
    const [action] = actionsOf(parse('<action type="python" id="p">print("$a", 1 < 2)</action>'));
    expect(action).toMatchObject({ parameters: { code: 'print("$a", 1 < 2)' }, references: [] });
  });

  test.each([
    '{"code": "print(1)"',
    "{'code': print}",
    '[1, 2',
    '["a"]',
    '```python\nprint(1)\n```',
    '~~~\nprint(1)\n~~~',
    '/* note */ {"code": 1',
    '// note\n{"code": 1',
    'json {"code": "1"',
    'JSON\n{"code": "1"',
    '"code": print(1)}',
    "'code' : print(1)",
    '\u201Ccode\u201D: 1',
    '\ufeff{"code": "1"',
  ])('[P8] text that may be broken JSON is never run: %j', (body) => {
    for (const type of ['python', 'shell', 'llm', 'agent']) {
      const [result, ...warnings] = read(`<action type="${type}" name="n" id="a">${body}</action>`, {
        unsafe: () => true,
      });
      expect(['invalid_json', 'repair_refused']).toContain(result);
      expect(warnings).toEqual([]);
    }
  });

  test.each([
    ['a tool', '<action type="tool" name="t">plain</action>'],
    ['a relic', '<action type="relic" name="r.get">plain</action>'],
    ['a workflow', '<action type="workflow" name="w">plain</action>'],
    ['docker', '<action type="docker">plain</action>'],
    ['an agent without a name', '<action type="agent">plain</action>'],
    ['an action without a type', '<action name="ann">plain</action>'],
    ['parameters in the tag', '<action type="llm" parameters=\'{"prompt":"a"}\'>plain</action>'],
  ])('[P8] it stays an error for %s', (_what, text) => {
    expect(read(text)).toEqual(['invalid_json']);
  });

  test('[P8] it stays an error in strict mode', () => {
    expect(read('<action type="llm">plain</action>', { json: 'strict' })).toEqual(['invalid_json']);
  });

  test.each([
    '<action type="agent" name="ann"/>',
    '<action type="llm">{}</action>',
    '<action type="python"> \n</action>',
    '<action type="shell"></action>',
    '<action type="agent" name="ann" ephemeral="true"></action>',
  ])('an action that asks nothing is rejected: %s', (text) => {
    expect(read(text)[0]).toBe('invalid_action');
  });
});

describe('[P6] named values of an agent or a model', () => {
  test.each<[parameters: object, note: string | null]>([
    [{ message: 'm', depth: 2 }, null],
    [{ instruction: 'Go' }, 'it has no "message": the value of "instruction" is its message'],
    [{ data: '$x', depth: 2 }, 'it has no "message": all values together, as compact JSON, are its message'],
    [{ task: 'Go', ephemeral: true, last_n: 3 }, 'it has no "message": the value of "task" is its message'],
  ])('agent %j', (parameters, note) => {
    const [action, ...warnings] = read(`<action type="agent" name="ann" id="a">${JSON.stringify(parameters)}</action>`);
    expect(action).toContain(JSON.stringify(parameters));
    expect(warnings).toEqual(note === null ? [] : [`foreign_form: agent "a": ${note}`]);
  });

  test.each<[parameters: object, note: string | null]>([
    [{ prompt: 'p', tone: 'dry' }, null],
    [
      { text: 'p', system: 's', model: 'm', output_schema: {} },
      'it has no "prompt": the value of "text" is its prompt',
    ],
    [{ text: 'p', words: 5 }, 'it has no "prompt": all values together, as compact JSON, are its prompt'],
  ])('llm %j', (parameters, note) => {
    const body = JSON.stringify({ name: 'summarise', parameters });
    const [action, ...warnings] = read(`<action type="llm" id="a">${body}</action>`);
    expect(action).toContain(JSON.stringify(parameters));
    expect(warnings).toEqual(note === null ? [] : [`foreign_form: llm "a": ${note}`]);
  });
});

describe('[P6] calls of Cortex-MK1', () => {
  test.each<[body: string, action: string]>([
    ['{"tool":"sum"}', 'auto_1 tool:sum sync {}'],
    ['{"tool":"sum","params":{"a":1},"output_key":"s"}', 'auto_1 tool:sum sync {"a":1} output_key=s'],
  ])('tool is the name: %s', (body, action) => {
    expect(read(`<action>${body}</action>`)).toEqual([action, 'foreign_form: tool "sum": "tool" is its name']);
  });

  test.each([
    ['<action name="t">{"tool":"sum"}</action>', 'auto_1 tool:t sync {"tool":"sum"}'],
    ['<action>{"name":"t","parameters":{"tool":"sum"}}</action>', 'auto_1 tool:t sync {"tool":"sum"}'],
    ['<action type="relic">{"tool":"sum"}</action>', 'invalid_action'],
    ['<action>{"type":"relic","tool":"sum"}</action>', 'invalid_action'],
    ['<action>{"tool":{"name":"sum"}}</action>', 'invalid_action'],
  ])('tool is not the name in %s', (text, action) => {
    expect(read(text)[0]).toBe(action);
  });

  const DELEGATE =
    '<action id="d">{"name":"delegate_to_agent","parameters":{"agent":" ann ","prompt":"Find $x"}}</action>';
  test('delegate_to_agent calls the agent', () => {
    expect(read(DELEGATE)).toEqual([
      'd agent:ann sync {"prompt":"Find $x"} refs=[x]',
      'foreign_form: agent "d": delegate_to_agent calls the agent "ann"; it has no "message": the value of "prompt" is its message',
    ]);
  });
  test('a tool with that name, and a call without an agent, are called as written', () => {
    expect(read(DELEGATE, { targets: SURE })).toEqual([
      'd tool:delegate_to_agent sync {"agent":" ann ","prompt":"Find $x"} refs=[x]',
    ]);
    expect(read('<action name="delegate_to_agent">{"prompt":"x"}</action>')[0]).toContain('tool:delegate_to_agent');
  });

  test.each<[attributes: string, final: string, warning: string | null]>([
    ['non_terminating="false"', 'true', 'foreign_form'],
    ['nonTerminating="TRUE"', 'false', 'foreign_form'],
    ['non_terminating="true" final="true"', 'true', 'unknown_attribute'],
    ['non_terminating="perhaps"', 'auto', 'unknown_attribute'],
  ])('[P10] <response %s> has final=%s', (attributes, final, warning) => {
    const [first, second] = lines(parse(`<response ${attributes}>a</response>`));
    expect([first, second]).toEqual([`warning ${warning}`, `response { final=${final}`]);
  });
});

describe('[P5] attributes that are not fields', () => {
  test.each<[text: string, parameters: object]>([
    ['<action name="t" city="Oslo" days=3 wet="true" at=-1.5/>', { city: 'Oslo', days: 3, wet: true, at: -1.5 }],
    ['<action name="t" city="Oslo">{"city":"Rome","a":1}</action>', { city: 'Rome', a: 1 }],
    [
      '<action name="t" zip="0012" n="1e5" big="12345678901234567890" tags=\'["a"]\' o=\'{"b":1}\'/>',
      { zip: '0012', n: '1e5', big: '12345678901234567890', tags: ['a'], o: { b: 1 } },
    ],
    ['<action name="t" __proto__="x" city="a" city="b"/>', { ['__proto__']: 'x', city: 'a' }],
    ['<action type="llm" tone="dry">Hi</action>', { tone: 'dry', prompt: 'Hi' }],
  ])('are parameters of a compact call: %s', (text, parameters) => {
    const [action] = actionsOf(parse(text));
    expect(JSON.parse(JSON.stringify(action?.parameters))).toEqual(parameters);
    expect(read(text)[1]).toMatch(/^unknown_attribute: .*: (read as parameters|not part)/);
  });

  test('[P12] may contain references', () => {
    expect(read('<action name="t" city="$where"/>')[0]).toBe('auto_1 tool:t sync {"city":"$where"} refs=[where]');
  });

  test.each([
    ['<action name="t" city="Oslo">{"parameters":{"a":1}}</action>', {}],
    ['<action city="Oslo">{"name":"t","parameters":{"a":1}}</action>', {}],
    ['<action name="closed" city="Oslo">{"a":1}</action>', { targets: SURE }],
  ])('are ignored, with a warning, in %s', (text, options) => {
    expect(read(text, options)).toEqual([
      expect.stringContaining(' sync {"a":1}'),
      'unknown_attribute: city: not part of the protocol; put parameters in the body',
    ]);
  });

  test('keep their text where the target expects text', () => {
    expect(read('<action name="t" zip="12" n="12"/>', { targets: SURE })[0]).toContain('{"zip":"12","n":12}');
  });
});

describe('[P6] an id that is repeated after an empty body', () => {
  const declared = (text: string): string[] =>
    parse(text).flatMap((event) => {
      if (event.type === 'action_declared') return [JSON.stringify(event.action.parameters)];
      if (event.type === 'action_rejected') return [event.rejection.code];
      return event.type === 'warning' ? [event.code] : [];
    });
  const action = (body: string, id = 'a'): string => `<action name="t" id="${id}">${body}</action>`;

  test('is left to the scheduler, once', () => {
    expect(declared(action('{}') + action('{"n":1}'))).toEqual(['{}', '{"n":1}']);
    expect(declared(action('') + action('{"n":1}') + action('{"n":1}'))).toEqual(['{}', '{"n":1}', 'duplicate_action']);
    expect(declared(action('') + action('{"n":1}') + action('{"n":2}'))).toEqual(['{}', '{"n":1}', 'duplicate_id']);
    expect(declared(action('') + action('{}'))).toEqual(['{}', 'duplicate_id']);
    expect(declared(action('{"n":1}') + action('{}'))).toEqual(['{"n":1}', 'duplicate_id']);
  });

  test('an agent without a message never has the id', () => {
    const text = '<action type="agent" name="ann" id="a">{}</action><action type="agent" name="ann" id="a">Go</action>';
    expect(declared(text)).toEqual(['invalid_action', 'foreign_form', '{"message":"Go"}']);
  });
});

test('[P6] detached is fire_and_forget', () => {
  expect(read('<action name="t" mode="detached"/>')[0]).toBe('auto_1 tool:t fire_and_forget {}');
});

describe('[P6] type="feed" reads a feed', () => {
  test.each([
    ['<action type="feed" name="ci-status" id="f"/>', ''],
    [
      '<action type="Feed" name="ci-status" id="f">{"limit": "$n"}</action>',
      ', without its parameters: they are in its definition',
    ],
    ['<action type="feed" id="f">{"name": "ci-status"}</action>', ''],
  ])('%s', (text, ignored) => {
    expect(read(text)).toEqual([
      'f internal:list_context_feeds sync {"id":"ci-status"} refs=[ci-status]',
      `foreign_form: internal "f": it reads the feed "ci-status"${ignored}`,
    ]);
  });

  test('[S9] names in its condition stay dependencies', () => {
    expect(read('<action type="feed" name="a" when="b > 1"/>')[0]).toContain('refs=[b,a]');
  });
});
