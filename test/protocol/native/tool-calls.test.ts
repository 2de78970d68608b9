import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { ActionDeclaration } from '../../../src/domain/action.ts';
import { limits } from '../../../src/domain/limits.ts';
import type { ProtocolEvent } from '../../../src/domain/protocol-event.ts';
import { createParser } from '../../../src/protocol/parser/parser.ts';
import { createToolCallReader } from '../../../src/protocol/native/tool-calls.ts';
import type { NativeCall, ToolCallDelta, ToolCallOptions } from '../../../src/protocol/native/tool-calls.ts';
import { readChunk } from '../../../src/llm/providers/chunk.ts';
import { actionsOf, cutAtRandom, describe as shown, lines, rejectionsOf, warningsOf } from '../parser/parser-kit.ts';

interface Read {
  readonly events: ProtocolEvent[];
  readonly calls: readonly NativeCall[];
}

const piece = (
  argumentsDelta: string,
  { index = 0, id = null, name = null }: { index?: number; id?: string | null; name?: string | null } = {},
): ToolCallDelta => ({ type: 'tool_call', index, id, name, argumentsDelta });

function options(overrides: Partial<ToolCallOptions> = {}): ToolCallOptions {
  return { json: 'repair', numbering: { ordinal: 0, autoId: 1 }, typeOf: () => 'tool', ...overrides };
}

function read(deltas: Iterable<ToolCallDelta>, overrides: Partial<ToolCallOptions> = {}, complete = true): Read {
  const reader = createToolCallReader(options(overrides));
  const events: ProtocolEvent[] = [];
  for (const delta of deltas) events.push(...reader.feed(delta));
  events.push(...reader.end(complete));
  return { events, calls: reader.calls };
}

const whole = (args: string, name = 'search', id: string | null = 'call_1'): ToolCallDelta[] => [
  piece(args, { id, name }),
];
const first = ({ events }: Read): ActionDeclaration | undefined => actionsOf(events)[0];

