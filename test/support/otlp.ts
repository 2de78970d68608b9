/** What a session exports, read back from the bodies of the requests. */
import type { Session } from '../../src/engine/session/session.ts';
import { exportOf } from '../../src/telemetry/project.ts';
import type { Signal } from '../../src/telemetry/outbox.ts';
import type { Sampling } from '../../src/telemetry/run-trace.ts';

export const EVERYTHING: Sampling = { ratio: 1, followsParent: true };

type Value = string | number | boolean | readonly string[];

export interface ReadSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string | null;
  readonly name: string;
  readonly kind: number;
  /** Epoch milliseconds. */
  readonly start: number;
  readonly end: number;
  readonly attributes: Readonly<Record<string, Value>>;
  readonly links: readonly { readonly spanId: string; readonly attributes: Readonly<Record<string, Value>> }[];
  readonly events: readonly { readonly name: string; readonly attributes: Readonly<Record<string, Value>> }[];
  readonly status: { readonly code: number; readonly message?: string } | null;
}

export interface ReadPoint {
  readonly metric: string;
  readonly attributes: Readonly<Record<string, Value>>;
  readonly count: number;
  readonly sum: number;
  readonly buckets: readonly number[];
}

interface Item {
  readonly key: string;
  readonly value: Readonly<Record<string, unknown>>;
}

function attributesOf(items: readonly Item[] = []): Readonly<Record<string, Value>> {
  return Object.fromEntries(items.map(({ key, value }) => [key, valueOf(value)]));
}

function valueOf(value: Readonly<Record<string, unknown>>): Value {
  if ('intValue' in value) return Number(value['intValue']);
  if ('arrayValue' in value) {
    const { values } = value['arrayValue'] as { readonly values: readonly { readonly stringValue: string }[] };
    return values.map(({ stringValue }) => stringValue);
  }
  return (value['stringValue'] ?? value['doubleValue'] ?? value['boolValue']) as Value;
}

// The shape of the wire is checked by the collector in the tests of the whole system.
export function spansIn(bodies: readonly string[]): ReadSpan[] {
  return bodies.flatMap((body) => {
    const { resourceSpans } = JSON.parse(body) as { resourceSpans: { scopeSpans: { spans: WireSpan[] }[] }[] };
    return resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans.map(spanOf)));
  });
}

interface WireSpan {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: readonly Item[];
  readonly links?: readonly { readonly spanId: string; readonly attributes: readonly Item[] }[];
  readonly events?: readonly { readonly name: string; readonly attributes: readonly Item[] }[];
  readonly status?: { readonly code: number; readonly message?: string };
}

function spanOf(span: WireSpan): ReadSpan {
  const { traceId, spanId, name, kind, links = [], events = [] } = span;
  return {
    traceId,
    spanId,
    name,
    kind,
    parentSpanId: span.parentSpanId ?? null,
    start: millisOf(span.startTimeUnixNano),
    end: millisOf(span.endTimeUnixNano),
    attributes: attributesOf(span.attributes),
    links: links.map((link) => ({ spanId: link.spanId, attributes: attributesOf(link.attributes) })),
    events: events.map((event) => ({ name: event.name, attributes: attributesOf(event.attributes) })),
    status: span.status ?? null,
  };
}

function millisOf(nanos: string): number {
  return Number(BigInt(nanos) / 1_000_000n);
}

interface WirePoint {
  readonly attributes: readonly Item[];
  readonly count?: string;
  readonly sum?: number;
  readonly asDouble?: number;
  readonly bucketCounts?: readonly string[];
}

export function pointsIn(bodies: readonly string[]): ReadPoint[] {
  return bodies.flatMap((body) => {
    const { resourceMetrics } = JSON.parse(body) as {
      resourceMetrics: {
        scopeMetrics: {
          metrics: { name: string; sum?: { dataPoints: WirePoint[] }; histogram?: { dataPoints: WirePoint[] } }[];
        }[];
      }[];
    };
    const metrics = resourceMetrics.flatMap(({ scopeMetrics }) => scopeMetrics.flatMap((scope) => scope.metrics));
    return metrics.flatMap(({ name, sum, histogram }) =>
      (sum ?? histogram ?? { dataPoints: [] }).dataPoints.map((point) => ({
        metric: name,
        attributes: attributesOf(point.attributes),
        count: Number(point.count ?? 1),
        sum: point.sum ?? point.asDouble ?? 0,
        buckets: (point.bucketCounts ?? []).map(Number),
      })),
    );
  });
}

/** Everything that the session would export now. */
export async function exported(
  session: Session,
  { sampling = EVERYTHING, hasContent = false, after = 0 } = {},
): Promise<{ readonly spans: ReadSpan[]; readonly points: ReadPoint[]; readonly bodies: readonly string[] }> {
  const telemetry = session.telemetry;
  if (telemetry === null) throw new Error('there is no session');
  const runs = telemetry.runs({ after, until: telemetry.lastSeq }, sampling, hasContent);
  const sent: Record<Signal, string[]> = { traces: [], metrics: [] };
  for await (const { signal, body } of exportOf(runs, { 'service.name': 'test' }, { after, since: 0 })) {
    sent[signal].push(body);
  }
  return { spans: spansIn(sent.traces), points: pointsIn(sent.metrics), bodies: [...sent.traces, ...sent.metrics] };
}

/** The tree of spans as lines: name and children, indented, in the order of their starts. */
export function treeOf(spans: readonly ReadSpan[]): string[] {
  const ids = new Set(spans.map(({ spanId }) => spanId));
  const lines = (parent: string | null, depth: number): string[] =>
    spans
      .filter(({ parentSpanId }) =>
        parent === null ? parentSpanId === null || !ids.has(parentSpanId) : parentSpanId === parent,
      )
      .toSorted((a, b) => a.start - b.start || (a.name < b.name ? -1 : 1))
      .flatMap(({ name, spanId }) => [`${'  '.repeat(depth)}${name}`, ...lines(spanId, depth + 1)]);
  return lines(null, 0);
}
