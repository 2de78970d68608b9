/** Which pieces and calls of a stream are the same call (N4). Each row is a form that servers were reported to send. */
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { JsonObject } from '../../../src/domain/json.ts';
import type { ModelDelta } from '../../../src/domain/ports/model.ts';
import type { ProtocolEvent } from '../../../src/domain/protocol-event.ts';
import { createOpenAiProvider } from '../../../src/llm/providers/openai.ts';
import { createToolCallReader } from '../../../src/protocol/native/tool-calls.ts';
import type { ToolCallDelta, ToolCallOptions } from '../../../src/protocol/native/tool-calls.ts';
import { modelRequest } from '../../llm/model-request.ts';
import { VirtualClock } from '../../../testing/virtual-clock.ts';
import { actionsOf, lines, rejectionsOf, warningsOf } from '../parser/parser-kit.ts';

type Given = Record<string, unknown>;
type Chunk = readonly [delta: Given | null, finish?: string | null, more?: Given];

const A = '{"to": "A"}';
const called = (args: unknown, more: Given = {}, name: string | null = 'pay'): Given => ({
  index: 0,
  id: 'call_1',
  type: 'function',
  ...more,
  function: { ...(name === null ? {} : { name }), arguments: args },
});
const piece = (args: unknown, more: Given = {}): Given => ({ index: 0, function: { arguments: args }, ...more });
const calls = (...tool_calls: Given[]): Given => ({ tool_calls });
const end: Chunk = [{}, 'tool_calls'];
const twice = JSON.stringify(A);

interface Row {
  readonly form: string;
  readonly chunks: readonly Chunk[];
  /** The parameters of each action that starts. */
  readonly runs: readonly JsonObject[];
  readonly warnings?: readonly string[];
  readonly rejected?: readonly string[];
}

const once = [{ to: 'A' }];
const repeated = { runs: once, warnings: ['duplicate_action'] };

