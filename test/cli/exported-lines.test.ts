/** The lines of an export of a session. */
import { expect, test } from 'vitest';
import { exportedLines } from '../../cli/terminal/exported-lines.ts';
import type { Session } from '../../src/client/index.ts';

/** @param sizes of the pieces that the text arrives in, in bytes */
async function linesOf(text: string, size: number): Promise<string[]> {
  const bytes = new TextEncoder().encode(text);
  const pieces = Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) =>
    bytes.slice(at * size, (at + 1) * size),
  );
  const response = (): Promise<Response> => Promise.resolve(new Response(ReadableStream.from(pieces)));
  const lines: string[] = [];
  for await (const line of exportedLines({ id: 'ses_1', connection: { response } } as unknown as Session)) {
    lines.push(line);
  }
  return lines;
}

test.each([1, 2, 7, 1_000])('ends a line only at a line feed, with pieces of %i bytes', async (size) => {
  // JSON does not escape the separators, which some readers of lines take for line breaks.
  const lines = ['{"run":"a\u2028b\u2029c\u0085"}', '', '{"variables":{"ä":"😀\u2028"}}'];
  expect(await linesOf(lines.map((line) => `${line}\n`).join(''), size)).toEqual(lines);
  expect(await linesOf(lines.join('\r\n'), size)).toEqual(lines);
});

test('without its last line, it was cut', async () => {
  await expect(linesOf('{"run":1}\n', 100)).rejects.toThrow('was cut');
});
