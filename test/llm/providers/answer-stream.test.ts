import { describe, expect, test } from 'vitest';
import { limits } from '../../../src/domain/limits.ts';
import { answerChunks } from '../../../src/llm/providers/answer-stream.ts';

interface Read {
  /** As lists, one for each read that completed something. */
  readonly chunks: readonly (readonly unknown[])[];
  readonly marked: boolean;
  readonly fault: unknown;
}

async function read(pieces: readonly string[], { page = false } = {}): Promise<Read> {
  const end = { marked: false };
  const encoder = new TextEncoder();
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const piece of pieces) controller.enqueue(encoder.encode(piece));
      controller.close();
    },
  });
  const { signal } = new AbortController();
  const chunks: (readonly unknown[])[] = [];
  try {
    for await (const list of answerChunks(body, { endpoint: 'http://model', end, page, signal })) chunks.push(list);
  } catch (fault) {
    return { chunks, marked: end.marked, fault };
  }
  return { chunks, marked: end.marked, fault: null };
}

describe('[P15] the end marker', () => {
  test.each([
    [['data: {}\n\ndata: [DONE]\n\n']],
    [['data: {}\n\n', 'data: [DO', 'NE]\n\n']],
    [['data: {}\r\n\r\ndata:[DONE]\r\n\r\n']],
    [['data: {}\n\ndata: [DONE]']],
    [['data: [DONE]\n\n']],
  ])('%j contains one', async (pieces) => {
    expect(await read(pieces)).toMatchObject({ marked: true, fault: null });
  });

  test.each([
    [['data: {"choices":[{"delta":{"content":"[DONE]"}}]}\n\n']],
    [['data: {"choices":[{"delta":{"content":"data: [DONE]"}}]}\n\n']],
    [['data: {}\n\n']],
  ])('%j contains none: model text cannot end the stream', async (pieces) => {
    expect(await read(pieces)).toMatchObject({ marked: false, fault: null });
  });

  test('nothing after it is read', async () => {
    const pieces = [`data: {"a":1}\n\ndata: [DONE]\n\ndata: {"b":2}\n\n`, 'data: {"c":3}\n\n'];
    expect(await read(pieces)).toEqual({ chunks: [[{ a: 1 }]], marked: true, fault: null });
  });
});

describe('[L2] an answer that is not a stream', () => {
  const object = JSON.stringify({ choices: [{ message: { content: 'Grüße' } }] }, null, 2);
  test.each([1, 7, 1_000])('one JSON object, cut at every %i characters, is one chunk', async (size) => {
    const pieces = object.match(new RegExp(`[^]{1,${size}}`, 'g')) ?? [];
    expect(await read(pieces)).toEqual({ chunks: [[JSON.parse(object)]], marked: true, fault: null });
  });

  test('a web page is a refusal that suggests what to check', async () => {
    const { fault, chunks } = await read(['<html>Sign in</html>'], { page: true });
    expect(chunks).toEqual([]);
    expect(fault).toMatchObject({ code: 'model_rejected', message: expect.stringContaining('a web page') });
  });

  test.each(['{"a":"', 'data: '])('[P16] the size of what begins with %s and never ends is limited', async (begins) => {
    const piece = 'x'.repeat(1_000_000);
    const { fault } = await read([begins, ...Array.from({ length: limits.modelLineBytes / 1e6 + 1 }, () => piece)]);
    expect(fault).toMatchObject({ code: 'model_unavailable', message: expect.stringContaining('sent a line of more') });
  });
});

test('[P4] what a read completes is passed on at once, in one list', async () => {
  const pieces = ['data: {"a":1}\n\ndata: {"b":2}\n\nda', 'ta: {"c":"', '\u00e4"}\n', '\n'];
  expect(await read(pieces)).toMatchObject({ chunks: [[{ a: 1 }, { b: 2 }], [{ c: 'ä' }]] });
});

describe('[L2] an error inside the stream', () => {
  const before = 'data: {"a":1}\n\n';
  test.each([
    [`${before}data: {"error":{"message":"no more"}}\n\n`, 'no more'],
    [`${before}event: error\ndata: {"message":"no more"}\n\n`, 'no more'],
    [`${before}data: {"b":\n\ndata: {"c":3}\n\n`, 'JSON'],
  ])('%j: what arrived before it counts, and nothing after it', async (piece, message) => {
    const { chunks, fault } = await read([piece]);
    expect(chunks).toEqual([[{ a: 1 }]]);
    expect(String(fault)).toContain(message);
  });

  test('a last event without an end is no event', async () => {
    expect(await read([`${before}data: {"b":2}`])).toEqual({ chunks: [[{ a: 1 }]], marked: false, fault: null });
  });
});
