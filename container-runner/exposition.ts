/**
 * Metrics as text: the format of Prometheus, or OpenMetrics (O2). prom-client collects the values and can write both, but it
 * renames the counters of a registry when it writes OpenMetrics, so one registry could not serve both.
 */
import type { MetricObjectWithValues, MetricValue } from 'prom-client';

export type MetricsFormat = 'prometheus' | 'openmetrics';

export const CONTENT_TYPE: Readonly<Record<MetricsFormat, string>> = {
  prometheus: 'text/plain; version=0.0.4; charset=utf-8',
  openmetrics: 'application/openmetrics-text; version=1.0.0; charset=utf-8',
};

/** An entry of the header `Accept`. */
interface Accepted {
  readonly type: string;
  readonly params: Readonly<Record<string, string>>;
  readonly q: number;
}

/** @returns OpenMetrics if the caller prefers its version 1.0.0 to the format of Prometheus, which is the default */
export function formatOf(accepted: readonly Accepted[]): MetricsFormat {
  for (const { type, params, q } of accepted.toSorted((a, b) => b.q - a.q)) {
    if (q === 0) break;
    const name = type.toLowerCase();
    if (name === 'text/plain' || name === 'text/*' || name === '*/*') return 'prometheus';
    if (name === 'application/openmetrics-text' && (params['version'] ?? '1.0.0') === '1.0.0') return 'openmetrics';
  }
  return 'prometheus';
}

/** What prom-client collects; its types omit the exemplars. */
type Value = MetricValue<string> & {
  readonly metricName?: string;
  readonly exemplar?: {
    readonly labelSet: Readonly<Record<string, string>>;
    readonly value: number;
    /** Epoch seconds. */
    readonly timestamp: number;
  } | null;
};

export type CollectedMetric = Omit<MetricObjectWithValues<Value>, 'type' | 'aggregator'> & {
  /** In words; prom-client declares an enumeration. */
  readonly type: unknown;
};

const UNITS = ['seconds', 'bytes'] as const;

/** The whole document. */
export function expose(metrics: readonly CollectedMetric[], format: MetricsFormat): string {
  const isOpen = format === 'openmetrics';
  const lines = metrics.flatMap(({ name, help, type, values }) => {
    // in OpenMetrics, the name of a counter is that of its samples without the suffix
    const base = type === 'counter' ? name.replace(/_total$/, '') : name;
    const sample = type === 'counter' ? `${base}_total` : name;
    const family = isOpen ? base : sample;
    const unit = UNITS.find((each) => base.endsWith(`_${each}`));
    return [
      `# TYPE ${family} ${String(type)}`,
      ...(isOpen && unit !== undefined ? [`# UNIT ${family} ${unit}`] : []),
      `# HELP ${family} ${escaped(help, isOpen)}`,
      ...values.map(({ metricName = sample, labels, value, exemplar }) => {
        const line = `${metricName}${labelSet(labels, isOpen)} ${numberOf(value)}`;
        if (!isOpen || exemplar === undefined || exemplar === null) return line;
        return `${line} # ${labelSet(exemplar.labelSet, isOpen)} ${numberOf(exemplar.value)} ${exemplar.timestamp}`;
      }),
    ];
  });
  return `${[...lines, ...(isOpen ? ['# EOF'] : [])].join('\n')}\n`;
}

function labelSet(labels: Readonly<Record<string, string | number | undefined>>, isOpen: boolean): string {
  const written = Object.entries(labels).flatMap(([name, value]) => {
    if (value === undefined) return [];
    // OpenMetrics requires one way of writing a bound
    const text = isOpen && name === 'le' && Number.isInteger(value) ? `${value}.0` : String(value);
    return [`${name}="${escaped(text, true)}"`];
  });
  return written.length === 0 ? '' : `{${written.join(',')}}`;
}

function escaped(text: string, withQuotes: boolean): string {
  const plain = text.replaceAll('\\', '\\\\').replaceAll('\n', String.raw`\n`);
  return withQuotes ? plain.replaceAll('"', String.raw`\"`) : plain;
}

function numberOf(value: number): string {
  if (value === Infinity) return '+Inf';
  return value === -Infinity ? '-Inf' : String(value);
}
