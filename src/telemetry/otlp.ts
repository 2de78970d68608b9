/** OTLP in JSON: spans and metrics as `POST /v1/traces` and `POST /v1/metrics` take them (O1, O2). */
import { VERSION } from '../domain/version.ts';

/** A number is an integer if it is one; `double` has one type in all spans. */
export type AttributeValue = string | number | boolean | readonly string[] | { readonly double: number };
export type Attributes = Readonly<Record<string, AttributeValue | undefined>>;

/** Kinds of spans, by the numbers of the protocol. */
export const SPAN_KIND = { internal: 1, client: 3 } as const;

export interface SpanLink {
  readonly traceId: string;
  readonly spanId: string;
  readonly attributes: Attributes;
}

export interface SpanEvent {
  readonly name: string;
  readonly atMs: number;
  readonly attributes: Attributes;
}

export interface Span {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string | null;
  readonly name: string;
  readonly kind: keyof typeof SPAN_KIND;
  /** Epoch milliseconds. */
  readonly startMs: number;
  readonly endMs: number;
  readonly attributes: Attributes;
  readonly links: readonly SpanLink[];
  readonly events: readonly SpanEvent[];
  readonly isError: boolean;
  /** Why it failed, if that may be exported. */
  readonly message: string | null;
}

/** A value of a metric between two exports. */
export interface DataPoint {
  readonly attributes: Attributes;
  readonly startMs: number;
  readonly endMs: number;
  readonly count: number;
  readonly sum: number;
  /** Of a histogram: the smallest and largest value, and the number of values in each bucket. */
  readonly histogram: { readonly min: number; readonly max: number; readonly buckets: readonly number[] } | null;
}

export interface Metric {
  readonly name: string;
  readonly unit: string;
  readonly description: string;
  /** Upper bounds of the buckets; null: a counter. */
  readonly bounds: readonly number[] | null;
  readonly points: readonly DataPoint[];
}

const SCOPE = { name: 'cortex-edge', version: VERSION };
/** Changes since the last export: each session exports its own, and the collector adds them up. */
const DELTA = 1;
const STATUS_ERROR = 2;
const SAMPLED_FLAG = 1;
const NANOS_PER_MILLISECOND = '000000';

/** @param spans of `encodedSpan` */
export function tracesBody(resource: Attributes, spans: readonly string[]): string {
  const about = JSON.stringify({ attributes: attributesOf(resource) });
  const scope = JSON.stringify(SCOPE);
  return `{"resourceSpans":[{"resource":${about},"scopeSpans":[{"scope":${scope},"spans":[${spans.join(',')}]}]}]}`;
}

/** A span as JSON. */
export function encodedSpan(span: Span): string {
  return JSON.stringify(spanOf(span));
}

export function metricsBody(resource: Attributes, metrics: readonly Metric[]): string {
  const scopeMetrics = [{ scope: SCOPE, metrics: metrics.map(metricOf) }];
  return JSON.stringify({ resourceMetrics: [{ resource: { attributes: attributesOf(resource) }, scopeMetrics }] });
}

function spanOf(span: Span): object {
  const { traceId, spanId, parentSpanId, name, kind, startMs, endMs, attributes, links, events, isError } = span;
  const status = span.message === null ? { code: STATUS_ERROR } : { code: STATUS_ERROR, message: span.message };
  return {
    traceId,
    spanId,
    ...(parentSpanId === null ? {} : { parentSpanId }),
    flags: SAMPLED_FLAG,
    name,
    kind: SPAN_KIND[kind],
    startTimeUnixNano: nanos(startMs),
    endTimeUnixNano: nanos(endMs),
    attributes: attributesOf(attributes),
    ...(events.length === 0 ? {} : { events: events.map(eventOf) }),
    ...(links.length === 0 ? {} : { links: links.map(linkOf) }),
    ...(isError ? { status } : {}),
  };
}

function eventOf({ name, atMs, attributes }: SpanEvent): object {
  return { name, timeUnixNano: nanos(atMs), attributes: attributesOf(attributes) };
}

function linkOf({ traceId, spanId, attributes }: SpanLink): object {
  return { traceId, spanId, attributes: attributesOf(attributes) };
}

function metricOf({ name, unit, description, bounds, points }: Metric): object {
  const head = { name, unit, description };
  if (bounds === null) {
    const dataPoints = points.map((point) => ({ ...pointOf(point), asDouble: point.sum }));
    return { ...head, sum: { aggregationTemporality: DELTA, isMonotonic: true, dataPoints } };
  }
  const dataPoints = points.map((point) => ({
    ...pointOf(point),
    count: String(point.count),
    sum: point.sum,
    explicitBounds: bounds,
    ...(point.histogram === null
      ? {}
      : {
          min: point.histogram.min,
          max: point.histogram.max,
          bucketCounts: point.histogram.buckets.map(String),
        }),
  }));
  return { ...head, histogram: { aggregationTemporality: DELTA, dataPoints } };
}

function pointOf({ attributes, startMs, endMs }: DataPoint): object {
  return {
    attributes: attributesOf(attributes),
    startTimeUnixNano: nanos(startMs),
    timeUnixNano: nanos(endMs),
  };
}

/** 64-bit numbers are strings in this encoding. */
function nanos(ms: number): string {
  return `${Math.trunc(ms)}${NANOS_PER_MILLISECOND}`;
}

function attributesOf(attributes: Attributes): object[] {
  return Object.entries(attributes).flatMap(([key, value]) =>
    value === undefined ? [] : [{ key, value: valueOf(value) }],
  );
}

function valueOf(value: AttributeValue): object {
  if (typeof value === 'string') return { stringValue: value };
  if (typeof value === 'boolean') return { boolValue: value };
  if (typeof value === 'number') return Number.isInteger(value) ? { intValue: String(value) } : { doubleValue: value };
  if ('double' in value) return { doubleValue: value.double };
  return { arrayValue: { values: value.map((stringValue) => ({ stringValue })) } };
}