const ROWS: readonly Row[] = [
  // --- the last chunk has the call again
  {
    form: 'the same call, other white space',
    chunks: [[calls(called(A))], [calls(called('{"to":"A"}')), 'tool_calls']],
    ...repeated,
  },
  {
    form: 'the same call, other order of members',
    chunks: [[calls(called('{"a":1,"b":2}'))], [calls(called('{"b":2,"a":1}')), 'stop']],
    runs: [{ a: 1, b: 2 }],
    warnings: ['duplicate_action'],
  },
  { form: 'encoded twice', chunks: [[calls(called(A))], [calls(called(twice)), 'tool_calls']], ...repeated },
  { form: 'as an object', chunks: [[calls(called(A))], [calls(called({ to: 'A' })), 'tool_calls']], ...repeated },
  { form: 'another index', chunks: [[calls(called(A))], [calls(called(A, { index: 1 })), 'tool_calls']], ...repeated },
  { form: 'a new id', chunks: [[calls(called(A))], [calls(called(A, { id: 'call_2' })), 'tool_calls']], ...repeated },
  {
    form: 'a new id and another index',
    chunks: [[calls(called(A))], [calls(called(A, { id: 'call_2', index: 1 })), 'tool_calls']],
    ...repeated,
  },
  { form: 'no id', chunks: [[calls(called(A))], [calls(called(A, { id: null })), 'tool_calls']], ...repeated },
  { form: 'the arguments only', chunks: [[calls(called(A))], [calls(piece(A)), 'tool_calls']], ...repeated },
  {
    form: 'after pieces',
    chunks: [
      [calls(called(''))],
      [calls(piece('{"to"'))],
      [calls(piece(': "A"}'))],
      [calls(called(A, { id: 'call_2' })), 'tool_calls'],
    ],
    ...repeated,
  },
  {
    form: 'a message instead of a delta',
    chunks: [[calls(called(A))], [null, 'tool_calls', { message: calls(called(A)) }]],
    ...repeated,
  },
  {
    form: 'a message beside an empty delta',
    chunks: [[calls(called(A))], [{}, 'tool_calls', { message: calls(called(A, { id: 'call_2' })) }]],
    ...repeated,
  },
  {
    form: 'a message without a finish reason',
    chunks: [[calls(called(A))], [{}, null, { message: calls(called(A, { id: 'x', index: 4 })) }], end],
    ...repeated,
  },
  {
    form: 'the older form',
    chunks: [
      [{ function_call: { name: 'pay', arguments: A } }],
      [{ function_call: { name: 'pay', arguments: '{"to":"A"}' } }, 'function_call'],
    ],
    ...repeated,
  },
  {
    form: 'the older form and the newer one together',
    chunks: [[{ function_call: { name: 'pay', arguments: A }, ...calls(called(A)) }], end],
    runs: once,
  },
  {
    form: 'the older form with an empty list of the newer one',
    chunks: [[{ function_call: { name: 'pay', arguments: A }, tool_calls: [] }], end],
    runs: once,
  },
  {
    form: 'in a chunk after the finish reason',
    chunks: [[calls(called(A))], end, [calls(called(A, { id: 'call_2' })), 'tool_calls']],
    ...repeated,
  },
  {
    form: 'each chunk has a finish reason',
    chunks: [
      [calls(called(A)), 'tool_calls'],
      [calls(called(A, { id: 'call_2' })), 'tool_calls'],
    ],
    ...repeated,
  },
  {
    form: 'two calls, both again',
    chunks: [
      [calls(called(A), called('{"to":"B"}', { index: 1, id: 'call_2' }))],
      [calls(called(A, { id: 'x' }), called('{"to":"B"}', { index: 1, id: 'y' })), 'tool_calls'],
    ],
    runs: [{ to: 'A' }, { to: 'B' }],
    warnings: ['duplicate_action', 'duplicate_action'],
  },
  {
    form: 'two equal calls, both again',
    chunks: [
      [calls(called(A))],
      [calls(called(A, { index: 1, id: 'call_2' }))],
      [calls(called(A, { id: 'x' }), called(A, { index: 1, id: 'y' })), 'tool_calls'],
    ],
    runs: [...once, ...once],
    warnings: ['duplicate_action', 'duplicate_action'],
  },
  {
    form: 'after text',
    chunks: [[calls(called(A))], [{ content: 'Paid.' }], [calls(called(A, { id: 'x' })), 'tool_calls']],
    ...repeated,
  },
  // --- snapshots
  {
    form: '{} first, then pieces',
    chunks: [[calls(called('{}'))], [calls(piece('{"to"'))], [calls(piece(': "A"}'))], end],
    runs: once,
  },
  { form: '{} first, then the whole call', chunks: [[calls(called('{}'))], [calls(called(A))], end], runs: once },
  {
    form: '{} first, then the whole call in the last chunk under a new id',
    chunks: [[calls(called('{}'))], [calls(called(A, { id: 'call_2' })), 'tool_calls']],
    runs: once,
  },
  {
    form: '{} first without ids',
    chunks: [[calls(called('{}', { id: null }))], [calls(called(A, { id: null }))], end],
    runs: once,
  },
  {
    form: '{} first at another index',
    chunks: [[calls(called('{}'))], [calls(called(A, { index: 1 }))], end],
    runs: once,
  },
  {
    form: 'announced without arguments at another index',
    chunks: [[calls(called(''))], [calls(called(A, { index: 1 }))], end],
    runs: once,
  },
  { form: 'only {}', chunks: [[calls(called('{}'))], end], runs: [{}] },
  {
    form: '{} first, then cut by the limit',
    chunks: [[calls(called('{}'))], [calls(piece('{"to": "A'))], [{}, 'length']],
    runs: [],
    rejected: ['unclosed'],
  },
  {
    form: '{} first, then nothing, cut by the limit',
    chunks: [[calls(called('{}'))], [{}, 'length']],
    runs: [],
    rejected: ['unclosed'],
  },
  {
    form: 'the text so far in each piece',
    chunks: [
      [calls(called('{'))],
      [calls(called('{"to"'))],
      [calls(called('{"to": '))],
      [calls(called('{"to": "A'))],
      [calls(called(A))],
      end,
    ],
    runs: once,
  },
  {
    form: 'the text so far, nested',
    chunks: [[calls(called('{"to":'))], [calls(called('{"to":{"to":'))], [calls(called('{"to":{"to":1}}'))], end],
    runs: [{ to: { to: 1 } }],
  },
  {
    form: 'the text so far, begun before a value',
    chunks: [[calls(called('{"to":'))], [calls(called('{"to":"A"}'))], end],
    runs: once,
  },
  {
    form: 'complete objects that grow',
    chunks: [[calls(called('{"to":""}'))], [calls(called('{"to":"A"}'))], [calls(called('{"to":"A","sum":5}'))], end],
    runs: [{ to: 'A', sum: 5 }],
  },
  {
    form: 'complete objects that grow, without name and id',
    chunks: [[calls(called('{"to":"A"}'))], [calls(piece('{"to":"A","sum":5}'))], end],
    runs: [{ to: 'A', sum: 5 }],
  },
  {
    form: 'the whole arguments after an incomplete part',
    chunks: [[calls(called('{"to":"A", "note":"x"'))], [calls(piece('{"to": "A", "note": "x"}')), 'tool_calls']],
    runs: [{ to: 'A', note: 'x' }],
  },
  { form: 'the arguments twice in one piece', chunks: [[calls(called(A + A))], end], ...repeated },
  {
    form: 'other arguments before anything confirmed the call',
    chunks: [[calls(called('{"to":"B"}'))], [calls(called(A)), 'tool_calls']],
    ...repeated,
  },
  {
    form: 'other arguments after the call has started',
    chunks: [[calls(called(A))], [{ content: 'Paid.' }], [calls(called('{"to":"B"}')), 'tool_calls']],
    runs: once,
    warnings: ['tool_call_ignored'],
  },
  {
    form: 'two different objects in one piece',
    chunks: [[calls(called('{"to":"A"}{"to":"B"}'))], end],
    runs: once,
    warnings: ['tool_call_ignored'],
  },
  // --- several calls
  {
    form: 'equal calls with own ids and indexes',
    chunks: [[calls(called(A))], [calls(called(A, { index: 1, id: 'call_2' }))], end],
    runs: [...once, ...once],
  },
  {
    form: 'equal calls with own ids, index 0 for all',
    chunks: [[calls(called(A))], [calls(called(A, { id: 'call_2' }))], end],
    runs: [...once, ...once],
  },
  {
    form: 'equal calls in one chunk',
    chunks: [[calls(called(A), called(A, { index: 1, id: 'call_2' })), 'tool_calls']],
    runs: [...once, ...once],
  },
  {
    form: 'equal calls without ids in one chunk',
    chunks: [
      [calls(called(A, { index: undefined, id: undefined }), called(A, { index: undefined, id: undefined })), 'stop'],
    ],
    runs: [...once, ...once],
  },
  {
    form: 'equal calls in a whole message',
    chunks: [[null, 'tool_calls', { message: calls(called(A), called(A, { id: 'call_2' })) }]],
    runs: [...once, ...once],
  },
  {
    form: 'equal calls at indexes 0 and 1 without ids',
    chunks: [[calls(called(A, { id: null }))], [calls(called(A, { id: null, index: 1 }))], end],
    runs: [...once, ...once],
  },
  {
    form: 'equal calls at one index without ids',
    chunks: [[calls(called(A, { id: null }))], [calls(called(A, { id: null }))], end],
    ...repeated,
  },
  {
    form: 'one id for different calls',
    chunks: [[calls(called(A))], [calls(called('{"to":"B"}', { index: 1 }))], end],
    runs: [{ to: 'A' }, { to: 'B' }],
  },
  {
    form: 'numbers that differ beyond the precision of a double',
    chunks: [
      [calls(called('{"n":9007199254740992}'))],
      [calls(called('{"n":9007199254740993}', { id: 'call_2' })), 'tool_calls'],
    ],
    runs: [{ n: 9007199254740992 }, { n: '9007199254740993' }],
  },
  {
    form: 'indexes that jump',
    chunks: [[calls(called(A, { index: 1 }))], [calls(called('{"to":"B"}', { index: 7, id: 'call_2' }))], end],
    runs: [{ to: 'A' }, { to: 'B' }],
  },
  {
    form: 'no indexes, in pieces',
    chunks: [
      [calls({ id: 'call_1', function: { name: 'pay', arguments: '{"to"' } })],
      [calls({ function: { arguments: ': "A"}' } })],
      end,
    ],
    runs: once,
  },
  {
    form: 'another id in the later pieces',
    chunks: [[calls(called('{"to"'))], [calls(piece(': "A"}', { id: 'call_9' }))], end],
    runs: once,
  },
  {
    form: 'id and name in every piece',
    chunks: [
      [calls(called('{"to"'))],
      [calls(called(': "A"'))],
      [calls(called('}'))],
      [calls(called('')), 'tool_calls'],
    ],
    runs: once,
  },
  {
    form: 'the name in every piece, the id in the first',
    chunks: [[calls(called('{"to"'))], [calls(called(': "A"}', { id: null }))], end],
    runs: once,
  },
  {
    form: 'a name in pieces',
    chunks: [[calls(called('', {}, 'pa'))], [calls(called('', { id: null }, 'y'))], [calls(piece(A))], end],
    runs: once,
  },
  {
    form: 'null members',
    chunks: [
      [calls({ index: 0, id: 'call_1', type: null, function: { name: 'pay', arguments: null } })],
      [calls({ index: 0, id: null, type: null, function: { name: null, arguments: A } })],
      [{ content: null, tool_calls: null, function_call: null }, 'tool_calls'],
    ],
    runs: once,
  },
  { form: 'encoded twice, once', chunks: [[calls(called(twice))], end], runs: once },
];

