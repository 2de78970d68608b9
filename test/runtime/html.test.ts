/** Readers on the platform's HTMLRewriter: web pages, and the protocol for comparison with the parser (M3, X2, P1). */
import { describe, expect, test } from 'vitest';
import * as fc from 'fast-check';
import { limits } from '../../src/domain/limits.ts';
import { readHtml } from '../../src/durable/html-reader.ts';
import type { ProtocolEvent } from '../../src/domain/protocol-event.ts';
import { cutAtRandom, feedChunks, parse } from '../protocol/parser/parser-kit.ts';
import { documents } from '../protocol/documents.ts';
import { escapeAllButTags, outlineOf, rewriterOutline } from './html-rewriter.ts';

const read = (html: string, selectors: string[] = [], maxChars = 50_000) =>
  readHtml(new Response(html, { headers: { 'content-type': 'text/html; charset=utf-8' } }), { selectors, maxChars });

test('[M3] a page is read as its visible text', async () => {
  const html = `<head><title>A &amp; B</title><style>p {}</style></head><body><h1>One</h1><p>two
    three<br>four</p><script>no()</script><a href="/x">Link <b>text</b></a><ul><li>é</li><li>b</li></ul>`;
  expect(await read(html, ['li', 'h1'])).toEqual({
    title: 'A & B',
    text: 'One\ntwo\nthree\nfour\nLink text\né\nb',
    matches: { li: ['é', 'b'], h1: ['One'] },
    links: [{ href: '/x', text: 'Link text' }],
    truncated: false,
  });
});

test('[M3] a page in another character set and a page without a body are read', async () => {
  const latin = new Response(new Uint8Array([0x3c, 0x70, 0x3e, 0xe9]), {
    headers: { 'content-type': 'text/html; charset=iso-8859-1' },
  });
  expect((await readHtml(latin, { selectors: [], maxChars: 10 })).text).toBe('é');
  expect((await readHtml(new Response(null), { selectors: [], maxChars: 10 })).text).toBe('');
});

test.each([
  ['breaks', '<br>'.repeat(200_000), []],
  ['paragraphs', '<p>hello world</p>'.repeat(60_000), []],
  ['texts', '< '.repeat(200_000), ['*']],
  ['matches', '<b>x</b>'.repeat(60_000), ['b', 'b:not(.a)', 'b:not(.b)']],
])('[X2] a page with too many %s is read in short slices, and only in part', async (_, html, selectors) => {
  let turns = 0;
  const others = setInterval(() => {
    turns += 1;
  }, 0);
  const page = await read(html, selectors, limits.fetchBytes);
  clearInterval(others);
  expect(page.truncated).toBe(true);
  expect(turns).toBeGreaterThan(limits.htmlEvents / limits.htmlEventsPerTurn / 4);
  for (const found of Object.values(page.matches)) expect(found.length).toBeLessThanOrEqual(500);
});

test('[X2] the total size of the matches of one request is bounded', async () => {
  const selectors = Array.from({ length: limits.htmlSelectors }, (_, index) => `b:not(.a${index})`);
  const page = await read(`<b>${'x'.repeat(1_000_000)}</b>`, selectors, limits.fetchBytes);
  expect(page.truncated).toBe(true);
  const chars = Object.values(page.matches).flat().join('').length;
  expect(chars).toBeLessThanOrEqual(limits.htmlMatchedChars);
});

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
