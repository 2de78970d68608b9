import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { ASSUMPTIONS, LIMITS, scaleOf, useOf } from '../../scripts/scale/model.ts';
import { scaleInputs, withScaleTables } from '../../scripts/scale/tables.ts';
import { limits } from '../../src/domain/limits.ts';

const read = (name: string): string => readFileSync(new URL(`../../docs/${name}.md`, import.meta.url), 'utf8');
const run = { rowsWritten: 10, alarms: 1, rowsRead: 20, requests: 3, secondsAwake: 5 };
const inputs = { chat: run, actions: run, emptySessionBytes: 100_000 };

test('[Z3] docs/scale.md has the tables of the counted runs (npm run docs updates it)', () => {
  const page = read('scale');
  expect(page).toBe(withScaleTables(page, read('benchmarks')));
  for (const name of Object.keys(ASSUMPTIONS)) expect(page.split(`\`${name}\``).length, name).toBeGreaterThan(2);
  expect(LIMITS.shards).toBe(limits.directoryShards);
});

test('[Z3] a benchmark without the counts of a run is an error, not a table without numbers', () => {
  expect(() => scaleInputs('| run | rows written |\n| a chat answer of 200 tokens | many |')).toThrow(
    'docs/benchmarks.md has no "rows written" of "a chat answer of 200 tokens"',
  );
});

test('[Z3] amounts grow with the sessions, and costs are what exceeds the included amounts', () => {
  const [one, ten] = [scaleOf(1e6, inputs), scaleOf(10e6, inputs)];
  expect(one.messagesPerDay).toBe(1e6 * 0.1 * 5);
  // Of the run, its alarm, two writes to the directory and one to the index.
  expect(one.used.rowsWritten).toBe(one.messagesPerDay * 30 * (10 + 1 + 2 * (5 + 3) + 4));
  expect(ten.used.rowsWritten).toBeCloseTo(10 * one.used.rowsWritten, 0);
  expect(one.dollars.rowsWritten).toBeCloseTo((one.used.rowsWritten - 50e6) / 1e6, 6);
  expect(scaleOf(100, inputs)).toMatchObject({ total: 5, dollars: { rowsWritten: 0, gbSeconds: 0 } });
});

test('[Z3] the first limit is the one with the highest load relative to its capacity', () => {
  const scale = scaleOf(100e6, inputs);
  expect(scale.first.name).toBe('runners of one deployment');
  expect(Math.max(...scale.hotSpots.map(useOf))).toBe(useOf(scale.first));
});