function sse(chunks: readonly Chunk[]): string {
  const events = chunks.map(([delta, finish = null, more = {}]) =>
    JSON.stringify({ choices: [{ index: 0, ...(delta === null ? {} : { delta }), ...more, finish_reason: finish }] }),
  );
  return [...events, '[DONE]'].map((data) => `data: ${data}\n\n`).join('');
}

/** The deltas of an answer whose bytes arrive in these pieces. */
async function deltasOf(pieces: readonly Uint8Array[]): Promise<ModelDelta[]> {
  const body = (): ReadableStream<Uint8Array> =>
    new ReadableStream({
      start: (controller) => {
        for (const bytes of pieces) controller.enqueue(bytes);
        controller.close();
      },
    });
  const provider = createOpenAiProvider({
    baseUrl: 'http://127.0.0.1/v1',
    apiKey: null,
    defaultModel: 'm',
    clock: new VirtualClock(),
    random: () => 0,
    fetch: async () => new Response(body(), { headers: { 'content-type': 'text/event-stream' } }),
  });
  const deltas: ModelDelta[] = [];
  for await (const delta of provider.stream(modelRequest())) deltas.push(delta);
  return deltas;
}

const OPTIONS: Omit<ToolCallOptions, 'numbering'> = {
  json: 'repair',
  typeOf: () => 'tool',
  unsafe: (_type, name) => name === 'pay',
  hasParameters: () => true,
};

