/** The metrics that the Worker exports: the table of their names, and their values in what was observed (O2). */
import type { Attributes, DataPoint, Metric } from './otlp.ts';
import type { Observation, ObservedUsage } from './observe.ts';

interface MetricEntry {
  /** Unit in UCUM: `s`, `{token}`. */
  readonly unit: string;
  readonly description: string;
  /** Upper bounds of the buckets of a histogram; null: a counter. */
  readonly bounds: readonly number[] | null;
  /** Names of its attributes. */
  readonly attributes: readonly string[];
}

/** Seconds. The bounds that the conventions name for model calls. */
const CALL_SECONDS = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];
/** Seconds. Actions start within milliseconds, and may run for hours. */
const ACTION_SECONDS = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 300, 1800];
/** Seconds. A person may answer after days. */
const PERSON_SECONDS = [1, 5, 15, 60, 300, 900, 3_600, 14_400, 86_400, 604_800];
const TOKENS = [1, 4, 16, 64, 256, 1_024, 4_096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304];

const CALL_ATTRIBUTES = ['gen_ai.operation.name', 'gen_ai.request.model', 'gen_ai.agent.name'];
const ACTION_ATTRIBUTES = ['cortex.action.type', 'gen_ai.agent.name'];

/** By name; the names are those of the GenAI conventions of OpenTelemetry, where they have one. */
export const METRICS = {
  'gen_ai.client.token.usage': {
    unit: '{token}',
    description: 'Tokens of a model call',
    bounds: TOKENS,
    attributes: [...CALL_ATTRIBUTES, 'gen_ai.token.type'],
  },
  'gen_ai.client.operation.duration': {
    unit: 's',
    description: 'Time of a generation, from what is fetched for its prompt to the end of its text',
    bounds: CALL_SECONDS,
    attributes: [...CALL_ATTRIBUTES, 'error.type'],
  },
  'gen_ai.client.operation.time_to_first_chunk': {
    unit: 's',
    description: 'Time from the start of a generation to the first block of its text',
    bounds: CALL_SECONDS,
    attributes: CALL_ATTRIBUTES,
  },
  'cortex.model.cost': {
    unit: '{USD}',
    description: 'Cost of model calls with a known price',
    bounds: null,
    attributes: CALL_ATTRIBUTES,
  },
  'cortex.model.cached_tokens': {
    unit: '{token}',
    description: 'Input tokens that the provider read from its cache',
    bounds: null,
    attributes: CALL_ATTRIBUTES,
  },
  'cortex.run.duration': {
    unit: 's',
    description: 'Time of a run, including the time in which it waits for people and clients',
    bounds: ACTION_SECONDS,
    attributes: ['gen_ai.agent.name', 'cortex.run.kind', 'cortex.run.status', 'error.type'],
  },
  'cortex.run.iterations': {
    unit: '{iteration}',
    description: 'Generations of a run',
    bounds: [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64],
    attributes: ['gen_ai.agent.name', 'cortex.run.kind', 'cortex.run.status'],
  },
  'cortex.action.queue.duration': {
    unit: 's',
    description: 'Time from the closing tag, or the end of the last dependency, to the start of the first attempt',
    bounds: ACTION_SECONDS,
    attributes: [...ACTION_ATTRIBUTES, 'cortex.action.depends'],
  },
  'cortex.action.duration': {
    unit: 's',
    description: 'Time of an attempt of an action',
    bounds: ACTION_SECONDS,
    attributes: [...ACTION_ATTRIBUTES, 'error.type'],
  },
  'cortex.action.ends': {
    unit: '{action}',
    description: 'Actions by how they ended',
    bounds: null,
    attributes: [...ACTION_ATTRIBUTES, 'cortex.action.status', 'error.type'],
  },
  'cortex.action.retries': {
    unit: '{retry}',
    description: 'Failed attempts that were followed by another one',
    bounds: null,
    attributes: [...ACTION_ATTRIBUTES, 'error.type'],
  },
  'cortex.action.cache_hits': {
    unit: '{action}',
    description: 'Actions that reused the outcome of an earlier one',
    bounds: null,
    attributes: ACTION_ATTRIBUTES,
  },
  'cortex.approval.duration': {
    unit: 's',
    description: 'Time in which a request waited for a person',
    bounds: PERSON_SECONDS,
    attributes: [...ACTION_ATTRIBUTES, 'cortex.approval.decision'],
  },
} as const satisfies Readonly<Record<string, MetricEntry>>;

export type MetricName = keyof typeof METRICS;

interface Value {
  readonly metric: MetricName;
  readonly value: number;
  readonly attributes: Attributes;
}

/** What the observations of a run have in common. */
export interface MeasuredRun {
  /** Of the agent or workflow. */
  readonly agent: string;
  readonly kind: 'agent' | 'workflow';
}

const MILLISECONDS = 1_000;

