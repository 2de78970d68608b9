/** What is measured in one run, by the journal of the real engine. */
import { describe, expect, test } from 'vitest';
import { GENERATION_MS } from '../../../cli/fluency/tasks/schedule.ts';
import { partsOf } from '../../../cli/fluency/score/score.ts';
import { single, taskNamed } from './kit.ts';
import type { Model } from './models.ts';

/** One text for each generation; the last one repeats. */
const says =
  (...texts: string[]): Model =>
  ({ generation }) => ({ text: texts[generation - 1] ?? texts.at(-1) ?? '' });

const look = (id: string, station: string, attributes = 'mode="async"'): string =>
  `<action type="tool" id="${id}" ${attributes}>{"name": "weather_station", "parameters": {"station": "${station}"}}</action>`;
const ANSWER = '<response final="true">$a.celsius and $b.celsius</response>';
const BOTH = `${look('a', 'Northgate')}\n${look('b', 'Valley')}`;
const task = taskNamed('two-stations');
const CALL_MS = 900;

describe('[O4] the plan of a run', () => {
  test('calls that run at once', async () => {
    const { measures } = await single(says(`${BOTH}\n${ANSWER}`), task);
    expect(measures).toMatchObject({ solved: true, makespanMs: GENERATION_MS + CALL_MS });
    expect(partsOf(measures).plan).toBe(1);
  });

  test.each([
    ['a sync call holds the next one back', `${look('a', 'Northgate', 'mode="sync"')}\n${look('b', 'Valley')}`],
    [
      'a dependency that is not needed',
      `${look('a', 'Northgate')}\n${look('b', 'Valley', 'mode="async" depends_on="a"')}`,
    ],
  ])('%s', async (_, text) => {
    const { measures } = await single(says(`${text}\n${ANSWER}`), task);
    expect(measures).toMatchObject({ solved: true, makespanMs: GENERATION_MS + 2 * CALL_MS });
  });

  test('a generation for each call', async () => {
    const { measures } = await single(says(look('a', 'Northgate'), look('b', 'Valley'), ANSWER), task);
    expect(measures.makespanMs).toBe(3 * GENERATION_MS + 2 * CALL_MS);
    expect(partsOf(measures).plan).toBeCloseTo((GENERATION_MS + CALL_MS) / (3 * GENERATION_MS + 2 * CALL_MS));
  });

  test('retries of the runtime take their time', async () => {
    const meter = '<action type="tool" id="a" retry="2">{"name": "meter", "parameters": {"meter": "M1"}}</action>';
    const answer = '<response final="true">$a.kilowatt_hours</response>';
    const { measures } = await single(says(`${meter}\n${answer}`), taskNamed('meter-that-fails-once'));
    expect(measures).toMatchObject({ solved: true, makespanMs: GENERATION_MS + 2 * 700 });
  });

  test('is worth nothing without the right answer', async () => {
    const { measures } = await single(says(`${BOTH}\n<response final="true">I do not know.</response>`), task);
    expect(measures.solved).toBe(false);
    expect(partsOf(measures)).toMatchObject({ correctness: 0, plan: 0, economy: 0, protocol: 1 });
  });
});

test.each<[string, string[], object]>([
  ['exactly the plan', [`${BOTH}\n${ANSWER}`], { needed: 2, made: 2, missing: 0, superfluous: 0, repeated: 0 }],
  [
    'a superfluous one',
    [`${BOTH}\n${look('c', 'Summit')}\n${ANSWER}`],
    { made: 3, missing: 0, superfluous: 1, repeated: 0 },
  ],
  ['one that is repeated', [BOTH, `${look('c', 'Valley')}\n${ANSWER}`], { made: 3, superfluous: 1, repeated: 1 }],
  ['one that is missing', [`${look('a', 'Northgate')}\n<response final="true">$a</response>`], { made: 1, missing: 1 }],
])('[O4] calls: %s', async (_, texts, calls) => {
  expect((await single(says(...texts), task)).measures.calls).toMatchObject(calls);
});

