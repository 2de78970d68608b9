import { describe, expect, test } from 'vitest';
import { limits } from '../../../src/domain/limits.ts';
import { answerStream } from '../../../src/llm/providers/answer-stream.ts';

interface Read {
  readonly text: string;
  readonly chunks: number;
  readonly marked: boolean;
  readonly fault: unknown;
}

/** @param readChunks number of chunks after which the reader stops */
async function read(pieces: readonly string[], { page = false, readChunks = Infinity } = {}): Promise<Read> {
  const end = { marked: false };
  const encoder = new TextEncoder();
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const piece of pieces) controller.enqueue(encoder.encode(piece));
      controller.close();
    },
  });
  const reader = answerStream(body, { endpoint: 'http://model', end, page }).getReader();
  const decoder = new TextDecoder();
  let text = '';
  let chunks = 0;
  try {
    for (let next = await reader.read(); !next.done; next = await reader.read()) {
      text += decoder.decode(next.value, { stream: true });
      chunks += 1;
      if (chunks >= readChunks) await reader.cancel();
    }
  } catch (fault) {
    return { text, chunks, marked: end.marked, fault };
  }
  return { text, chunks, marked: end.marked, fault: null };
}

describe('[P15] the end marker', () => {
  test.each([
    [['data: {}\n\ndata: [DONE]\n\n']],
    [['data: {}\n\n', 'data: [DO', 'NE]\n\n']],
    [['data: {}\r\n\r\ndata:[DONE]\r\n\r\n']],
    [['data: {}\n\ndata: [DONE]']],
    [['data: [DONE]\n\n']],
  ])('%j contains one', async (pieces) => {
    expect(await read(pieces)).toMatchObject({ text: pieces.join(''), marked: true });
  });

  test.each([
    [['data: {"choices":[{"delta":{"content":"[DONE]"}}]}\n\n']],
    [['data: {"choices":[{"delta":{"content":"data: [DONE]"}}]}\n\n']],
    [['data: {}\n\n']],
  ])('%j contains none: model text cannot end the stream', async (pieces) => {
    expect(await read(pieces)).toMatchObject({ text: pieces.join(''), marked: false });
  });

  test('a client that stops reading has received it, whatever follows', async () => {
    const pieces = [`data: {}\n\ndata: [DONE]\n\n: ${'z'.repeat(100)}\n\n`, 'more'];
    expect(await read(pieces, { readChunks: 1 })).toMatchObject({ marked: true });
  });
});

describe('[L2] an answer that is not a stream', () => {
  const object = JSON.stringify({ choices: [{ message: { content: 'Grüße' } }] }, null, 2);
  test.each([1, 7, 1_000])('one JSON object, cut at every %i characters, becomes one event', async (size) => {
    const pieces = object.match(new RegExp(`[^]{1,${size}}`, 'g')) ?? [];
    const { text, marked } = await read(pieces);
    expect(text.startsWith('data: {')).toBe(true);
    expect(text.trim()).not.toContain('\n');
    expect(JSON.parse(text.slice('data: '.length))).toEqual(JSON.parse(object));
    expect(marked).toBe(true);
  });

  test('a web page is a refusal that suggests what to check', async () => {
    const { fault, text } = await read(['<html>Sign in</html>'], { page: true });
    expect(text).toBe('');
    expect(fault).toMatchObject({ code: 'model_rejected', message: expect.stringContaining('a web page') });
  });

  test('[P16] the size of an unfinished object is limited like a line', async () => {
    const piece = 'x'.repeat(1_000_000);
    const { fault } = await read(['{"a":"', ...Array.from({ length: limits.modelLineBytes / 1e6 + 1 }, () => piece)]);
    expect(fault).toMatchObject({ code: 'model_unavailable' });
  });
});

test('[P4] each chunk of a stream passes at once and unchanged', async () => {
  const pieces = ['data: {"a":1}\n\n', 'da', 'ta: {}\n', '\n'];
  expect(await read(pieces)).toMatchObject({ chunks: pieces.length, text: pieces.join('') });
});
