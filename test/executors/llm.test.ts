import { describe, expect, test } from 'vitest';
import { EngineError } from '../../src/domain/errors.ts';
import type { Json, JsonObject } from '../../src/domain/json.ts';
import type { ActionContext } from '../../src/executors/executor.ts';
import { llmExecutor } from '../../src/executors/llm.ts';
import { callOf, contextOf, errorOf } from './support.ts';

type Asked = Parameters<ActionContext['callModel']>[0];

function model(answer: string) {
  const asked: Asked[] = [];
  const context = contextOf({
    callModel: (request) => {
      asked.push(request);
      for (const piece of answer.match(/.{1,4}/gs) ?? []) request.onText(piece);
      return Promise.resolve(answer);
    },
  });
  return { asked, context };
}

test('[P6] an llm action calls the model and returns its text, streamed as progress', async () => {
  const { asked, context } = model('Good day');
  const call = callOf({ prompt: 'Say hello', system: 'Be kind', model: 'm1' });
  expect(await llmExecutor.execute(call, context)).toEqual({ ok: true, output: 'Good day' });
  expect(asked).toMatchObject([{ prompt: 'Say hello', system: 'Be kind', model: 'm1' }]);
  expect(context.seen).toEqual([{ text: 'Good' }, { text: ' day' }]);
});

test('[P6] system and model are optional', async () => {
  const { asked, context } = model('x');
  await llmExecutor.execute(callOf({ prompt: 'p' }), context);
  expect(asked).toMatchObject([{ system: null, model: null }]);
});

test.each<[parameters: JsonObject, name: string, prompt: string, system: string | null]>([
  [{ text: 'A' }, 'llm', 'A', null],
  [{ text: 'A', words: 5 }, 'summarise', '{"text":"A","words":5}', 'Your task is called "summarise".'],
  [{ text: 'A', system: 'Be kind' }, 'summarise', 'A', 'Be kind'],
  [{ prompt: 'A', words: 5 }, 'summarise', 'A', null],
])('[P6] named values %j of "%s"', async (parameters, name, prompt, system) => {
  const { asked, context } = model('x');
  await llmExecutor.execute(callOf(parameters, { action: { type: 'llm', name } }), context);
  expect(asked).toMatchObject([{ prompt, system }]);
});

const schema = { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] };

test.each(['{"n": 3}', 'Here it is:\n```json\n{"n": 3}\n```\nDone.'])(
  '[P6] with output_schema the answer %j becomes a value',
  async (answer) => {
    const { asked, context } = model(answer);
    expect(await llmExecutor.execute(callOf({ prompt: 'p', output_schema: schema }), context)).toEqual({
      ok: true,
      output: { n: 3 },
    });
    expect(asked[0]?.system).toContain(JSON.stringify(schema));
  },
);

function answers(...given: string[]) {
  const asked: Asked[] = [];
  const context = contextOf({
    callModel: (request) => {
      asked.push(request);
      return Promise.resolve(given[asked.length - 1] ?? '');
    },
  });
  return { asked, context };
}

test.each([
  ['no JSON at all', 'your answer is not JSON: "no JSON at all"'],
  ['{"n": "x"}', 'your JSON does not match output_schema: output.n: expected integer, got string "x"'],
])('[P6] an answer %j that violates output_schema is corrected in one further call', async (answer, issue) => {
  const { asked, context } = answers(answer, '{"n": 3}');
  expect(await llmExecutor.execute(callOf({ prompt: 'p', output_schema: schema }), context)).toEqual({
    ok: true,
    output: { n: 3 },
  });
  expect(asked[1]?.further).toEqual([
    { role: 'assistant', content: answer },
    { role: 'user', content: `That answer is not valid: ${issue}. Answer again with the JSON value and nothing else.` },
  ]);
  expect(asked[1]).toMatchObject({ prompt: 'p', system: asked[0]?.system });
});

test('[P6] a second answer that violates it fails the action without a retry', async () => {
  const { asked, context } = answers('nothing', '{"n": "x"}', '{"n": 1}');
  expect(errorOf(await llmExecutor.execute(callOf({ prompt: 'p', output_schema: schema }), context))).toEqual({
    code: 'invalid_output',
    message: 'the model\'s JSON does not match output_schema: output.n: expected integer, got string "x"',
    retryable: false,
  });
  expect(asked).toHaveLength(2);
});

test.each(['The value is {"n": 3}.', '<think>{"n": 1}?</think>\n{"n": 3}'])(
  '[P6] words around the JSON of %j are ignored',
  async (answer) => {
    const { asked, context } = answers(answer);
    expect(await llmExecutor.execute(callOf({ prompt: 'p', output_schema: schema }), context)).toEqual({
      ok: true,
      output: { n: 3 },
    });
    expect(asked).toHaveLength(1);
  },
);

test.each([
  ['model_unavailable', true],
  ['model_timeout', true],
  ['model_rejected', false],
] as const)('[L2] %s keeps its code; retryable: %s', async (code, retryable) => {
  const context = contextOf({ callModel: () => Promise.reject(new EngineError(code, 'why')) });
  expect(errorOf(await llmExecutor.execute(callOf({ prompt: 'p' }), context))).toMatchObject({
    code,
    message: 'why',
    retryable,
  });
});

