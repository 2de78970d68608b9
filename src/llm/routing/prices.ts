/**
 * Model prices (S12): list prices in US dollars per million tokens, as published for plain, uncached text at the shortest
 * context. Estimates only: discounts, batches, long contexts and gateways differ, and prices change. A manifest's
 * `cognitive_engine.prices` takes precedence.
 */
import type { ModelPrice } from '../../domain/manifests/model.ts';
import type { Usage } from '../../domain/ports/model.ts';

type Row = readonly [input: number, cachedInput: number, output: number];

/** Compared with public price tables of mid 2026. */
const PRICES: Readonly<Record<string, Row>> = {
  demo: [0, 0, 0],

  'gpt-4o': [2.5, 1.25, 10],
  'gpt-4o-mini': [0.15, 0.075, 0.6],
  'gpt-4.1': [2, 0.5, 8],
  'gpt-4.1-mini': [0.4, 0.1, 1.6],
  'gpt-4.1-nano': [0.1, 0.025, 0.4],
  'o4-mini': [1.1, 0.275, 4.4],
  o3: [2, 0.5, 8],
  'gpt-5': [1.25, 0.125, 10],
  'gpt-5-mini': [0.25, 0.025, 2],
  'gpt-5-nano': [0.05, 0.005, 0.4],
  'gpt-5.1': [1.25, 0.125, 10],
  'gpt-5.2': [1.75, 0.175, 14],
  'gpt-5.4': [2.5, 0.25, 15],
  'gpt-5.4-mini': [0.75, 0.075, 4.5],
  'gpt-5.4-nano': [0.2, 0.02, 1.25],
  'gpt-5.5': [5, 0.5, 30],

  'claude-haiku-4-5': [1, 0.1, 5],
  'claude-sonnet-4-5': [3, 0.3, 15],
  'claude-sonnet-4-6': [3, 0.3, 15],
  'claude-opus-4-5': [5, 0.5, 25],
  'claude-opus-4-6': [5, 0.5, 25],

  'gemini-2.5-flash-lite': [0.1, 0.01, 0.4],
  'gemini-2.5-flash': [0.3, 0.03, 2.5],
  'gemini-2.5-pro': [1.25, 0.125, 10],

  'deepseek-v4-flash': [0.14, 0.0028, 0.28],
  'deepseek-v4-pro': [1.74, 0.0145, 3.48],

  'llama-3.3-70b-versatile': [0.59, 0.59, 0.79],
  'llama-3.1-8b-instant': [0.05, 0.05, 0.08],
};

/** `models/gpt-4o-2024-08-06`, `openai/gpt-4o` -> `gpt-4o`: gateways prefix names, versions end in a date. */
function familyOf(model: string): string {
  const name = model.slice(model.lastIndexOf('/') + 1).toLowerCase();
  return name.replace(/-(?:latest|\d{8}|\d{4}-\d{2}-\d{2})$/, '');
}

/**
 * The cost of one model call.
 *
 * @param own prices in the agent's manifest, by requested model name
 * @returns US dollars, or null if the model or its price is unknown
 */
export function costOf(usage: Usage, own: Readonly<Record<string, ModelPrice>>): number | null {
  const price = usage.model === undefined ? null : priceOf(usage.model, own);
  if (price === null) return null;
  const cached = Math.min(usage.cachedTokens, usage.promptTokens);
  const dollars =
    (usage.promptTokens - cached) * price.input + cached * price.cachedInput + usage.completionTokens * price.output;
  return dollars / 1_000_000;
}

function priceOf(model: string, own: Readonly<Record<string, ModelPrice>>): ModelPrice | null {
  for (const name of [model, familyOf(model)]) {
    const price = Object.hasOwn(own, name) ? own[name] : undefined;
    if (price !== undefined) return price;
  }
  const family = familyOf(model);
  const row = Object.hasOwn(PRICES, family) ? PRICES[family] : undefined;
  if (row === undefined) return null;
  const [input, cachedInput, output] = row;
  return { input, cachedInput, output };
}