/** Reads the calls as a generation does: text confirms the calls before it. */
function read(deltas: readonly ModelDelta[]): ProtocolEvent[] {
  const reader = createToolCallReader({ ...OPTIONS, numbering: { ordinal: 0, autoId: 1 } });
  const events: ProtocolEvent[] = [];
  let finish = '';
  for (const delta of deltas) {
    if (delta.type === 'tool_call') events.push(...reader.feed(delta));
    if (delta.type === 'text') events.push(...reader.confirm());
    if (delta.type === 'finish') finish = delta.reason;
  }
  events.push(...reader.end(finish === 'stop' || finish === 'tool_calls'));
  return events;
}

function cuts(text: string): Record<string, Uint8Array[]> {
  const bytes = new TextEncoder().encode(text);
  const random: Uint8Array[] = [];
  for (let at = 0, seed = 7; at < bytes.length;) {
    seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
    const length = 1 + (seed % 90);
    random.push(bytes.slice(at, at + length));
    at += length;
  }
  return { whole: [bytes], 'byte by byte': [...bytes].map((byte) => new Uint8Array([byte])), 'at random cuts': random };
}

describe('[N4] a call runs once', () => {
  test.each(ROWS)('$form', async ({ chunks, runs, warnings = [], rejected = [] }) => {
    for (const [how, pieces] of Object.entries(cuts(sse(chunks)))) {
      const events = read(await deltasOf(pieces));
      expect(
        {
          runs: actionsOf(events).map(({ parameters }) => parameters),
          warnings: warningsOf(events),
          rejected: rejectionsOf(events).map(({ code }) => code),
        },
        how,
      ).toEqual({ runs, warnings, rejected });
      expect(new Set(actionsOf(events).map(({ name }) => name)).size).toBeLessThanOrEqual(1);
      expect(new Set(actionsOf(events).map(({ id }) => id)).size).toBe(runs.length);
    }
  });

  test.each(ROWS)('a record of "$form" that was cut for storage gives the same', async ({ chunks }) => {
    const deltas = await deltasOf([new TextEncoder().encode(sse(chunks))]);
    const stored = deltas.flatMap((delta): ModelDelta[] => {
      if (delta.type !== 'tool_call' || delta.argumentsDelta.length < 2) return [delta];
      const { argumentsDelta } = delta;
      return [
        { ...delta, argumentsDelta: argumentsDelta.slice(0, 1), more: true },
        { ...delta, argumentsDelta: argumentsDelta.slice(1) },
      ];
    });
    expect(lines(read(stored))).toEqual(lines(read(deltas)));
  });
});