describe('[P17] streams of servers', () => {
  /** Chunks of real streams, and their events. */
  const corpus: readonly (readonly [name: string, deltas: readonly object[], expected: readonly string[]])[] = [
    [
      'OpenAI: name first, then the arguments in pieces',
      [
        { index: 0, id: 'call_a', type: 'function', function: { name: 'search', arguments: '' } },
        { index: 0, function: { arguments: '{"q"' } },
        { index: 0, function: { arguments: ':"x"}' } },
      ],
      ['open tool search async', 'action call_a tool:search async {"q":"x"}'],
    ],
    [
      'two calls in one delta, without an index',
      [
        { id: 'a', function: { name: 'one', arguments: '{}' } },
        { id: 'b', function: { name: 'two', arguments: '{}' } },
      ],
      ['open tool one async', 'action a tool:one async {}', 'open tool two async', 'action b tool:two async {}'],
    ],
    [
      'a null index',
      [{ index: null, id: 'a', function: { name: 'one', arguments: '{"n":1}' } }],
      ['open tool one async', 'action a tool:one async {"n":1}'],
    ],
    [
      'no id at all',
      [{ index: 0, function: { name: 'one', arguments: '{"n":1}' } }],
      ['open tool one async', 'action auto_1 tool:one async {"n":1}'],
    ],
    [
      'no arguments, empty arguments and null',
      [
        { index: 0, id: 'a', function: { name: 'one' } },
        { index: 1, id: 'b', function: { name: 'two', arguments: '' } },
        { index: 2, id: 'c', function: { name: 'three', arguments: 'null' } },
        { index: 3, id: 'd', function: { name: 'four', arguments: null } },
      ],
      [
        'open tool one async',
        'open tool two async',
        'open tool three async',
        'open tool four async',
        'action a tool:one async {}',
        'action b tool:two async {}',
        'action c tool:three async {}',
        'action d tool:four async {}',
      ],
    ],
    [
      'an empty id and name in every later piece',
      [
        { index: 0, id: 'a', function: { name: 'one', arguments: '' } },
        { index: 0, id: '', function: { name: '', arguments: '{"n":1}' } },
      ],
      ['open tool one async', 'action a tool:one async {"n":1}'],
    ],
    [
      'index 0 for every call, with different ids',
      [
        { index: 0, id: 'a', function: { name: 'one', arguments: '{"n":1}' } },
        { index: 0, id: 'b', function: { name: 'one', arguments: '{"n":2}' } },
        { index: 0, id: 'c', function: { name: 'one', arguments: '' } },
      ],
      [
        'open tool one async',
        'action a tool:one async {"n":1}',
        'open tool one async',
        'action b tool:one async {"n":2}',
        'open tool one async',
        'action c tool:one async {}',
      ],
    ],
    [
      'index 0 and no id for every call',
      [
        { index: 0, function: { name: 'one', arguments: '{"n":1}' } },
        { index: 0, function: { name: 'one', arguments: '{"n":2}' } },
        { index: 0, function: { name: 'two', arguments: '' } },
      ],
      [
        'open tool one async',
        'action auto_1 tool:one async {"n":1}',
        'open tool one async',
        'action auto_2 tool:one async {"n":2}',
        'open tool two async',
        'action auto_3 tool:two async {}',
      ],
    ],
    [
      'one id for different calls',
      [
        { index: 0, id: 'call_0', function: { name: 'one', arguments: '{"n":1}' } },
        { index: 1, id: 'call_0', function: { name: 'one', arguments: '{"n":2}' } },
      ],
      [
        'open tool one async',
        'action call_0 tool:one async {"n":1}',
        'open tool one async',
        'action auto_1 tool:one async {"n":2}',
      ],
    ],
    [
      'several interleaved calls',
      [
        { index: 0, id: 'a', function: { name: 'one', arguments: '{"n"' } },
        { index: 1, id: 'b', function: { name: 'two', arguments: '{"m":' } },
        { index: 0, function: { arguments: ':1}' } },
        { index: 1, function: { arguments: '2}' } },
      ],
      [
        'open tool one async',
        'open tool two async',
        'action a tool:one async {"n":1}',
        'action b tool:two async {"m":2}',
      ],
    ],
    [
      'the older function_call',
      [{ function_call: { name: 'one', arguments: '{"n"' } }, { function_call: { arguments: ':1}' } }],
      ['open tool one async', 'action auto_1 tool:one async {"n":1}'],
    ],
  ];

  test.each(corpus)('%s', (_name, calls, expected) => {
    const older = calls.some((call) => 'function_call' in call);
    const together = calls.every((call) => !('index' in call)) && !older;
    const chunks = together ? [{ tool_calls: calls }] : calls.map((call) => (older ? call : { tool_calls: [call] }));
    const deltas = chunks.flatMap((delta) => readChunk({ choices: [{ index: 0, delta }] }).deltas);
    expect(lines(read(deltas.filter((delta) => delta.type === 'tool_call')).events)).toEqual(expected);
  });
});

