/** The dashboard for Grafana shows what is exported, and everything of it (O2). */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import { describe, expect, test } from 'vitest';
import { z } from 'zod';

import { PACKAGE_ROOT } from '../../cli/project/folders.ts';
import { type MetricInfo, METRICS as RUNNER_METRICS } from '../../container-runner/metric-table.ts';
import { METRICS as WORKER_METRICS } from '../../src/telemetry/metrics.ts';
import { prometheusMetric, prometheusName } from '../support/prometheus-names.ts';
import { readPromql, type Selector } from '../support/promql.ts';

const FILE = join(PACKAGE_ROOT, 'docs/observability/grafana-dashboard.json');
/** Added to all series by Prometheus when it scrapes a runner. */
const TARGET_LABELS = ['instance', 'job'];

const source = z.strictObject({ type: z.literal('prometheus'), uid: z.literal('${datasource}') });
const position = z.strictObject({ h: z.int().min(1), w: z.int().min(1), x: z.int().min(0), y: z.int().min(0) });
/** A unit of Grafana that the dashboard uses, or a text behind the number. */
const unit = z.union([
  z.enum(['s', 'short', 'bytes', 'percentunit', 'currencyUSD', 'reqps']),
  z.string().regex(/^suffix:[a-z]+\/[sh]$/),
]);
const row = z.object({ id: z.int(), type: z.literal('row'), title: z.string().min(1), gridPos: position });
const chart = z.object({
  id: z.int(),
  type: z.enum(['timeseries', 'stat']),
  title: z.string().min(1),
  description: z.string().regex(/^[A-Z].{15,}\.$/),
  datasource: source,
  gridPos: position,
  fieldConfig: z.object({ defaults: z.object({ unit }) }),
  targets: z
    .array(
      z.object({ refId: z.string(), datasource: source, expr: z.string().min(1), legendFormat: z.string().min(1) }),
    )
    .min(1),
});
const variable = z.discriminatedUnion('type', [
  z.object({ name: z.literal('datasource'), type: z.literal('datasource'), query: z.literal('prometheus') }),
  z.object({
    name: z.string(),
    type: z.literal('query'),
    datasource: source,
    query: z.object({ query: z.string() }),
    definition: z.string(),
    allValue: z.literal('.*'),
  }),
]);
const dashboard = z
  .object({
    title: z.string(),
    uid: z.string(),
    schemaVersion: z.literal(42),
    templating: z.object({ list: z.array(variable) }),
    panels: z.array(z.discriminatedUnion('type', [row, chart])),
  })
  .parse(JSON.parse(readFileSync(FILE, 'utf8')));

interface Exported {
  readonly type: MetricInfo['type'];
  readonly labels: readonly string[];
}

/** By the name in Prometheus, without the suffixes of histograms. */
const exported = new Map<string, Exported>([
  ...Object.entries<MetricInfo>(RUNNER_METRICS).map(
    ([name, { type, labels }]) => [name, { type, labels: [...labels, ...TARGET_LABELS] }] as const,
  ),
  ...Object.entries(WORKER_METRICS).map(([name, { unit: ofMetric, bounds, attributes }]) => {
    const type = bounds === null ? 'counter' : 'histogram';
    const labels = attributes.map(prometheusName);
    return [prometheusMetric(name, ofMetric, type === 'counter'), { type, labels }] as const;
  }),
]);

/** The metric of a sample, and the labels that it has. */
function metricOf(sample: string): ({ readonly name: string } & Exported) | null {
  const known = exported.get(sample);
  if (known !== undefined) return known.type === 'histogram' ? null : { name: sample, ...known };
  const [, name = '', suffix] = /^(.*)_(bucket|count|sum)$/.exec(sample) ?? [];
  const histogram = exported.get(name);
  if (histogram?.type !== 'histogram') return null;
  return { name, ...histogram, labels: suffix === 'bucket' ? [...histogram.labels, 'le'] : histogram.labels };
}

const charts = dashboard.panels.filter((panel) => panel.type !== 'row');
const queries = charts.flatMap(({ title, targets }) =>
  targets.map(({ expr, legendFormat }) => ({ title, expr, legendFormat, read: readPromql(expr) })),
);
const VARIABLES = dashboard.templating.list.flatMap((each) => (each.type === 'query' ? [each] : []));

test('[O2] has rows for the overview, latency, models, actions and runners', () => {
  const rows = dashboard.panels.filter(({ type }) => type === 'row').map(({ title }) => title);
  expect(rows).toEqual(['Overview', 'Latency', 'Model', 'Actions', 'Runner']);
  expect(dashboard.panels[0]?.type).toBe('row');
  expect(charts.length).toBeGreaterThan(30);
});

