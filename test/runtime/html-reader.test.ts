/** Web pages can be hostile: reading one is bounded, and the host serves other requests meanwhile. */
import { expect, test } from 'vitest';
import { limits } from '../../src/domain/limits.ts';
import { readHtml } from '../../src/durable/html-reader.ts';

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