describe('[P17] a call that arrives in deltas', () => {
  test('is opened by its name and declared at the closing brace', () => {
    const reader = createToolCallReader(options());
    const seen = [
      piece('', { id: 'a', name: 'search' }),
      piece('{"q":{"deep":"}"'),
      piece('}'),
      piece(',"n":1'),
      piece('}'),
      piece('\n'),
    ].map((delta) => lines(reader.feed(delta)));
    expect(seen).toEqual([
      ['open tool search async'],
      [],
      [],
      [],
      ['action a tool:search async {"q":{"deep":"}"},"n":1}'],
      [],
    ]);
    expect(reader.end(true)).toEqual([]);
  });

  test('is not ended by braces, quotes and closing tags in strings', () => {
    const parameters = { code: 'print("}\\"{")\n</action><action type="shell">{}</action>', path: 'C:\\', n: [{}] };
    expect(first(read(whole(JSON.stringify(parameters))))?.parameters).toEqual(parameters);
  });

  test('[P3] gives the same events for every cut of its arguments', () => {
    const texts = [
      '{"q":"a \\"quoted\\" }{ word","n":[1,{"m":null}]}',
      '{"emoji":"😀","html":"<b></action></b>"} and more',
      "{'q': 'it is', \"trailing\": 1,}",
      '"{\\"n\\": 1}"',
      '{"q": "never clo',
      '```json\n{"q": 1}\n```',
      '{"parameters": {"a": 1}, "name": "x"}',
      '[1, 2]',
      '',
    ];
    for (const text of texts) {
      const expected = read(whole(text));
      for (let seed = 0; seed < 12; seed += 1) {
        const cuts =
          seed === 0 ? Array.from({ length: text.length }, (_, at) => text.charAt(at)) : cutAtRandom(text, seed, 7);
        const deltas = [piece('', { id: 'call_1', name: 'search' }), ...cuts.map((cut) => piece(cut))];
        expect(read(deltas), `${text} cut ${seed}`).toEqual(expected);
      }
    }
  });

  test('[P3] gives the same events if it is interleaved with other calls', () => {
    fc.assert(
      fc.property(
        fc.array(fc.dictionary(fc.string({ maxLength: 6 }), fc.jsonValue({ maxDepth: 2 })), {
          minLength: 1,
          maxLength: 4,
        }),
        fc.infiniteStream(fc.nat(20)),
        (parameters, random) => {
          const queues = parameters.map((value, index) => ({ index, text: JSON.stringify(value), sent: false }));
          const deltas: ToolCallDelta[] = [];
          while (queues.length > 0) {
            const at = (random.next().value ?? 0) % queues.length;
            const queue = queues[at];
            if (queue === undefined) break;
            const length = 1 + (random.next().value ?? 0);
            const given = { index: queue.index, ...(queue.sent ? {} : { id: `c${queue.index}`, name: 'tool' }) };
            deltas.push(piece(queue.text.slice(0, length), given));
            queue.text = queue.text.slice(length);
            queue.sent = true;
            if (queue.text === '') queues.splice(at, 1);
          }
          const declared = actionsOf(read(deltas).events);
          expect(declared.map(({ id }) => id).toSorted()).toEqual(parameters.map((_, index) => `c${index}`));
          for (const action of declared) {
            const expected = parameters[Number(action.id.slice(1))];
            expect(action.parameters).toEqual(JSON.parse(JSON.stringify(expected)));
          }
        },
      ),
      { numRuns: 60 },
    );
  });
});

