/** Compares the parser with a second reader, built on the platform's HTMLRewriter. */
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { ProtocolEvent } from '../../src/domain/protocol-event.ts';
import { cutAtRandom, feedChunks, parse } from '../protocol/parser/parser-kit.ts';
import { documents } from '../protocol/documents.ts';
import { escapeAllButTags, outlineOf, rewriterOutline } from './html-rewriter.ts';

declare global {
  interface ImportMeta {
    glob(pattern: string, options: object): Record<string, string>;
  }
}

const CORPUS = import.meta.glob('../protocol/parser/corpus/**/*.txt', {
  query: '?raw',
  import: 'default',
  eager: true,
});
const RUNS = 100;

/** Whether a text needs no repair and contains nothing that HTML does not know, such as fences and drafts. */
function isComparable(text: string, events: readonly ProtocolEvent[]): boolean {
  if (/```|~~~|<think|\0|\uFEFF/i.test(text) || !text.isWellFormed()) return false;
  return events.every((event) => event.type !== 'warning' && event.type !== 'action_rejected');
}

async function expectAgreement(text: string, seed: number): Promise<void> {
  const html = escapeAllButTags(text);
  expect(html).not.toBeNull();
  const theirs = await rewriterOutline(html ?? '', 1 + (seed % 97));
  expect(outlineOf(feedChunks(cutAtRandom(text, seed)))).toEqual(theirs);
}

describe('the parser and HTMLRewriter after an escaping filter', () => {
  /** Seeds on which the two readers differed once, or nearly did. */
  const SEEDS = [1, 20_261_121, -1_640_531_527, -1_432_066_225, 568_631_483];
  test.each(SEEDS)('[P1] [P3] [P9] give the same outline for random documents, seed %s', async (seed) => {
    const property = fc.asyncProperty(documents, fc.nat(1_000), async ({ text }, cuts) => {
      await expectAgreement(text, cuts);
    });
    await fc.assert(property, { numRuns: RUNS, seed });
  });

  test.each(SEEDS)(
    '[P1] [P5] [P7] give the same outline for damaged documents that are still valid, seed %s',
    async (seed) => {
      const damage = fc.record({
        at: fc.nat(2_000),
        remove: fc.nat(3),
        insert: fc.constantFrom(
          '',
          'x',
          ' ',
          '\n',
          '<',
          '>',
          '<b>',
          '</',
          '&lt;',
          'é',
          '<thoughts>',
          '</actions>',
          '$$',
        ),
      });
      let compared = 0;
      const property = fc.asyncProperty(
        documents,
        fc.array(damage, { maxLength: 3 }),
        fc.nat(1_000),
        async (made, all, cuts) => {
          let { text } = made;
          for (const { at, remove, insert } of all) {
            const place = at % (text.length + 1);
            text = text.slice(0, place) + insert + text.slice(place + remove);
          }
          if (!isComparable(text, parse(text)) || escapeAllButTags(text) === null) return;
          compared += 1;
          await expectAgreement(text, cuts);
        },
      );
      await fc.assert(property, { numRuns: RUNS * 2, seed });
      expect(compared).toBeGreaterThan(RUNS / 4);
    },
  );

  const comparable = Object.entries(CORPUS).filter(
    ([, text]) => isComparable(text, parse(text)) && escapeAllButTags(text) !== null,
  );
  test('[P1] most of the corpus can be compared', () => {
    expect(comparable.length).toBeGreaterThan(40);
  });
  test.each(comparable.map(([file, text]) => [file.replace(/.*corpus\//, ''), text] as const))(
    '[P1] [P5] [P6] give the same outline for %s',
    async (_file, text) => {
      for (const seed of [0, 7, 96]) await expectAgreement(text, seed);
    },
  );
});
