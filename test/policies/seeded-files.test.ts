/** Images and files in the messages of a history (C1, C2). */
import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { EngineError } from '../../src/domain/errors.ts';
import { limits } from '../../src/domain/limits.ts';
import type { SeededHistory } from '../../src/domain/seeded.ts';
import type { ClientPart } from '../../src/policies/openai-parts.ts';
import { admitHistory } from '../../src/policies/seeded-history.ts';
import type { GivenMessage } from '../../src/policies/seeded-history.ts';

const PNG = Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex');
const png = PNG.toString('base64');
const hash = createHash('sha256').update(PNG).digest('hex');
const image = (name: string) =>
  ({ type: 'image', name, media_type: 'image/png', size: PNG.length, sha256: hash }) as const;
const csv = (name: string, mediaType = 'text/csv') => ({
  type: 'file',
  name,
  media_type: mediaType,
  size: 3,
  sha256: createHash('sha256').update('a,b').digest('hex'),
});
const user = (...content: ClientPart[]): GivenMessage => ({ role: 'user', content });
const CALL: GivenMessage = {
  role: 'assistant',
  tool_calls: [{ id: 'a', type: 'function', function: { name: 'plot', arguments: '{}' } }],
};

async function refusal(...history: GivenMessage[]): Promise<{ code: string; message: string; details: object }> {
  const found = await admitHistory(history).catch((fault: unknown) => fault);
  if (!(found instanceof EngineError)) throw new Error('the history was accepted', { cause: found });
  return { code: found.code, message: found.message, details: found.details };
}

const contentOf = ({ messages }: SeededHistory, at = 0): unknown => messages[at]?.content;

test.each<[string, ClientPart, unknown]>([
  ['image', { type: 'image', name: 'a.png', data: png }, image('a.png')],
  ['image, without a name', { type: 'image', data: png }, image('image-2')],
  ['file', { type: 'file', name: 'a.csv', media_type: 'text/csv', data: btoa('a,b') }, csv('a.csv')],
  ['image_url', { type: 'image_url', image_url: { url: `data:image/png;base64,${png}` } }, image('image-2')],
  // What clients state about images is often wrong.
  ['image_url, misnamed', { type: 'image_url', image_url: { url: `data:image/jpeg;base64,${png}` } }, image('image-2')],
  ['image_url, without a type', { type: 'image_url', image_url: { url: `DATA:;base64,${png}` } }, image('image-2')],
  ['input_image', { type: 'input_image', image_url: `data:image/png;base64,${png}` }, image('image-2')],
  [
    'file of OpenAI',
    { type: 'file', file: { filename: 'a.csv', file_data: `data:text/csv;charset=utf-8;base64,${btoa('a,b')}` } },
    csv('a.csv'),
  ],
  ['file of OpenAI, bare', { type: 'file', file: { file_data: btoa('a,b') } }, csv('file-2', 'text/plain')],
  [
    'input_file',
    { type: 'input_file', filename: 'a.csv', file_data: `data:text/csv;base64,${btoa('a,b')}` },
    csv('a.csv'),
  ],
])('[C1] [C2] a message of a user or a tool may have a part of type %s', async (_, part, stored) => {
  const content: ClientPart[] = [{ type: 'text', text: 'look' }, part];
  const history = await admitHistory([user(...content), CALL, { role: 'tool', tool_call_id: 'a', content }]);
  const expected = [{ type: 'text', text: 'look' }, stored];
  expect([contentOf(history), contentOf(history, 2)]).toEqual([expected, expected]);
  expect([...history.files.values()].map((bytes) => Buffer.from(bytes).toString())).toEqual([
    (stored as { type: string }).type === 'image' ? PNG.toString() : 'a,b',
  ]);
});

test('[C1] content without files stays text, in each of its forms', async () => {
  const history = await admitHistory([
    user({ type: 'input_text', text: 'a' }, { type: 'text', text: 'b' }),
    {
      role: 'assistant',
      content: [
        { type: 'output_text', text: 'c' },
        { type: 'refusal', refusal: 'd' },
      ],
    },
  ]);
  expect(history.messages.map(({ content }) => content)).toEqual(['a\nb', 'c\nd']);
  expect(history.files.size).toBe(0);
});