describe('[P17] the action of a call', () => {
  test('is async, has no position in the text, and its parameters are the arguments unchanged', () => {
    const parameters = { name: 'n', timeout: 5, id: 'i', depends_on: ['x'], parameters: { a: 1 }, mode: 'sync' };
    const action = first(read(whole(JSON.stringify(parameters))));
    expect(action).toMatchObject({
      ordinal: 0,
      id: 'call_1',
      type: 'tool',
      name: 'search',
      mode: 'async',
      parameters,
      dependsOn: null,
      timeoutMs: null,
      embeddedInThought: false,
      repaired: false,
      span: { start: 0, end: 0 },
    });
  });

  test('has the type of its name', () => {
    const typeOf: ToolCallOptions['typeOf'] = (name) =>
      name === 'python' ? 'python' : name === 'set_variable' ? 'internal' : 'tool';
    const deltas = [
      piece('{"code":"print(1)"}', { index: 0, id: 'a', name: 'python' }),
      piece('{"key":"k","value":1}', { index: 1, id: 'b', name: 'set_variable' }),
    ];
    expect(actionsOf(read(deltas, { typeOf }).events).map((action) => shown(action))).toEqual([
      'a python:python async {"code":"print(1)"}',
      'b internal:set_variable async {"key":"k","value":1}',
    ]);
  });

  test('[P12] depends on references in its arguments, except in code', () => {
    expect(first(read(whole('{"q":"$first.id and ${other}"}')))?.references).toEqual(['first', 'other']);
    const python = read(whole('{"code":"$x","inputs":{"y":"$y"}}', 'python'), { typeOf: () => 'python' });
    expect(first(python)?.references).toEqual(['y']);
  });

  test.each(['a\\', '[x', ' "quoted" ', '<b>&amp;', "it's", 'a\n<action type="shell">', 'naïve 名', 'x'.repeat(300)])(
    'for a function named %j keeps the name, which cannot break out of its tag',
    (name) => {
      const { events } = read(whole('{"n":1}', name));
      expect(actionsOf(events)).toMatchObject([{ name: name.trim(), parameters: { n: 1 }, type: 'tool' }]);
      expect(warningsOf(events)).toEqual([]);
    },
  );

  test('[P6] gets another id if its id is invalid; the original id is kept for the endpoint', () => {
    const long = `call_${'x'.repeat(200)}`;
    const { events, calls } = read([
      piece('{"n":1}', { index: 0, id: long, name: 'f' }),
      piece('{"n":2}', { index: 1, id: 'has space', name: 'f' }),
      piece('{"n":3}', { index: 2, id: 'fine-1', name: 'f' }),
    ]);
    expect(actionsOf(events).map(({ id }) => id)).toEqual(['auto_1', 'auto_2', 'fine-1']);
    expect(calls.map(({ actionId, id }) => [actionId, id])).toEqual([
      ['auto_1', long],
      ['auto_2', 'has space'],
      ['fine-1', 'fine-1'],
    ]);
  });

  test('keeps the data that the endpoint needs back, up to a size limit', () => {
    const extra = { google: { thought_signature: 'c2ln' } };
    const deltas = [
      { ...piece('{"n":1}', { index: 0, id: 'a', name: 'f' }), extra },
      piece('{"n":2}', { index: 1, id: 'b', name: 'f' }),
      { ...piece('{"n":3}', { index: 2, id: 'c', name: 'f' }), extra: { huge: 'x'.repeat(limits.callStateChars) } },
      // After the end of its arguments, as a separate piece.
      { ...piece('', { index: 1 }), extra },
    ];
    expect(read(deltas).calls.map((call) => call.extra)).toEqual([extra, extra, undefined]);
  });

  test('[P6] shares ordinals and auto ids with the actions of the text', () => {
    const numbering = { ordinal: 0, autoId: 4 };
    const parser = createParser({ json: 'repair', actInReasoning: false, numbering });
    const reader = createToolCallReader(options({ numbering }));
    const events = [
      ...parser.feed('<action>{"name":"a"}</action>'),
      ...reader.feed(piece('{}', { name: 'b' })),
      ...parser.feed('<action>{"name":"c"}</action>'),
      ...reader.feed(piece('{}', { index: 1, name: 'd', id: 'mine' })),
    ];
    expect(actionsOf(events).map(({ ordinal, id, name }) => [ordinal, id, name])).toEqual([
      [0, 'auto_4', 'a'],
      [1, 'auto_5', 'b'],
      [2, 'auto_6', 'c'],
      [3, 'mine', 'd'],
    ]);
    expect(parser.nextAutoId).toBe(7);
  });
});

