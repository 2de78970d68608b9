/** The seeded history of a session in the simulation, and how its messages are recognised in a request to the model. */
import type { SeededMessage } from '../../src/domain/seeded.ts';
import type { SeededScript } from './history.ts';
import { words } from './script.ts';

/** How a message names itself. */
const seedMark = (index: number): string => `#s${index}#`;

/** The messages; a call is one with its result. */
export function seededOf(scripts: readonly SeededScript[]): SeededMessage[] {
  return scripts.flatMap(({ type, words: count }, index): SeededMessage[] => {
    const content = `${seedMark(index)} ${words(count)}`;
    if (type !== 'call') return [{ role: type, content }];
    const id = `call_${index}`;
    return [
      {
        role: 'assistant',
        content: null,
        tool_calls: [{ id, type: 'function', function: { name: 'pure', arguments: '{}' } }],
      },
      { role: 'tool', tool_call_id: id, content },
    ];
  });
}

/** The messages of the history and of clients that a request shows, in order: `s0`, `s1`, `m0`. */
export function marksIn(text: string): string[] {
  return [...text.matchAll(/#([sm]\d+)#/g)].map(([, mark = '']) => mark);
}
