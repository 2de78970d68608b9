/** The text that `cortex run` writes: every character of the answer once, whatever pieces arrive (K4). */
import { expect, test } from 'vitest';
import { AnswerText } from '../../cli/terminal/answer-text.ts';
import type { SessionEvent } from '../../src/domain/event.ts';

function shown(...events: readonly object[]): { text: string; told: string[] } {
  let text = '';
  const told: string[] = [];
  const answer = new AnswerText(
    (written) => (text += written),
    (line) => void told.push(line),
  );
  for (const event of events) answer.take(event as SessionEvent);
  return { text, told };
}
const piece = (type: string, segment: number, offset: number, delta: string): object => ({
  type,
  data: { segment, offset, delta },
});
const end = (type: string, segment: number, content: string): object => ({
  type: `${type}_completed`,
  data: { segment, content },
});

test('[K4] pieces, and the end of the block', () => {
  expect(
    shown(piece('response', 1, 0, 'one '), piece('response', 1, 4, 'two'), end('response', 1, 'one two')).text,
  ).toBe('one two\n');
});

test('[K4] a block without pieces, and a piece that overlaps', () => {
  expect(shown(end('response', 1, 'one')).text).toBe('one\n');
  expect(
    shown(piece('response', 1, 0, 'one'), piece('response', 1, 0, 'one two'), end('response', 1, 'one two!')).text,
  ).toBe('one two!\n');
});

test('[K4] blocks are separated; thoughts and blank text are left out', () => {
  expect(
    shown(
      piece('thought', 1, 0, 'hm'),
      end('thought', 1, 'hm'),
      end('text', 2, '\n '),
      end('text', 3, 'bare'),
      end('response', 4, 'answer'),
    ).text,
  ).toBe('bare\nanswer\n');
});

test('[K4] control characters do not reach the terminal, and failures are told', () => {
  const { text, told } = shown(piece('response', 1, 0, 'a\u001B[2Kb'), {
    type: 'action_failed',
    action_id: 'x',
    data: { error: { code: 'timeout', message: 'late' } },
  });
  expect(text).toBe('a\\u{1b}[2Kb\n');
  expect(told).toEqual(['x failed: timeout: late']);
});