test.each([
  [
    { status: 429, retry_after_ms: 2_000 },
    { overloaded: true, retryAfterMs: 2_000 },
  ],
  [{ status: 503 }, { overloaded: true }],
  [{ status: 500 }, {}],
])('[R8] a model endpoint that answers %j slows down the actions that call it', async (details, expected) => {
  const context = contextOf({
    callModel: () => Promise.reject(new EngineError('model_unavailable', 'why', details)),
  });
  expect(errorOf(await llmExecutor.execute(callOf({ prompt: 'p' }), context))).toEqual({
    code: 'model_unavailable',
    message: 'why',
    retryable: true,
    ...expected,
  });
});

test.each([
  [{}, 'parameters.prompt: expected text, got nothing'],
  [{ prompt: '  ' }, 'parameters.prompt: expected text, got "  "'],
  [{ prompt: 'p', system: 1 }, 'parameters.system: expected text, got 1'],
  [{ prompt: 'p', model: [] }, 'parameters.model: expected the name of a model, got []'],
  [{ prompt: 'p', output_schema: 'x' }, 'parameters.output_schema: expected a JSON Schema, got "x"'],
])('[P6] the parameters %j are an error of the model', async (parameters, message) => {
  expect(errorOf(await llmExecutor.execute(callOf(parameters), contextOf()))).toMatchObject({
    code: 'invalid_parameters',
    message,
  });
});

test('[P6] reasoning before the answer is not part of the answer', async () => {
  const { context } = model('<think>Hm, what to say?</think>\n\nGood day');
  expect(await llmExecutor.execute(callOf({ prompt: 'p' }), context)).toEqual({ ok: true, output: 'Good day' });
});

const person = {
  type: 'object',
  properties: { name: { $ref: '#/$defs/name' }, children: { type: 'array', items: { $ref: '#' } } },
  required: ['name'],
  $defs: { name: { type: 'string', minLength: 2, pattern: '^(\\w+\\s?)+$' } },
};

describe('[P6] an output_schema', () => {
  const judged = async (output_schema: JsonObject, answer: Json) => {
    const { asked, context } = answers(JSON.stringify(answer), JSON.stringify(answer));
    const outcome = await llmExecutor.execute(callOf({ prompt: 'p', output_schema }), context);
    return { outcome, rounds: asked.length };
  };

  test('can refer to its own parts, and to itself', async () => {
    const value = { name: 'Ada', children: [{ name: 'Byron', children: [] }] };
    expect((await judged(person, value)).outcome).toEqual({ ok: true, output: value });
    const { outcome } = await judged(person, { name: 'Ada', children: [{ name: 'B' }] });
    expect(errorOf(outcome).message).toContain('output.children[0].name: has 1 characters (allowed: at least 2)');
  });

  test('can contain patterns, which are matched in linear time', async () => {
    const name = `${'a'.repeat(5_000)}!`;
    expect(errorOf((await judged(person, { name })).outcome).message).toContain('does not match the pattern');
    expect((await judged(person, { name: name.slice(0, -1) })).outcome).toMatchObject({ ok: true });
    const open = { type: 'object', patternProperties: { '(x+x+)+y': { type: 'string' } }, additionalProperties: false };
    expect((await judged(open, { ['x'.repeat(5_000)]: 1 })).outcome).toMatchObject({ ok: false });
    expect((await judged(open, { ['xxy'.repeat(500)]: 'z' })).outcome).toMatchObject({ ok: true });
  });

  test.each([
    { type: 'string', pattern: '^(?=a)b' },
    { type: 'string', pattern: '(' },
    { $ref: '#/$defs/a', $defs: { a: { patternProperties: { '(a)\\1': {} } } } },
  ])('with an unusable pattern (%j) is reported, and the model is not called', async (unusable) => {
    const { outcome, rounds } = await judged(unusable, 'x');
    expect(errorOf(outcome)).toMatchObject({ code: 'invalid_parameters', message: expect.stringContaining('pattern') });
    expect(rounds).toBe(0);
  });

  test('whose check exceeds the work limit fails the action, and the model is not called again', async () => {
    const costly = { items: { enum: Array.from({ length: 5_000 }, (_, index) => index) } };
    const { outcome, rounds } = await judged(
      costly,
      Array.from({ length: 5_000 }, (_, index) => -index - 1),
    );
    expect(errorOf(outcome)).toMatchObject({
      code: 'invalid_parameters',
      message: expect.stringContaining('too much work'),
    });
    expect(rounds).toBe(1);
  });

  test.each([{ $ref: '#' }, { $ref: '#/$defs/nothing' }, { $ref: 'https://example.com/schema' }])(
    'with an unusable reference (%j) is reported, and the model is not called again',
    async (unusable) => {
      const { outcome, rounds } = await judged(unusable, { a: 1 });
      expect(errorOf(outcome)).toMatchObject({
        code: 'invalid_parameters',
        message: expect.stringContaining('output_schema'),
      });
      expect(rounds).toBe(1);
    },
  );
});

test.each([
  `\`\`\`json${'\n'.repeat(20_000)}`,
  `\`\`\`${'\n '.repeat(20_000)}`,
  '```\n'.repeat(20_000),
  '[{'.repeat(20_000),
])('[P3] an answer without JSON is scanned once, whatever it contains', async (answer) => {
  const { context } = answers(answer, '{"n": 3}');
  expect(await llmExecutor.execute(callOf({ prompt: 'p', output_schema: schema }), context)).toEqual({
    ok: true,
    output: { n: 3 },
  });
});