test('[O2] no two panels have the same id or title', () => {
  for (const values of [dashboard.panels.map(({ id }) => id), charts.map(({ title }) => title)]) {
    expect(new Set<unknown>(values).size).toBe(values.length);
  }
});

describe.each(queries)('[O2] $title: $expr', ({ legendFormat, read: { selectors, scopes } }) => {
  test('uses metrics and labels that are exported', () => {
    expect(selectors.length).toBeGreaterThan(0);
    for (const { metric, labels } of selectors) {
      const known = metricOf(metric);
      expect(known, metric).not.toBeNull();
      expect(labels.filter((label) => !known?.labels.includes(label))).toEqual([]);
    }
    for (const { by, selectors: inner } of scopes) {
      for (const { metric } of by === null ? [] : inner) {
        expect(metricOf(metric)?.labels, metric).toEqual(expect.arrayContaining([...(by ?? [])]));
      }
    }
  });

  test('is a rate of everything that only grows, and of nothing else', () => {
    const grows = ({ metric }: Selector): boolean => metricOf(metric)?.type !== 'gauge';
    const rated = scopes
      .filter(({ name }) => name === 'rate' || name === 'increase')
      .flatMap((scope) => scope.selectors);
    expect(rated).toEqual(selectors.filter(grows));
    expect(rated.filter((selector) => !grows(selector))).toEqual([]);
  });

  test('has quantiles of buckets only, which keep their bounds', () => {
    const buckets = selectors.filter(({ metric }) => metric.endsWith('_bucket'));
    const quantiles = scopes.filter(({ name }) => name === 'histogram_quantile').flatMap((scope) => scope.selectors);
    expect(quantiles).toEqual(buckets);
    const sums = scopes.filter(
      (scope) => scope.name === 'sum' && scope.selectors.some(({ metric }) => metric.endsWith('_bucket')),
    );
    expect(sums.map(({ by }) => by?.includes('le'))).toEqual(sums.map(() => true));
  });

  test('has the labels of its legend', () => {
    const outer = scopes.find((scope) => scope.by !== null || scope.name === 'sum');
    const kept = outer?.by ?? [];
    for (const [, label = ''] of legendFormat.matchAll(/\{\{(\w+)\}\}/g)) expect(kept).toContain(label);
    // otherwise several lines of the panel have the same name
    const shown = [...legendFormat.matchAll(/\{\{(\w+)\}\}/g)].map(([, label]) => label);
    expect(kept.filter((label) => label !== 'le').toSorted()).toEqual(shown.toSorted());
  });

  test('is limited to what the variables select', () => {
    for (const { metric, labels } of selectors) {
      const known = metricOf(metric);
      expect(labels, metric).toContain(known?.labels.includes('instance') === true ? 'instance' : 'gen_ai_agent_name');
    }
  });
});

test('[O2] every exported metric is on the dashboard', () => {
  const shown = new Set(queries.flatMap(({ read }) => read.selectors.map(({ metric }) => metricOf(metric)?.name)));
  expect([...exported.keys()].filter((name) => !shown.has(name))).toEqual([]);
  expect(exported.size).toBeGreaterThan(30);
});

test.each(VARIABLES)(
  '[O2] the values of the variable $name are those of an exported label',
  ({ query, definition }) => {
    const [, metric = '', label = ''] = /^label_values\((\w+), (\w+)\)$/.exec(query.query) ?? [];
    expect(definition).toBe(query.query);
    expect(metricOf(metric)?.labels, metric).toContain(label);
  },
);

test('[O2] every variable is used, and every one that is used is defined', () => {
  const used = new Set(
    queries.flatMap(({ expr }) => [...expr.matchAll(/\$(?!__)(\w+)/g)].map(([, name]) => name ?? '')),
  );
  expect(used.size).toBeGreaterThan(1);
  expect([...used].toSorted()).toEqual(VARIABLES.map(({ name }) => name).toSorted());
});

describe('the reader of PromQL', () => {
  test('[O2] finds selectors, and what is done with them', () => {
    expect(readPromql('3600 * sum by (le, b) (rate(m_bucket{a="$x", c=~"y"}[$__rate_interval])) / sum(g)')).toEqual({
      selectors: [
        { metric: 'm_bucket', labels: ['a', 'c'] },
        { metric: 'g', labels: [] },
      ],
      scopes: [
        { name: 'sum', by: ['le', 'b'], selectors: [{ metric: 'm_bucket', labels: ['a', 'c'] }] },
        { name: 'rate', by: null, selectors: [{ metric: 'm_bucket', labels: ['a', 'c'] }] },
        { name: 'sum', by: null, selectors: [{ metric: 'g', labels: [] }] },
      ],
    });
  });
});
