/** Events are read from text that is cut anywhere (K3). */
import { expect, test } from 'vitest';
import * as fc from 'fast-check';
import { sseReader } from '../../src/client/sse-reader.ts';

const EVENTS = ['{"a": 1}', 'two\nlines', '', 'Grüße 🎈', ' spaced'];
const FRAMES = [
  'id: 1\nevent: x\ndata: {"a": 1}\n\n',
  ': heartbeat\n\n',
  'data: two\ndata: lines\n\n',
  'data\n\n',
  'retry: 5\n\n',
  'data:Grüße 🎈\n\n',
  'data:  spaced\n\n',
];

const read = (pieces: readonly string[]): string[] => {
  const reader = sseReader();
  return pieces.flatMap((piece) => reader(piece));
};

test.each([
  ['LF', '\n'],
  ['CRLF', '\r\n'],
  ['CR', '\r'],
])('[K3] a stream with %s line ends, cut at every character, gives the same events', (_name, end) => {
  const text = FRAMES.join('').replaceAll('\n', end);
  expect(read([text])).toEqual(EVENTS);
  expect(read([...text])).toEqual(EVENTS);
  for (let at = 1; at < text.length; at += 1) expect(read([text.slice(0, at), text.slice(at)])).toEqual(EVENTS);
});

test('[K3] so does one with mixed line ends, cut at random', () => {
  fc.assert(
    fc.property(fc.array(fc.constantFrom('\n', '\r\n', '\r')), fc.array(fc.nat(200)), (ends, cuts) => {
      let line = 0;
      const text = FRAMES.join('').replaceAll('\n', () => ends[line++] ?? '\n');
      const places = [0, ...cuts.filter((at) => at < text.length).sort((a, b) => a - b), text.length];
      // Mixed CR and LF at a line's end would be one end: the lines are compared with the uncut reading.
      expect(read(places.slice(1).map((at, index) => text.slice(places[index], at)))).toEqual(read([text]));
    }),
  );
});

test('[K3] an event that the end of the stream cuts off is dropped', () => {
  expect(read(['data: 1\n\ndata: 2\n'])).toEqual(['1']);
});