describe('[P8] arguments that are not valid JSON', () => {
  test.each([
    ['{"q": "x",}', { q: 'x' }],
    ["{'q': 'a}b', 'n': None}", { q: 'a}b', n: null }],
    ['{"q": "x" /* } */, "n": 1}', { q: 'x', n: 1 }],
    ['```json\n{"q": "x"}\n```', { q: 'x' }],
    ['{"code": "one\ntwo"}', { code: 'one\ntwo' }],
  ])('%j is repaired if the generation ended successfully', (args, parameters) => {
    const reader = createToolCallReader(options());
    expect(actionsOf(reader.feed(piece(args, { id: 'a', name: 'f' })))).toEqual([]);
    expect(actionsOf(reader.end(true))).toMatchObject([{ parameters }]);
    // Endpoints parse the arguments that are sent back to them.
    expect(JSON.parse(reader.calls[0]?.arguments ?? '')).toEqual(parameters);
  });

  test('a repaired call is marked, and is refused for unsafe targets and in strict mode', () => {
    const broken = whole("{'q': 1}");
    expect(first(read(broken))?.repaired).toBe(true);
    expect(warningsOf(read(broken).events)).toEqual(['repaired_json']);
    expect(rejectionsOf(read(broken, { unsafe: () => true }).events)).toMatchObject([{ code: 'repair_refused' }]);
    expect(rejectionsOf(read(broken, { json: 'strict' }).events)).toMatchObject([{ code: 'invalid_json' }]);
  });

  test('a rejection contains the position in the arguments', () => {
    const args = '{"a": 1,\n "b" 2}';
    const [rejection] = rejectionsOf(read(whole(args), { json: 'strict' }).events);
    expect(rejection).toMatchObject({ id: 'call_1', name: 'search', type: 'tool', mode: 'async', line: 2, column: 6 });
    expect(rejection?.message).not.toContain('<action');
    const [other] = rejectionsOf(read(whole('{"b" 2}'), { json: 'strict' }).events);
    expect(other).toMatchObject({ line: 1, column: 6 });
  });

  test.each(['[1,2]', '7', '"text"', 'true', 'plain words'])('%j is not an object', (args) => {
    const { events, calls } = read(whole(args));
    expect(rejectionsOf(events)).toMatchObject([{ code: 'invalid_json', id: 'call_1' }]);
    expect(calls[0]?.arguments).toBe('{}');
  });

  test.each(['</action>}', '{"a": 1 </action>, "b": 2}', "{'a': 1}</action><action>{}</action>{}"])(
    'a closing tag in %j does not end the arguments',
    (args) => {
      expect(rejectionsOf(read(whole(args)).events)).toMatchObject([{ code: 'invalid_json' }]);
    },
  );

  test('[P18] repaired arguments are parameters too, including one named "parameters"', () => {
    const action = first(read(whole("{'parameters': {'a': 1}, 'id': 'x', 'timeout': 5}")));
    expect(action).toMatchObject({
      id: 'call_1',
      parameters: { parameters: { a: 1 }, id: 'x', timeout: 5 },
      timeoutMs: null,
    });
  });

  test('[P8] text after the object never becomes a field of the action', () => {
    const action = first(read(whole('{"q":1}, "when": "false", "parameters": {"q": 2}}')));
    expect(action).toMatchObject({ parameters: { q: 1 }, when: null });
  });
});

describe('[P15] an incomplete call', () => {
  const cuts = [
    '{',
    '{"q',
    '{"q":"x"',
    '{"q":{"a":1}',
    '{"q":{"a":1},',
    "{'a': '}', 'b': 1",
    '// note\n{"a": 1',
    '```json\n{"a": 1',
  ];

  test.each(cuts)('%j is never executed, whatever the finish reason', (args) => {
    for (const complete of [true, false]) {
      expect(rejectionsOf(read(whole(args), {}, complete).events)).toMatchObject([{ code: 'unclosed', id: 'call_1' }]);
    }
  });

  test.each(['', 'null', "{'q': 1}", '"{}"'])('%j is not executed if the generation was cut', (args) => {
    expect(rejectionsOf(read(whole(args), {}, false).events)).toMatchObject([{ code: 'unclosed' }]);
  });

  test('only complete arguments are executed, and no prefix of them', () => {
    const text = JSON.stringify({ q: 'a}"b', list: [{ x: {} }, '}'], deep: { a: { b: 1 } } });
    for (let at = 1; at < text.length; at += 1) {
      expect(actionsOf(read(whole(text.slice(0, at))).events), text.slice(0, at)).toEqual([]);
    }
    expect(actionsOf(read(whole(text), {}, false).events)).toHaveLength(1);
  });

  test('a call without a name is rejected', () => {
    expect(rejectionsOf(read([piece('{"q":1}', { id: 'a' })]).events)).toMatchObject([
      { code: 'invalid_action', id: 'a', name: null, type: null },
    ]);
  });

  test('a name after the arguments is accepted', () => {
    expect(lines(read([piece('{"q":1}', { id: 'a' }), piece('', { name: 'late' })]).events)).toEqual([
      'open tool late async',
      'action a tool:late async {"q":1}',
    ]);
  });
});