const delta = (args: string, given: Partial<ToolCallDelta> = {}): ToolCallDelta => ({
  type: 'tool_call',
  index: 0,
  id: 'call_1',
  name: 'pay',
  argumentsDelta: args,
  ...given,
});

describe('[N4] an unsafe call starts when it is confirmed', () => {
  const reader = (): ReturnType<typeof createToolCallReader> =>
    createToolCallReader({ ...OPTIONS, numbering: { ordinal: 0, autoId: 1 } });
  const started = (events: readonly ProtocolEvent[]): string[] => actionsOf(events).map(({ id }) => id);

  test('not at its closing brace, but with the first piece of the next call', () => {
    const calls = reader();
    expect(started(calls.feed(delta(A)))).toEqual([]);
    expect(started(calls.feed(delta('', { index: 1, id: 'call_2' })))).toEqual(['call_1']);
    expect(started(calls.feed(delta(A, { index: 1, id: 'call_2' })))).toEqual([]);
    expect(started(calls.end(true))).toEqual(['call_2']);
  });

  test('a next call that may be the same one confirms it when it is complete and differs', () => {
    const calls = reader();
    calls.feed(delta('{"to":"A"}', { id: null }));
    expect(started(calls.feed(delta('{"to":', { id: null })))).toEqual([]);
    expect(started(calls.feed(delta('"B"}', { id: null })))).toEqual(['auto_1']);
    expect(started(calls.end(true))).toEqual(['auto_2']);
  });

  test('with a block of text, in the order of the document', () => {
    const calls = reader();
    calls.feed(delta(A));
    expect(started(calls.confirm())).toEqual(['call_1']);
    expect(started(calls.end(true))).toEqual([]);
  });

  test('a safe call starts at its closing brace; {} of a target with parameters waits', () => {
    const calls = reader();
    expect(started(calls.feed(delta(A, { name: 'look' })))).toEqual(['call_1']);
    expect(started(calls.feed(delta('{}', { name: 'look', index: 1, id: 'call_2' })))).toEqual([]);
    expect(started(calls.end(true))).toEqual(['call_2']);
    const without = createToolCallReader({
      ...OPTIONS,
      hasParameters: () => false,
      numbering: { ordinal: 0, autoId: 1 },
    });
    expect(started(without.feed(delta('{}', { name: 'look' })))).toEqual(['call_1']);
  });

  test('a safe call that is sent again with other arguments runs once, with the first ones', () => {
    const calls = reader();
    const events = [calls.feed(delta(A, { name: 'look' })), calls.feed(delta('{"to":"AB"}', { name: 'look' }))].flat();
    expect(actionsOf(events).map(({ parameters }) => parameters)).toEqual([{ to: 'A' }]);
    expect(warningsOf(events)).toEqual(['tool_call_ignored']);
  });

  test('[P15] not if the generation ends in any other way: it is rejected', () => {
    const calls = reader();
    calls.feed(delta(A));
    const events = calls.end(false);
    expect(started(events)).toEqual([]);
    expect(rejectionsOf(events)).toMatchObject([
      { code: 'unclosed', message: expect.stringContaining('before anything confirmed the call') },
    ]);
    expect(calls.calls).toMatchObject([{ actionId: 'call_1', arguments: '{}' }]);
  });

  test('[P17] the conversation has the repeated call once, with the arguments that ran', () => {
    const calls = reader();
    calls.feed(delta('{}'));
    calls.feed(delta(A));
    calls.feed(delta('{"to":"A"}', { id: 'call_2', index: 1, ending: 1 }));
    calls.end(true);
    expect(calls.calls).toMatchObject([{ actionId: 'call_1', id: 'call_1', name: 'pay', arguments: A }]);
    expect(calls.calls).toHaveLength(1);
  });
});