test.each<[string, string, object, number]>([
  ['all that the plan has', `${BOTH}\n${ANSWER}`, { needed: 2, used: 2, missing: 0, unknown: 0 }, 1],
  ['half of them', `${BOTH}\n<response final="true">$a.celsius and 11.3</response>`, { used: 1 }, 0.5],
  [
    'an unknown name besides',
    `${BOTH}\n<response final="true">$a.celsius and $b.celsius, $nobody</response>`,
    { used: 2, unknown: 1 },
    2 / 3,
  ],
])('[O4] references: %s', async (_, text, references, part) => {
  const { measures } = await single(says(text), task);
  expect(measures.references).toMatchObject(references);
  expect(partsOf(measures).references).toBeCloseTo(part);
});

test('[O4] references whose path does not exist are missing', async () => {
  const wrong = '<response final="true">$a.degrees and $b.degrees</response>';
  const { measures } = await single(
    says(`${BOTH}\n${wrong}`, '<response final="true">-13.4 and 11.3</response>'),
    task,
  );
  expect(measures).toMatchObject({ solved: true, references: { used: 2, missing: 2 } });
  expect(partsOf(measures).references).toBe(0);
});

test.each<[string, string[], number[], string[]]>([
  ['without a mistake', [`${BOTH}\n${ANSWER}`], [1], []],
  ['JSON that is repaired', [`${BOTH.replace('"}}', '"},}')}\n${ANSWER}`], [0.5], ['repaired_json']],
  [
    'an action that is rejected',
    [`${BOTH}\n<action id="x">{"name": "wether"}</action>\n${ANSWER}`, ANSWER],
    [0, 1],
    ['unknown_name'],
  ],
  [
    'a parameter of a wrong type',
    [`<action name="weather_station" id="x">{"station": 7}</action>`, `${BOTH}\n${ANSWER}`],
    [0, 1],
    ['invalid_parameters'],
  ],
  ['plain text', [BOTH, '-13.4 and 11.3'], [1, 0.5], ['no_protocol']],
])('[O4] protocol: %s', async (_, texts, validity, codes) => {
  const { measures } = await single(says(...texts), task);
  expect(measures).toMatchObject({ solved: true, validity });
  expect(measures.mistakes.map(({ code }) => code)).toEqual(codes);
});

test('[O4] a mistake shows what the model wrote and what the runtime said', async () => {
  const { measures } = await single(
    says('<action id="x">{"name": "wether_station"}</action>', `${BOTH}\n${ANSWER}`),
    task,
  );
  expect(measures.mistakes).toEqual([
    {
      code: 'unknown_name',
      message: expect.stringContaining('did you mean "weather_station"?'),
      wrote: expect.stringContaining('{"name": "wether_station"}'),
    },
  ]);
});

test('[O4] native calls count in the form tool_calls, and are mistakes in text', async () => {
  const model: Model = ({ generation, form }) => {
    const calls = ['Northgate', 'Valley'].map((station, at) => ({
      id: `call0000${at}`,
      name: 'weather_station',
      arguments: JSON.stringify({ station }),
    }));
    if (generation === 1) return { calls };
    return { text: form === 'tool_calls' ? '-13.4 and 11.3' : '<response final="true">-13.4 and 11.3</response>' };
  };
  const native = await single(model, task, { form: 'tool_calls' });
  expect(native.measures).toMatchObject({ solved: true, validity: [1, 1], makespanMs: native.measures.idealMs });
  expect(partsOf(native.measures)).toMatchObject({ plan: 1, references: null });
  const text = await single(model, task, { form: 'compact' });
  expect(text.measures).toMatchObject({ solved: true, validity: [0.5, 1] });
  expect(text.measures.mistakes).toMatchObject([
    { code: 'native_call', wrote: expect.stringContaining('weather_station{"station":"Northgate"}') },
  ]);
});

test('[O4] tags are mistakes in the form tool_calls', async () => {
  const { measures } = await single(says(`${BOTH}\n${ANSWER}`), task, { form: 'tool_calls' });
  expect(measures).toMatchObject({ solved: true, validity: [0.5], mistakes: [{ code: 'protocol_text' }] });
});