describe('[P16] limits', () => {
  test('the id of a call counts once', () => {
    const id = 'x'.repeat(limits.generationBytes / 4);
    const one = Array.from({ length: 8 }, (_, at) => piece(at === 0 ? '{}' : '', { id, name: at === 0 ? 'f' : null }));
    expect(warningsOf(read(one).events)).toEqual([]);
  });

  test('nesting past the limit is rejected', () => {
    const deep = `${'{"a":'.repeat(limits.jsonDepth + 1)}1${'}'.repeat(limits.jsonDepth + 1)}`;
    expect(rejectionsOf(read(whole(deep)).events)).toMatchObject([{ code: 'too_deep' }]);
    expect(() => read(whole('{"a":'.repeat(50_000)))).not.toThrow();
  });

  test('past 256 actions in calls and text there is one rejection', () => {
    const numbering = { ordinal: limits.actionsPerGeneration - 1, autoId: 1 };
    const deltas = [0, 1, 2, 3].map((index) => piece('{}', { index, id: `c${index}`, name: 'f' }));
    const { events, calls } = read(deltas, { numbering });
    expect(actionsOf(events).map(({ id }) => id)).toEqual(['c0']);
    expect(rejectionsOf(events)).toMatchObject([{ code: 'too_many_actions', id: 'c1' }]);
    expect(calls.map(({ actionId }) => actionId)).toEqual(['c0', 'c1']);
  });

  test('a megabyte in single characters takes linear time', () => {
    const text = JSON.stringify({ q: '\\"}{'.repeat(150_000) });
    const deltas = [piece('', { id: 'a', name: 'f' })];
    for (const character of text) deltas.push(piece(character));
    expect(actionsOf(read(deltas).events)).toHaveLength(1);
  });
});

