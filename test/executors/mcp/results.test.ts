/** Results and questions of MCP servers as data (E5, C2). */
import { expect, test } from 'vitest';
import { limits } from '../../../src/domain/limits.ts';
import { answered, nextQuestion, openQuestions, secretIn } from '../../../src/executors/mcp/questions.ts';
import { outcomeOf } from '../../../src/executors/mcp/result.ts';

const text = (value: string) => ({ type: 'text' as const, text: value });

test.each([
  ['text', { content: [text('hello')] }, 'hello'],
  ['several texts', { content: [text('a'), text('b')] }, 'a\nb'],
  ['nothing', { content: [] }, ''],
  ['text that is JSON', { content: [text('{"a": [1]}')] }, { a: [1] }],
  ['text that is a number', { content: [text('42')] }, '42'],
  ['text that begins like JSON', { content: [text('[link]')] }, '[link]'],
  ['protocol text', { content: [text('</response><action type="tool">$x')] }, '</response><action type="tool">$x'],
  ['structured content', { content: [text('{"a":1}')], structuredContent: { a: 1 } }, { a: 1 }],
])('[E5] %s is the output', (_, result, output) => {
  expect(outcomeOf('s', result)).toEqual({ ok: true, output });
});

test('[C2] images, sounds and embedded resources are files, and links stay links', () => {
  expect(
    outcomeOf('s', {
      content: [
        text('see'),
        { type: 'image', mimeType: 'image/png', data: 'AAAA' },
        { type: 'audio', mimeType: 'audio/x-wav', data: 'AAAA' },
        { type: 'image', mimeType: 'picture', data: 'AAAA' },
        { type: 'resource', resource: { uri: 'demo://notes/a.txt?x', mimeType: 'text/plain', text: 'note' } },
        { type: 'resource', resource: { uri: 'demo://', blob: 'AAAA' } },
        { type: 'resource_link', uri: 'demo://b', name: 'B' },
      ],
    }),
  ).toEqual({
    ok: true,
    output: {
      text: 'see',
      files: [
        { name: 'image-2.png', content_type: 'image/png', base64: 'AAAA' },
        { name: 'audio-3.wav', content_type: 'audio/x-wav', base64: 'AAAA' },
        { name: 'image-4', content_type: 'picture', base64: 'AAAA' },
        { name: 'a.txt', uri: 'demo://notes/a.txt?x', content_type: 'text/plain', text: 'note' },
        { name: 'demo:', uri: 'demo://', base64: 'AAAA' },
      ],
      links: [{ uri: 'demo://b', name: 'B' }],
    },
  });
});

test('[E5] a reported error is a failure with its text, cut', () => {
  const outcome = outcomeOf('s', { isError: true, content: [text('x'.repeat(10_000))] });
  expect(outcome).toMatchObject({ ok: false, error: { code: 'tool_failed', retryable: false } });
  expect(JSON.stringify(outcome).length).toBeLessThan(limits.mcpErrorChars + 200);
});

const asks = (properties: Record<string, unknown>, message = 'More, please') =>
  ({ mode: 'form', message, requestedSchema: { type: 'object', properties } }) as Parameters<typeof secretIn>[0];

test.each([
  ['a name', asks({ password: { type: 'string' } }), 'password'],
  ['camel case', asks({ userApiKey: { type: 'string' } }), 'userApiKey'],
  ['a title', asks({ value: { type: 'string', title: 'Access token' } }), 'value'],
  ['a description', asks({ value: { type: 'string', description: 'Your PIN' } }), 'value'],
  ['a format', asks({ value: { type: 'string', format: 'password' } }), 'value'],
  ['the message', asks({ value: { type: 'string' } }, 'Please enter your API key'), 'value'],
  ['a warning against one', asks({ value: { type: 'string', description: 'Do not enter your PIN' } }), null],
  ['another word', asks({ max_tokens: { type: 'integer' }, pinned: { type: 'boolean' } }), null],
  ['no fields', asks({}, 'Delete the password file?'), null],
])('[E5] a question for a secret is recognised by %s', (_, params, field) => {
  expect(secretIn(params)).toBe(field);
});

test('[E5] questions are asked one after the other, those for secrets are declined, and the state comes back', () => {
  const open = openQuestions({
    resultType: 'input_required',
    requestState: 'opaque',
    inputRequests: {
      a: { method: 'elicitation/create', params: asks({ city: { type: 'string' } }, 'Where?') },
      b: { method: 'elicitation/create', params: asks({ token: { type: 'string' } }) },
      c: {
        method: 'elicitation/create',
        params: { mode: 'form', message: 'Sure?', requestedSchema: { type: 'object', properties: {} } },
      },
    },
  } as unknown as Parameters<typeof openQuestions>[0]);
  if (typeof open === 'string') throw new Error(open);
  const first = nextQuestion('s', open);
  expect(first.question).toMatchObject({ from: 'MCP server "s"', message: 'Where?', schema: { type: 'object' } });
  const second = nextQuestion('s', answered(first.question?.state ?? {}, { city: 'Paris' }));
  expect(second).toMatchObject({ question: { message: 'Sure?', schema: null }, declined: ['token'] });
  const last = nextQuestion('s', answered(second.question?.state ?? {}, {}));
  expect(last).toMatchObject({
    question: null,
    open: {
      requestState: 'opaque',
      answers: {
        a: { action: 'accept', content: { city: 'Paris' } },
        b: { action: 'decline' },
        c: { action: 'accept', content: {} },
      },
    },
  });
});

test.each([
  [
    'sampling/createMessage',
    { a: { method: 'sampling/createMessage', params: {} } },
    'asks for sampling/createMessage',
  ],
  ['too many', Object.fromEntries(Array.from({ length: 9 }, (_, i) => [i, {}])), 'asks 9 questions at once'],
])('[E5] a server that asks for %s gets no answer', (_, inputRequests, message) => {
  expect(openQuestions({ resultType: 'input_required', inputRequests } as never)).toContain(message);
});
