/** Realistic model outputs, `NAME.txt`, and their events, `NAME.events`: one line per event, as written by `lines`. */
import { readdirSync, readFileSync } from 'node:fs';
import { join as joinPath } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { ParserOptions } from '../../../src/protocol/parser/parser.ts';
import { characters, cutAtRandom, feedChunks, join, lines, parse } from './parser-kit.ts';

const FOLDER = joinPath(import.meta.dirname, 'corpus');
const RANDOM_CUTS = 50;

interface Entry {
  readonly name: string;
  /** `P7 P8: what the example shows`. */
  readonly about: string;
  readonly text: string;
  readonly options: Partial<ParserOptions>;
  readonly events: readonly string[];
}

function read(name: string): Entry {
  const text = readFileSync(joinPath(FOLDER, `${name}.txt`), 'utf8');
  const expected = readFileSync(joinPath(FOLDER, `${name}.events`), 'utf8').split('\n');
  const head = expected.filter((line) => line.startsWith('# ')).map((line) => line.slice(2));
  const options = head.find((line) => line.startsWith('options '))?.slice('options '.length) ?? '{}';
  const events = expected.filter((line) => line !== '' && !line.startsWith('# '));
  return { name, about: head[0] ?? '', text, options: JSON.parse(options) as Partial<ParserOptions>, events };
}

const entries = readdirSync(FOLDER, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.txt'))
  .map((file) => read(file.slice(0, -'.txt'.length)));

describe('corpus of model outputs', () => {
  test('has examples of each kind', () => expect(entries.length).toBeGreaterThan(120));

  test.each(entries.map((entry) => [`${entry.name} [${entry.about.replace(/:.*/, '')}]`, entry] as const))(
    '%s',
    (_title, { text, options, events }) => {
      const whole = parse(text, options);
      expect(lines(whole)).toEqual(events);
      expect(join(feedChunks(characters(text), options)), '[P3] one character at a time').toEqual(whole);
      for (let seed = 0; seed < RANDOM_CUTS; seed += 1) {
        const chunks = cutAtRandom(text, seed, 4 + seed);
        expect(join(feedChunks(chunks, options)), `[P3] random cuts, seed ${seed}`).toEqual(whole);
      }
    },
  );
});