test('[N4] [P16] arguments that are repeated without end cost linear time', () => {
  for (const text of ['{}'.repeat(400_000), '{"a":1} '.repeat(100_000), `{"a":"${'{'.repeat(800_000)}`]) {
    for (const name of ['pay', 'look']) {
      const reader = createToolCallReader({ ...OPTIONS, numbering: { ordinal: 0, autoId: 1 } });
      const events = [...reader.feed(delta(text, { name })), ...reader.end(true)];
      expect(actionsOf(events).length).toBeLessThanOrEqual(1);
    }
  }
  const reader = createToolCallReader({ ...OPTIONS, numbering: { ordinal: 0, autoId: 1 } });
  for (let index = 0; index < 20_000; index += 1) reader.feed(delta('', { id: `c${index}`, index }));
  expect(actionsOf(reader.end(true)).length).toBeLessThanOrEqual(256);
});

test('[N4] whatever is sent, each action has its own ordinal and id, and ends once', () => {
  fc.assert(
    fc.property(
      fc.array(
        fc.record({
          index: fc.nat(3),
          id: fc.option(fc.constantFrom('a', 'b', '', '<', '\u0000', 'x'.repeat(100))),
          name: fc.option(fc.constantFrom('pay', 'look', '"', '</action>', '[', '\\')),
          argumentsDelta: fc.constantFrom(
            ...'|{}|{"to":|"A"}|{"to":"A"}|"{\\"to\\":\\"A\\"}"|{"to":"B"}|x|null|```|</action>|{|}|"|\'|\\|[|,|:'.split(
              '|',
            ),
          ),
          ending: fc.option(fc.nat(2)),
          confirm: fc.boolean(),
        }),
        { maxLength: 20 },
      ),
      fc.boolean(),
      (given, complete) => {
        const reader = createToolCallReader({ ...OPTIONS, numbering: { ordinal: 0, autoId: 1 } });
        const events = given.flatMap(({ ending, confirm, ...piece }) => [
          ...reader.feed({ type: 'tool_call', ...piece, ...(ending === null ? {} : { ending }) }),
          ...(confirm ? reader.confirm() : []),
        ]);
        events.push(...reader.end(complete));
        const ends = [...actionsOf(events), ...rejectionsOf(events)];
        expect(new Set(ends.map(({ ordinal }) => ordinal)).size).toBe(ends.length);
        expect(new Set(ends.map(({ id }) => id)).size).toBe(ends.length);
        expect(reader.calls.map(({ actionId }) => actionId).toSorted()).toEqual(ends.map(({ id }) => id).toSorted());
        expect(new Set(reader.calls.map(({ id }) => id)).size).toBe(ends.length);
        for (const call of reader.calls) expect(typeof JSON.parse(call.arguments)).toBe('object');
      },
    ),
    { numRuns: 1_000 },
  );
});
