import { expect, test } from 'vitest';
import { costOf } from '../../../src/llm/routing/prices.ts';

const usage = (model: string | undefined, tokens: { prompt?: number; cached?: number; completion?: number } = {}) => ({
  promptTokens: tokens.prompt ?? 1_000_000,
  completionTokens: tokens.completion ?? 0,
  cachedTokens: tokens.cached ?? 0,
  estimated: false,
  ...(model === undefined ? {} : { model }),
});

test.each([
  ['gpt-4o', 2.5],
  ['gpt-4o-2024-08-06', 2.5],
  ['openai/gpt-4o', 2.5],
  ['claude-haiku-4-5-20251001', 1],
  ['models/gemini-2.5-pro', 1.25],
  ['GPT-5-mini', 0.25],
  ['deepseek/deepseek-v4-flash', 0.14],
  ['demo', 0],
])('[S12] a million tokens for %s cost %f', (model, dollars) => {
  expect(costOf(usage(model), {})).toBe(dollars);
});

test.each([[undefined], ['my-own-model'], ['gpt-4o-turbo'], ['constructor'], ['']])(
  '[S12] %s has no price, and none is estimated',
  (model) => {
    expect(costOf(usage(model), {})).toBeNull();
  },
);

test('[S12] prompt, cached and completion tokens have separate prices', () => {
  const own = { mine: { input: 4, cachedInput: 1, output: 10 } };
  expect(costOf(usage('mine', { prompt: 1_000, cached: 400, completion: 100 }), own)).toBeCloseTo(
    (600 * 4 + 400 * 1 + 100 * 10) / 1e6,
    12,
  );
  expect(costOf(usage('mine', { prompt: 100, cached: 400 }), own)).toBeCloseTo(100 / 1e6, 12);
});

test('[S12] the manifest’s prices override the table', () => {
  expect(costOf(usage('gpt-4o'), { 'gpt-4o': { input: 1, cachedInput: 1, output: 1 } })).toBe(1);
});