/** The values of one observation. */
export function valuesOf(observed: Observation, { agent, kind }: MeasuredRun): readonly Value[] {
  const seconds = (observed.endMs - observed.startMs) / MILLISECONDS;
  const whose = { 'gen_ai.agent.name': agent };
  switch (observed.kind) {
    case 'generation': {
      const call = { ...whose, ...callOf(observed.usage) };
      const error = observed.error === null ? {} : { 'error.type': observed.error };
      const { firstMs, startMs, usage } = observed;
      return [
        { metric: 'gen_ai.client.operation.duration', value: seconds, attributes: { ...call, ...error } },
        ...(firstMs === null
          ? []
          : [
              {
                metric: 'gen_ai.client.operation.time_to_first_chunk',
                value: (firstMs - startMs) / MILLISECONDS,
                attributes: call,
              } as const,
            ]),
        ...usageValues(usage, call),
      ];
    }
    case 'call':
      return usageValues(observed.usage, { ...whose, ...callOf(observed.usage) });
    case 'attempt': {
      const about = { ...whose, 'cortex.action.type': observed.action.type };
      const failed = { ...about, ...(observed.error === null ? {} : { 'error.type': observed.error }) };
      if (observed.attempt === 0) return [{ metric: 'cortex.action.cache_hits', value: 1, attributes: about }];
      const queued = { ...about, 'cortex.action.depends': !observed.isIndependent };
      return [
        { metric: 'cortex.action.duration', value: seconds, attributes: failed },
        ...(observed.queuedMs === null
          ? []
          : [
              {
                metric: 'cortex.action.queue.duration',
                value: observed.queuedMs / MILLISECONDS,
                attributes: queued,
              } as const,
            ]),
        ...(observed.willRetry ? [{ metric: 'cortex.action.retries', value: 1, attributes: failed } as const] : []),
      ];
    }
    case 'action': {
      const { action, status, error } = observed;
      const about = { ...whose, 'cortex.action.type': action.type, 'cortex.action.status': status };
      const attributes = error === null ? about : { ...about, 'error.type': error };
      return [{ metric: 'cortex.action.ends', value: 1, attributes }];
    }
    case 'approval': {
      const about = { ...whose, 'cortex.action.type': observed.action.type };
      const attributes = { ...about, 'cortex.approval.decision': observed.decision };
      return [{ metric: 'cortex.approval.duration', value: seconds, attributes }];
    }
    case 'run': {
      const { status, error, iterations } = observed;
      const about = { ...whose, 'cortex.run.kind': kind, 'cortex.run.status': status };
      const attributes = error === null ? about : { ...about, 'error.type': error };
      return [
        { metric: 'cortex.run.duration', value: seconds, attributes },
        { metric: 'cortex.run.iterations', value: iterations, attributes: about },
      ];
    }
  }
}

function callOf(usage: ObservedUsage | null): Attributes {
  const model = usage?.model ?? null;
  return { 'gen_ai.operation.name': 'chat', ...(model === null ? {} : { 'gen_ai.request.model': model }) };
}

function usageValues(usage: ObservedUsage | null, call: Attributes): readonly Value[] {
  if (usage === null) return [];
  const tokens = (type: string, value: number): Value => ({
    metric: 'gen_ai.client.token.usage',
    value,
    attributes: { ...call, 'gen_ai.token.type': type },
  });
  const { inputTokens, outputTokens, cachedTokens, cost } = usage;
  return [
    tokens('input', inputTokens),
    tokens('output', outputTokens),
    ...(cost === null ? [] : [{ metric: 'cortex.model.cost', value: cost, attributes: call } as const]),
    ...(cachedTokens === 0
      ? []
      : [{ metric: 'cortex.model.cached_tokens', value: cachedTokens, attributes: call } as const]),
  ];
}

/** The metrics of all values together. @param window of the events in which they were observed, epoch milliseconds */
export function aggregate(
  values: readonly Value[],
  window: { readonly startMs: number; readonly endMs: number },
): readonly Metric[] {
  const points = new Map<MetricName, Map<string, DataPoint>>();
  for (const { metric, value, attributes } of values) {
    const ofMetric = points.get(metric) ?? new Map<string, DataPoint>();
    points.set(metric, ofMetric);
    const key = JSON.stringify(attributes);
    ofMetric.set(
      key,
      added(ofMetric.get(key) ?? emptyPoint(metric, attributes, window), METRICS[metric].bounds, value),
    );
  }
  return [...points].map(([name, ofMetric]) => {
    const { unit, description, bounds } = METRICS[name];
    return { name, unit, description, bounds, points: [...ofMetric.values()] };
  });
}

function emptyPoint(
  metric: MetricName,
  attributes: Attributes,
  window: { readonly startMs: number; readonly endMs: number },
): DataPoint {
  const { bounds } = METRICS[metric];
  const buckets = Array.from({ length: (bounds?.length ?? 0) + 1 }, () => 0);
  const histogram = bounds === null ? null : { min: Infinity, max: -Infinity, buckets };
  return { attributes, ...window, count: 0, sum: 0, histogram };
}

function added(point: DataPoint, bounds: readonly number[] | null, value: number): DataPoint {
  const { histogram } = point;
  const grown = { ...point, count: point.count + 1, sum: point.sum + value };
  if (bounds === null || histogram === null) return grown;
  const above = bounds.findIndex((bound) => value <= bound);
  const bucket = above === -1 ? bounds.length : above;
  const buckets = histogram.buckets.map((count, at) => (at === bucket ? count + 1 : count));
  return {
    ...grown,
    histogram: { min: Math.min(histogram.min, value), max: Math.max(histogram.max, value), buckets },
  };
}