describe('[P17] calls as they are told', () => {
  const messages = ({ events }: Read): string[] =>
    events.flatMap((event) => {
      if (event.type === 'warning') return [`${event.code}: ${event.message}`];
      return event.type === 'action_rejected' ? [event.rejection.message] : [];
    });

  test.each<[what: string, deltas: ToolCallDelta[], expected: string[]]>([
    [
      'incomplete arguments',
      whole('{"q":'),
      ['Action "call_1": The arguments of the call are incomplete, so it does not run'],
    ],
    ['no name', [piece('{}', { id: 'a' })], ['Action "a": The call has no function name']],
    [
      'an error in the arguments',
      whole('{"a": 1,\n "b" 2 }'),
      ['Action "call_1", line 2: The body is not a JSON object: expected ":" after a key'],
    ],
    [
      'the same call twice',
      [piece('{}', { id: 'a', name: 'f' }), piece('{}', { index: 1, id: 'a', name: 'f' })],
      ['duplicate_action: The call "a" was repeated with the same arguments; it runs once'],
    ],
    [
      'text after the arguments, once',
      [piece('{} x', { id: 'a', name: 'f' }), piece('y')],
      ['tool_call_ignored: Text after the arguments of the call of "f" was ignored'],
    ],
    ['white space after the arguments', [piece('{} ', { id: 'a', name: 'f' }), piece('\n')], []],
  ])('%s', (_what, deltas, expected) => {
    expect(messages(read(deltas, { json: 'strict' }))).toEqual(expected);
  });

  test('an excerpt shows the error, or the beginning', () => {
    const padding = 'x'.repeat(2 * limits.excerptChars);
    const excerptOf = (args: string): string | undefined =>
      rejectionsOf(read(whole(args), { json: 'strict' }).events)[0]?.excerpt;
    expect(excerptOf(`{"a": "${padding}", b}`)).toBe(`${padding.slice(0, limits.excerptChars / 2 - 3)}", b}`);
    expect(excerptOf(`{"a": "${padding}`)).toBe(`{"a": "${padding}`.slice(0, limits.excerptChars));
  });

  test('calls are listed as they began, in whatever order they ended', () => {
    const { calls } = read([
      piece('{"n"', { index: 0, id: 'a', name: 'f' }),
      piece('{}', { index: 1, id: 'b', name: 'f' }),
      piece('{}', { index: 2, id: 'c', name: 'f' }),
      piece(':1}'),
    ]);
    expect(calls).toStrictEqual([
      { actionId: 'a', ordinal: 0, type: 'tool', id: 'a', name: 'f', arguments: '{"n":1}' },
      { actionId: 'b', ordinal: 1, type: 'tool', id: 'b', name: 'f', arguments: '{}' },
      { actionId: 'c', ordinal: 2, type: 'tool', id: 'c', name: 'f', arguments: '{}' },
    ]);
  });

  test('a rejected call keeps its type and has no arguments; one without a name is unnamed', () => {
    const typeOf = (): 'agent' => 'agent';
    const { events, calls } = read([piece('{"n"', { id: 'a', name: 'f' }), piece('{"n":1}', { index: 1, id: 'b' })], {
      typeOf,
    });
    expect(rejectionsOf(events).map(({ id, type, name }) => [id, type, name])).toEqual([
      ['a', 'agent', 'f'],
      ['b', null, null],
    ]);
    expect(calls.map(({ type, name, arguments: args }) => [type, name, args])).toEqual([
      ['agent', 'f', '{}'],
      ['tool', 'unnamed', '{}'],
    ]);
  });

  test('a name keeps only the characters that endpoints accept, and 64 of them', () => {
    const named = (name: string): string | undefined => read(whole('{}', name)).calls[0]?.name;
    expect(named('a b.c-d_E9é')).toBe('a_b_c-d_E9_');
    expect(named('x'.repeat(limits.idChars + 1))).toBe('x'.repeat(limits.idChars));
  });

  test("an endpoint's id and its extra data are kept up to their limit", () => {
    const longest = 'x'.repeat(limits.callStateChars);
    const extra = { s: 'x'.repeat(limits.callStateChars - '{"s":""}'.length) };
    const { calls } = read([
      { ...piece('{}', { index: 0, id: longest, name: 'f' }), extra },
      { ...piece('{}', { index: 1, id: `${longest}y`, name: 'f' }), extra: { s: `${extra.s}y` } },
    ]);
    expect(calls.map(({ id, extra: kept }) => [id, kept])).toEqual([
      [longest, extra],
      ['auto_2', undefined],
    ]);
  });

  test('[P6] an automatic id is never one that the endpoint gave', () => {
    const deltas = [piece('{}', { id: 'auto_1', name: 'f' }), piece('{}', { index: 1, name: 'f' })];
    expect(actionsOf(read(deltas).events).map(({ id }) => id)).toEqual(['auto_1', 'auto_2']);
  });

  test('a call whose id comes later is one call; another name or another id with a name begins a new one', () => {
    const late = [piece('{"n"', { name: 'f' }), piece(':1}', { id: 'a', name: 'f' })];
    expect(lines(read(late).events)).toEqual(['open tool f async', 'action a tool:f async {"n":1}']);
    const next = [piece("{'n': 1}", { id: 'a', name: 'f' }), piece("{'n': 2}", { id: 'b', name: 'f' })];
    expect(lines(read(next).events)).toEqual([
      'open tool f async',
      'warning repaired_json',
      'action a tool:f async {"n":1} repaired',
      'open tool f async',
      'warning repaired_json',
      'action b tool:f async {"n":2} repaired',
    ]);
    const blank = [piece('{}', { name: 'f' }), piece(' \n', { name: 'f' })];
    expect(actionsOf(read(blank).events)).toHaveLength(1);
  });

  test('arguments that are complete before the name wait for the end', () => {
    const reader = createToolCallReader(options());
    expect(reader.feed(piece('{} ', { id: 'a' }))).toEqual([]);
    expect(lines(reader.feed(piece(' ', { name: 'f' })))).toEqual(['open tool f async']);
    expect(lines(reader.end(true))).toEqual(['action a tool:f async {}']);
    expect(reader.end(true)).toEqual([]);
    expect(reader.feed(piece('{}', { id: 'b', name: 'f' }))).toEqual([]);
  });

  test('[P16] past the number of actions one call is rejected and the others are skipped', () => {
    const numbering = { ordinal: 0, autoId: 1 };
    const deltas = [0, 1, 2].flatMap((index) => [
      piece('{}', { index, id: `c${index}`, name: 'f' }),
      piece(' more', { index }),
    ]);
    const result = read(deltas, { numbering, actionsLeft: 1 });
    expect(lines(result.events)).toEqual([
      'open tool f async',
      'action c0 tool:f async {}',
      'warning tool_call_ignored',
      'rejected c1 too_many_actions',
    ]);
    expect(messages(result).at(-1)).toBe('Action "c1": More than 1 actions; this one and all later ones are ignored');
    expect(numbering.ordinal).toBe(2);
    expect(lines(read(deltas, { actionsLeft: -1 }).events)).toEqual(['rejected c0 too_many_actions']);
  });

  test('[P16] arguments may be as long as the limit, in bytes', () => {
    const most = limits.actionBodyBytes;
    const args = (chars: number, character = 'x'): string => `{"q":"${character.repeat(chars - 8)}"}`;
    const reader = createToolCallReader(options());
    expect(actionsOf(reader.feed(piece(args(most), { id: 'a', name: 'f' })))).toHaveLength(1);
    const tooLarge = `The arguments are longer than ${most} bytes`;
    expect(messages(read(whole(args(most + 1))))).toEqual([`Action "call_1": ${tooLarge}`]);
    expect(messages(read(whole(args(most / 2 + 5, 'é'))))).toEqual([`Action "call_1", line 1: ${tooLarge}`]);
    const open = createToolCallReader(options());
    expect(lines(open.feed(piece(args(most + 2).slice(0, most), { id: 'a', name: 'f' })))).toEqual([
      'open tool f async',
    ]);
    expect(lines(open.feed(piece('x')))).toEqual(['rejected a too_large']);
    expect(actionsOf(open.feed(piece('{}', { index: 1, id: 'b', name: 'f' })))).toHaveLength(1);
  });

  test('[P16] the bytes of names and arguments count together, up to the limit of the generation', () => {
    // 1, 1, 2, 2, 3, 3 and 3 bytes; a pair of surrogates has 4.
    const characters = '\u007fa\u0080\u07ff\u0800\ud7ff\ue000😀\ud800\udfff';
    const bytes = 1 + 1 + 2 + 2 + 3 + 3 + 3 + 4 + 4;
    const name = 'né';
    const rest = limits.generationBytes - bytes - 'done'.length - 2 - 3;
    const reader = createToolCallReader(options());
    reader.feed(piece('{}', { id: 'done', name }));
    expect(lines(reader.feed(piece(' '.repeat(rest))))).toEqual([]);
    expect(lines(reader.feed(piece(characters)))).toEqual(['warning tool_call_ignored']);
    expect(reader.feed(piece('', { index: 1, id: 'open' }))).toEqual([]);
    const last = reader.feed(piece('x', { index: 2 }));
    const message = `The generation is longer than ${limits.generationBytes} bytes`;
    expect(messages({ events: [...last], calls: [] })).toEqual([
      `Action "open": ${message}`,
      `text_too_large: ${message}; the calls that follow were ignored`,
    ]);
    expect([reader.feed(piece('x', { index: 2 })), reader.end(true)]).toEqual([[], []]);
  });
});
