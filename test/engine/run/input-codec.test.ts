/** The stored form of a run's inputs: data of earlier versions stays readable, and stored data is restored exactly. */
import { expect, test } from 'vitest';
import type { ActionError } from '../../../src/domain/action.ts';
import type { Json } from '../../../src/domain/json.ts';
import { addRecorded, decodeInputs, encodeInputs } from '../../../src/engine/run/input-codec.ts';
import type { RecordedInput } from '../../../src/engine/run/run-input.ts';
import { MODEL } from '../../support/scheduler-kit.ts';

const ERROR: ActionError = { code: 'timeout', message: 'too late', retryable: true };
const SPENT = { modelCalls: 1, tokens: 20, cost: 0.5, actions: 2, children: 1 };
const USAGE = { promptTokens: 3, completionTokens: 4, cachedTokens: 1, estimated: false };
const DELTA = { type: 'tool_call', index: 0, id: 'c1', name: 'echo', argumentsDelta: '{"a":' } as const;

/** Every stored form of an input, with its meaning. Existing entries never change; new ones can be added. */
const STORED: readonly (readonly [stored: string, input: RecordedInput])[] = [
  [`{"is":"start","at":1,"policy":${JSON.stringify(MODEL)}}`, { type: 'run_started', at: 1, policy: MODEL }],
  ['{"is":"text","at":2,"text":"<thought>"}', { type: 'text', at: 2, text: '<thought>' }],
  ['{"is":"posted","at":3,"chars":12}', { type: 'posted_text', at: 3, chars: 12 }],
  ['{"is":"reasoning","at":4,"text":"hm"}', { type: 'reasoning', at: 4, text: 'hm' }],
  [`{"is":"call","at":5,"delta":${JSON.stringify(DELTA)}}`, { type: 'tool_call', at: 5, delta: DELTA }],
  [`{"is":"usage","at":6,"usage":${JSON.stringify(USAGE)}}`, { type: 'usage', at: 6, usage: USAGE }],
  [
    '{"is":"ended","at":7,"finish":"stop","error":null}',
    { type: 'generation_ended', at: 7, finish: 'stop', error: null },
  ],
  [
    '{"is":"outcome","at":8,"key":"1/0","attempt":1,"error":null,"random":0.25}',
    { type: 'attempt_ended', at: 8, key: '1/0', attempt: 1, error: null, random: 0.25 },
  ],
  [
    `{"is":"outcome","at":9,"key":"1/1","attempt":2,"error":${JSON.stringify(ERROR)},"random":0.5,"spent":${JSON.stringify(SPENT)}}`,
    { type: 'attempt_ended', at: 9, key: '1/1', attempt: 2, error: ERROR, random: 0.5, spent: SPENT },
  ],
  [
    '{"is":"recalled","at":10,"key":"1/2","found":"outcome"}',
    { type: 'recalled', at: 10, key: '1/2', found: 'outcome' },
  ],
  [
    '{"is":"recalled","at":11,"key":"1/2","found":"nothing"}',
    { type: 'recalled', at: 11, key: '1/2', found: 'nothing' },
  ],
  [
    `{"is":"recalled","at":12,"key":"1/2","found":${JSON.stringify(ERROR)}}`,
    { type: 'recalled', at: 12, key: '1/2', found: { error: ERROR } },
  ],
  [
    '{"is":"condition","at":13,"key":"1/3","result":{"ok":true,"value":false}}',
    { type: 'condition_evaluated', at: 13, key: '1/3', result: { ok: true, value: false } },
  ],
  [
    `{"is":"unasked","at":14,"key":"1/4","error":${JSON.stringify(ERROR)}}`,
    { type: 'approval_asked', at: 14, key: '1/4', error: ERROR },
  ],
  [
    '{"is":"timer","at":15,"timer":"timeout:1/1#2","random":0.75}',
    { type: 'timer_fired', at: 15, timer: 'timeout:1/1#2', random: 0.75 },
  ],
  [
    '{"is":"approval","at":16,"key":"1/5","approved":false,"note":"no"}',
    { type: 'approval_resolved', at: 16, key: '1/5', approved: false, note: 'no' },
  ],
  ['{"is":"cancel","at":17,"reason":"user"}', { type: 'cancel_requested', at: 17, reason: 'user' }],
  ['{"is":"idle","at":18}', { type: 'generation_idle', at: 18 }],
  [
    '{"is":"judged","at":19,"key":"1/6","result":"ask","verdict":{"decision":"ask","source":"agent a","rule":1,"message":null}}',
    {
      type: 'policy_judged',
      at: 19,
      key: '1/6',
      result: 'ask',
      verdict: { decision: 'ask', source: 'agent a', rule: 1, message: null },
    },
  ],
  ['{"is":"called","at":20,"key":"1/7"}', { type: 'client_called', at: 20, key: '1/7' }],
  [
    `{"is":"answer","at":21,"key":"1/7","error":${JSON.stringify(ERROR)}}`,
    { type: 'client_answered', at: 21, key: '1/7', error: ERROR },
  ],
  ['{"is":"message","at":22}', { type: 'message_received', at: 22 }],
];

