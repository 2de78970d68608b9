/** RUNNER_URLS and RUNNER_SECRET in an operator's notation (H8, R7). */
import { expect, test } from 'vitest';

import { parseRunnerUrls, parseSigningKeys } from '../../../src/executors/runner/list.ts';

test.each([
  [undefined, []],
  ['', []],
  ['http://127.0.0.1:8790/', [{ url: 'http://127.0.0.1:8790', labels: [] }]],
  [
    'https://a.example#gpu,docker,https://b.example/base/ https://c.example#x',
    [
      { url: 'https://a.example', labels: ['gpu', 'docker'] },
      { url: 'https://b.example/base', labels: [] },
      { url: 'https://c.example', labels: ['x'] },
    ],
  ],
])('[R7] the runner list %s is parsed', (text, runners) => {
  expect(parseRunnerUrls(text)).toEqual(runners);
});

test.each(['ftp://a.example', 'gpu', 'a.example:8790', 'https://a.example#a b#c', 'https://a.example#<x>'])(
  '[H8] the list %s is refused with the reason',
  (text) => {
    expect(() => parseRunnerUrls(text)).toThrow(/^RUNNER_URLS: "/);
  },
);

const A = 'a'.repeat(40);
const B = 'b'.repeat(40);
test.each([
  [undefined, []],
  [A, [{ id: null, secret: A }]],
  [`${A}==`, [{ id: null, secret: `${A}==` }]],
  [
    'a secret, with spaces and commas, for people',
    [{ id: null, secret: 'a secret, with spaces and commas, for people' }],
  ],
  [
    `2026-12=${A}, old=${B}`,
    [
      { id: '2026-12', secret: A },
      { id: 'old', secret: B },
    ],
  ],
  [
    `2026-12=${A},${B}`,
    [
      { id: '2026-12', secret: A },
      { id: null, secret: B },
    ],
  ],
])('[R7] the key list %s is parsed', (text, keys) => {
  expect(parseSigningKeys(text)).toEqual(keys);
});