test('[O4] a model call of an action is no generation', async () => {
  const llm = '<action type="llm" id="greeting">{"parameters": {"prompt": "Greet me."}}</action>';
  const answer = '<response final="true">$greeting $a.celsius and $b.celsius</response>';
  const { run, measures } = await single(says(`${BOTH}\n${llm}\n${answer}`), task);
  expect(run.document.response).toBe('Hello! -13.4 and 11.3');
  expect(run.generations).toHaveLength(run.document.iterations);
  expect(measures.validity).toHaveLength(run.document.iterations);
});

test.each([401, 403, 429, 503])(
  '[O4] a run that the endpoint has failed says nothing about the model: %i',
  async (status) => {
    const { measures } = await single(says(''), task, { refuses: task.name, refusesWith: status });
    expect(measures).toMatchObject({ solved: false, endpointError: expect.stringContaining('this is not allowed') });
  },
);

test.each([400, 413, 422])(
  '[O4] a conversation that the endpoint does not accept is not solved: %i',
  async (status) => {
    const { measures } = await single(says(''), task, { refuses: task.name, refusesWith: status });
    expect(measures).toMatchObject({ solved: false, endpointError: null, mistakes: [{ code: 'model_rejected' }] });
  },
);

test('[O4] an answer that a content filter stops is not solved', async () => {
  const { measures } = await single(() => ({ text: '', finish: 'content_filter' }), task);
  expect(measures).toMatchObject({ solved: false, endpointError: null });
});

test('[O4] the right answer without the calls that it needs is not solved', async () => {
  const { measures } = await single(
    says(`${look('a', 'Northgate')}\n${look('c', 'Northgate')}\n<response final="true">-13.4 and 11.3</response>`),
    task,
  );
  expect(measures).toMatchObject({ solved: false, calls: { made: 2, missing: 1, repeated: 1 } });
  expect(measures.mistakes).toMatchObject([{ code: 'missing_call' }]);
});

test('[O4] a model may compute what a built-in tool would', async () => {
  const stock =
    '<action type="tool" id="s" mode="async">{"name": "stock_level", "parameters": {"item": "lamp"}}</action>';
  const price = stock.replace('id="s"', 'id="p"').replace('stock_level', 'unit_price');
  const { measures } = await single(
    says(`${stock}\n${price}`, '<response final="true">99663</response>'),
    taskNamed('value-of-stock'),
  );
  expect(measures).toMatchObject({ solved: true, calls: { made: 2, missing: 0 } });
});

describe('[O4] calls that depend on a result', () => {
  const call = (id: string, tool: string, name: string): string =>
    `<action type="tool" id="${id}" mode="async">{"name": "${tool}", "parameters": {"name": "${name}"}}</action>`;
  const answer = (text: string): string => `<response final="true">${text}</response>`;

  test.each<[string, string, string[], number]>([
    [
      'read first',
      'missing-phone',
      [call('c', 'customer', 'Ellery'), `${call('p', 'phone_book', 'Ellery')}\n${answer('$p.phone')}`],
      0,
    ],
    [
      'made at once',
      'missing-phone',
      [`${call('c', 'customer', 'Ellery')}\n${call('p', 'phone_book', 'Ellery')}\n${answer('$p.phone')}`],
      1,
    ],
    ['not needed', 'known-phone', [`${call('c', 'customer', 'Marchetti')}\n${answer('$c.phone')}`], 0],
  ])('%s', async (_, name, texts, premature) => {
    const { measures } = await single(says(...texts), taskNamed(name));
    expect(measures).toMatchObject({ solved: true, calls: { premature } });
    expect(partsOf(measures).plan).toBe(premature === 0 ? 1 : 0);
    expect(measures.mistakes.map(({ code }) => code)).toEqual(premature === 0 ? [] : ['premature_call']);
  });
});

test('[O4] a run that fails for another reason is a wrong answer', async () => {
  const { measures } = await single(says(BOTH), task);
  const message = expect.stringContaining('the run is failed: No answer within 20 iterations');
  expect(measures).toMatchObject({ solved: false, endpointError: null, reason: message });
  expect(measures.mistakes.at(-1)).toMatchObject({ code: 'wrong_answer', message });
});