test.each(STORED)('[J9] %s is decoded to its meaning, and encoded to the same form', (stored, input) => {
  expect(decodeInputs([JSON.parse(stored) as Json])).toEqual([input]);
  expect(JSON.stringify(encodeInputs([input]))).toBe(`[${stored}]`);
});

test.each([[{ is: 'later', at: 1 }], [{ at: 1 }], [{ is: 'idle' }], ['idle'], [null]])(
  '[J9] %j is not an input of this version, so the run does not continue from it',
  (stored) => {
    expect(() => decodeInputs([stored as Json])).toThrow(expect.objectContaining({ code: 'not_recoverable' }));
  },
);

test('[J9] the message for an unknown input quotes its type, cut to 40 characters', () => {
  const message = (found: string): string => `The record of the run contains an input of the unknown type ${found}`;
  expect(() => decodeInputs([{ is: 'later', at: 1 }])).toThrow(message('"later"'));
  expect(() => decodeInputs([7])).toThrow(message('null'));
  expect(() => decodeInputs([{ is: 'x'.repeat(60), at: 1 }])).toThrow(new RegExp(`${message(`"${'x'.repeat(39)}`)}$`));
});

test.each([[undefined], [null], ['text'], [{ is: 'idle', at: 1 }]])('[J9] %j decodes to no inputs', (json) => {
  expect(decodeInputs(json)).toEqual([]);
});

test('[J6] a piece has at most 100,000 characters', () => {
  const sizes = (...texts: readonly number[]): number[] => {
    const list: RecordedInput[] = [];
    for (const chars of texts) addRecorded(list, { type: 'text', at: 1, text: 'x'.repeat(chars) });
    return list.map((input) => ('text' in input ? input.text.length : 0));
  };
  expect(sizes(60_000, 40_000)).toEqual([100_000]);
  expect(sizes(60_000, 40_001)).toEqual([60_000, 40_001]);
  expect(sizes(100_001)).toEqual([100_000, 1]);
  expect(sizes(0)).toEqual([]);
});

test('[J6] [P17] long arguments of a native call are stored in pieces; other inputs are not merged', () => {
  const list: RecordedInput[] = [];
  const delta = { type: 'tool_call', index: 0, id: 'c', name: 'echo', argumentsDelta: 'y'.repeat(250_000) } as const;
  const call = { type: 'tool_call', at: 1, delta } as unknown as RecordedInput;
  expect(addRecorded(list, call)).toBe(250_000);
  expect(addRecorded(list, { type: 'posted_text', at: 2, chars: 5 })).toBe(0);
  expect(addRecorded(list, { type: 'generation_idle', at: 3 })).toBe(0);
  expect(addRecorded(list, { type: 'posted_text', at: 4, chars: 6 })).toBe(0);
  const pieces = list.slice(0, 3).map((input) => (input.type === 'tool_call' ? input.delta : null));
  expect(pieces.map((piece) => piece?.argumentsDelta.length)).toEqual([100_000, 100_000, 50_000]);
  // The reader joins them again (N4).
  expect(pieces.map((piece) => piece?.more)).toEqual([true, true, undefined]);
  expect(pieces).toMatchObject([delta, delta, delta].map(({ index, id, name }) => ({ index, id, name })));
  expect(list.slice(3)).toEqual([
    { type: 'posted_text', at: 2, chars: 5 },
    { type: 'generation_idle', at: 3 },
    { type: 'posted_text', at: 4, chars: 6 },
  ]);
  const short: RecordedInput[] = [];
  addRecorded(short, { type: 'tool_call', at: 1, delta: { ...delta, argumentsDelta: '' } } as unknown as RecordedInput);
  expect(short).toHaveLength(1);
});

test('[J6] pieces of one text are stored together, up to the size of a row', () => {
  const list: RecordedInput[] = [];
  expect(addRecorded(list, { type: 'text', at: 1, text: 'ab' })).toBe(2);
  expect(addRecorded(list, { type: 'text', at: 2, text: 'cd' })).toBe(2);
  expect(addRecorded(list, { type: 'reasoning', at: 3, text: 'ef' })).toBe(2);
  addRecorded(list, { type: 'text', at: 4, text: 'x'.repeat(250_000) });
  addRecorded(list, { type: 'posted_text', at: 5, chars: 3 });
  addRecorded(list, { type: 'posted_text', at: 6, chars: 4 });
  expect(
    list.map((input) => ('text' in input ? input.text.length : input.type === 'posted_text' ? input.chars : 0)),
  ).toEqual([4, 2, 100_000, 100_000, 50_000, 7]);
});
