import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { historyOf } from './arbitrary.ts';
import { storeFailure } from './failure.ts';
import { historySchema, readHistory, storedText } from './stored.ts';

const folder = mkdtempSync(join(tmpdir(), 'cortex-stored-history-'));
afterAll(() => rmSync(folder, { recursive: true }));

function written(text: string): string {
  const path = join(folder, 'history.json');
  writeFileSync(path, text);
  return path;
}

describe('a stored history', () => {
  test('every generated history fits the schema, and is read back without its usual values', () => {
    for (let seed = 1; seed <= 200; seed += 1) {
      const history = historyOf(seed);
      const stored = JSON.parse(storedText({ name: 'a', seed, history })) as { readonly history: unknown };
      expect(historySchema.parse(history)).toEqual(history);
      expect(historySchema.parse(stored.history)).toEqual(history);
    }
  });

  test('a failing history is read back as it was', () => {
    const path = storeFailure(historyOf(3), 3, 'one end');
    expect(path).toMatch(/cortex-simulation-seed-3-one-end\.json$/);
    const name = 'Every accepted action ends exactly once.';
    expect(readHistory(path)).toEqual({ name, seed: 3, history: historyOf(3) });
    rmSync(path);
  });

  test('a file of an earlier form is refused with its name and the member', () => {
    const { agent, ...rest } = historyOf(1);
    const path = written(JSON.stringify({ name: 'old', seed: 1, history: { ...rest, agent: { ...agent, feed: 1 } } }));
    expect(() => readHistory(path)).toThrow(
      /history\.json does not fit the form of histories .*\n.*\n.*history\.agent\.feed/,
    );
  });

  test('a file with invalid JSON is refused with its name', () => {
    expect(() => readHistory(written('{'))).toThrow(/history\.json is not a JSON file that can be read/);
  });
});
