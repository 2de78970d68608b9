/** Keywords of JSON Schema about arrays and their items. */
import type { Json } from '../domain/json.ts';
import { canonicalOf } from './json-values.ts';
import { below } from './schema-run.ts';
import type { Applied, SchemaRun, Step } from './schema-run.ts';

export function checkArray(run: SchemaRun, applied: Applied, value: readonly Json[]): boolean {
  const { schema, seen } = applied;
  const { minItems, maxItems, uniqueItems, unevaluatedItems } = schema;
  let valid = true;
  if (typeof maxItems === 'number' && value.length > maxItems) {
    valid = run.fail(applied, 'maxItems', `Array has too many items (${value.length} > ${maxItems}).`);
  }
  if (typeof minItems === 'number' && value.length < minItems) {
    valid = run.fail(applied, 'minItems', `Array has too few items (${value.length} < ${minItems}).`);
  }
  const item = (index: number, own: Json, keywords: readonly Step[], error: string): void => {
    seen?.items.add(index);
    const start = run.errors.length;
    const place = below(applied.place, keywords, [index]);
    if (run.apply(own, value[index] ?? null, place, run.fresh(applied))) return;
    valid = run.fail(applied, String(keywords[0]), error, start);
  };
  let next = 0;
  for (const keyword of ['prefixItems', 'items'] as const) {
    const own = schema[keyword];
    if (!Array.isArray(own)) continue;
    for (; next < Math.min(own.length, value.length); next += 1) {
      item(next, own[next] ?? true, [keyword, next], 'Items did not match schema.');
    }
  }
  const rest = Array.isArray(schema['items']) ? 'additionalItems' : 'items';
  const others = schema[rest];
  if (others !== undefined) {
    for (; next < value.length; next += 1) item(next, others, [rest], 'Items did not match schema.');
  }
  valid = contains(run, applied, value) && valid;
  if (unevaluatedItems !== undefined) {
    for (; next < value.length; next += 1) {
      if (seen?.items.has(next) === true) continue;
      item(next, unevaluatedItems, ['unevaluatedItems'], 'Items did not match unevaluated items schema.');
    }
  }
  return (uniqueItems !== true || unique(run, applied, value)) && valid;
}

function contains(run: SchemaRun, applied: Applied, value: readonly Json[]): boolean {
  const { contains, minContains, maxContains } = applied.schema;
  if (contains === undefined) return true;
  const start = run.errors.length;
  let found = 0;
  for (const [index, item] of value.entries()) {
    if (!run.apply(contains, item, below(applied.place, ['contains'], [index]), run.fresh(applied))) continue;
    found += 1;
    applied.seen?.items.add(index);
  }
  run.errors.length = start;
  const least = typeof minContains === 'number' ? minContains : 1;
  if (found < least) {
    const keyword = minContains === undefined ? 'contains' : 'minContains';
    return run.fail(applied, keyword, `Array must contain at least ${least} items matching schema, found ${found}.`);
  }
  if (typeof maxContains !== 'number' || found <= maxContains) return true;
  return run.fail(
    applied,
    'maxContains',
    `Array may contain at most ${maxContains} items matching schema, found ${found}.`,
  );
}

function unique(run: SchemaRun, applied: Applied, value: readonly Json[]): boolean {
  const places = new Map<string, number>();
  for (const [index, item] of value.entries()) {
    const canonical = canonicalOf(item, run.meter);
    const earlier = places.get(canonical);
    if (earlier !== undefined) {
      return run.fail(applied, 'uniqueItems', `Duplicate items at indexes ${earlier} and ${index}.`);
    }
    places.set(canonical, index);
  }
  return true;
}
