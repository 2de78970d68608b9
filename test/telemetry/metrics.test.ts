import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { withMetricTable } from '../../scripts/event-tables.ts';
import { aggregate, METRICS, valuesOf } from '../../src/telemetry/metrics.ts';
import type { MetricName } from '../../src/telemetry/metrics.ts';
import type { Observation, ObservedUsage } from '../../src/telemetry/observe.ts';

const at = { startMs: 1_000, endMs: 1_500, seq: 9 };
const action = { id: 'a', name: 'echo', type: 'tool' } as const;
const usage: ObservedUsage = {
  inputTokens: 10,
  outputTokens: 2,
  cachedTokens: 4,
  cost: 0.25,
  model: 'm',
  isEstimated: false,
};
const attempt = {
  ...at,
  kind: 'attempt',
  action,
  iteration: 1,
  attempt: 1,
  error: 'timeout',
  willRetry: true,
  dependsOn: [],
  retryOf: null,
  isIndependent: true,
  queuedMs: 3,
  usage: null,
} as const;

const OBSERVED: readonly Observation[] = [
  { ...at, kind: 'generation', iteration: 1, firstMs: 1_100, usage, error: null },
  { ...at, kind: 'generation', iteration: 2, firstMs: null, usage: null, error: 'interrupted' },
  { ...at, kind: 'call', usage },
  attempt,
  { ...attempt, attempt: 0, error: null, willRetry: false, queuedMs: null },
  {
    ...at,
    kind: 'action',
    iteration: 1,
    action,
    status: 'failed',
    error: 'timeout',
    isReused: false,
    hasStarted: true,
  },
  { ...at, kind: 'approval', approvalId: 'x', action, decision: 'denied', isQuestion: false },
  { ...at, kind: 'run', status: 'failed', error: 'internal', iterations: 2, version: '1', usage },
];

const values = OBSERVED.flatMap((observed) => valuesOf(observed, { agent: 'desk', kind: 'agent' }));

describe('[O2] metrics', () => {
  test('every metric of the table is measured, with the attributes that it lists', () => {
    const seen = new Map<MetricName, Set<string>>();
    for (const { metric, attributes } of values) {
      seen.set(metric, new Set([...(seen.get(metric) ?? []), ...Object.keys(attributes)]));
    }
    const table = Object.entries(METRICS).map(([name, { attributes }]) => [name, [...attributes].toSorted()]);
    expect([...seen].map(([name, attributes]) => [name, [...attributes].toSorted()]).toSorted()).toEqual(
      table.toSorted(),
    );
  });

  test('values with equal attributes are one point, in the right buckets', () => {
    const [metric] = aggregate(
      [0.004, 0.005, 7_200].map(
        (value) => ({ metric: 'cortex.action.duration', value, attributes: { a: 1 } }) as const,
      ),
      { startMs: 1, endMs: 2 },
    );
    const { bounds } = METRICS['cortex.action.duration'];
    const [point] = metric?.points ?? [];
    expect(metric?.points).toHaveLength(1);
    expect(point).toMatchObject({ count: 3, startMs: 1, endMs: 2, histogram: { min: 0.004, max: 7_200 } });
    // A bound belongs to the bucket below it, and the last bucket has no bound.
    expect(point?.histogram?.buckets[bounds.indexOf(0.005)]).toBe(2);
    expect(point?.histogram?.buckets.at(-1)).toBe(1);
    expect(point?.histogram?.buckets).toHaveLength(bounds.length + 1);
  });

  test('no attribute identifies a session, a run or an action: the number of series is bounded', () => {
    const names = Object.values(METRICS).flatMap(({ attributes }) => attributes as readonly string[]);
    expect(names.filter((name) => /\.id$|conversation|namespace/.test(name))).toEqual([]);
  });
});

test('[O2] docs/observability.md lists the metrics (npm run docs updates it)', () => {
  const page = readFileSync(new URL('../../docs/observability.md', import.meta.url), 'utf8');
  expect(page).toBe(withMetricTable(page));
});