test('[C1] [C2] files of several messages stay in their messages; equal bytes are kept once', async () => {
  const history = await admitHistory([
    user({ type: 'image', name: 'one.png', data: png }),
    { role: 'assistant', content: 'a png' },
    user(
      { type: 'file', name: 'b.csv', media_type: 'text/csv', data: btoa('a,b') },
      { type: 'text', text: 'and' },
      { type: 'image', name: 'two.png', data: png },
    ),
  ]);
  expect([contentOf(history), contentOf(history, 2)]).toEqual([
    [image('one.png')],
    [csv('b.csv'), { type: 'text', text: 'and' }, image('two.png')],
  ]);
  expect(history.files.size).toBe(2);
});

describe('[C1] [C2] a history is refused, with the place of the part,', () => {
  const ok = user({ type: 'image', data: png });
  const imageUrl = (url: string): ClientPart => ({ type: 'image_url', image_url: { url } });
  const TOO_LARGE: ClientPart = { type: 'file', name: 'a', data: btoa('x'.repeat(limits.messagePartBytes + 1)) };
  test.each<[string, ClientPart, string, string]>([
    ['with a URL', imageUrl('https://a.example/x.png'), 'unsupported_content', 'data:<'],
    ['with a URL of our own', { type: 'image', url: 'https://a.example/x.png' }, 'unsupported_content', 'not fetched'],
    ['with a file of OpenAI', { type: 'file', file: { file_id: 'file-1' } }, 'unsupported_content', '"file_id"'],
    ['with an image of OpenAI', { type: 'input_image', file_id: 'file-1' }, 'unsupported_content', '"file_id"'],
    ['without an image', { type: 'input_image' }, 'invalid_content', '"image_url"'],
    ['without a file', { type: 'input_file' }, 'invalid_content', '"file_data"'],
    ['with data that is not base64', { type: 'image', data: '###' }, 'invalid_content', 'must be base64'],
    ['with a URL that is not base64', imageUrl('data:text/plain,hi'), 'invalid_content', 'base64'],
    ['with an empty file', { type: 'file', name: 'a', data: '' }, 'invalid_content', 'empty'],
    ['with a wrong type', { type: 'image', media_type: 'image/gif', data: png }, 'content_type_mismatch', 'image/png'],
    ['with an image that is none', { type: 'image', data: btoa('hello') }, 'unsupported_media_type', 'text/plain'],
    ['with an artifact', { type: 'image', artifact: 'art_1_1' }, 'unknown_artifact', 'a new session has no artifacts'],
    ['with a part that is too large', TOO_LARGE, 'content_too_large', String(limits.messagePartBytes)],
  ])('%s', async (_, part, code, message) => {
    const found = await refusal(ok, { role: 'assistant', content: 'yes' }, user({ type: 'text', text: 'a' }, part));
    expect(found).toMatchObject({ code, message: expect.stringContaining(message) as string, details: { index: 2 } });
    expect(found.message).toMatch(/^history\[2\]\.content\[1\]: /);
  });

  test('with too many files, or too many bytes in them', async () => {
    const small: ClientPart = { type: 'file', name: 'a', data: btoa('x') };
    const many = Array.from({ length: limits.seededFiles }, () => small);
    expect((await admitHistory([user(...many)])).files.size).toBe(1);
    expect(await refusal(user(...many), user(small))).toMatchObject({
      code: 'history_too_large',
      details: { limit_files: limits.seededFiles },
    });
    const large: ClientPart = { type: 'file', name: 'a', data: btoa('x'.repeat(limits.seededFileBytes / 2)) };
    expect((await admitHistory([user(large), user(large)])).files.size).toBe(1);
    expect((await refusal(user(large), user(large), user(small))).code).toMatch(/too_large$/);
  });
});

test('[C1] long URLs are not searched for their data', async () => {
  const url = `data:${';'.repeat(2_000_000)}`;
  const begin = performance.now();
  expect((await refusal(user({ type: 'image_url', image_url: { url } }))).code).toBe('unsupported_content');
  expect(performance.now() - begin).toBeLessThan(20_000);
});
