/** Makes the requests of an export from the events of a session's runs (O1, O2). */
import type { SessionEvent } from '../domain/event.ts';
import { limits } from '../domain/limits.ts';
import { aggregate, valuesOf } from './metrics.ts';
import type { MeasuredRun } from './metrics.ts';
import { RunObserver } from './observe.ts';
import { metricsBody, tracesBody } from './otlp.ts';
import type { Attributes, Span } from './otlp.ts';
import type { Export } from './outbox.ts';
import { SpanBuilder } from './spans.ts';
import type { SpanContent, TracedRun } from './spans.ts';

/** A run of the session, with its events from the first one. */
export interface ExportedRun {
  readonly run: Omit<TracedRun, 'model'>;
  /** Null: no text is exported. */
  readonly content: SpanContent | null;
  readonly events: AsyncIterable<SessionEvent>;
}

interface Range {
  /** Only what ended after this event is exported. */
  readonly after: number;
  /** Time of that event, epoch milliseconds. */
  readonly since: number;
}

/** @returns the bodies of the requests, and the time of the last event */
export async function exportOf(
  runs: Iterable<ExportedRun>,
  resource: Attributes,
  { after, since }: Range,
): Promise<{ readonly sent: Export; readonly at: number }> {
  const spans: Span[] = [];
  const values: ReturnType<typeof valuesOf>[number][] = [];
  let startMs = since;
  let endMs = since;
  for (const { run, content, events } of runs) {
    const observer = new RunObserver();
    const measured: MeasuredRun = { agent: run.agent, kind: run.kind };
    let builder: SpanBuilder | null = null;
    let model: string | null = null;
    for await (const event of events) {
      content?.see(event);
      if (event.type === 'agent_started') model = event.data.model ?? null;
      if (startMs === 0) startMs = event.timestamp;
      endMs = Math.max(endMs, event.timestamp);
      for (const observed of observer.take(event)) {
        builder ??= new SpanBuilder({ ...run, model }, content);
        const span = builder.take(observed);
        if (observed.seq <= after) continue;
        if (span !== null && run.trace.isSampled) spans.push(span);
        values.push(...valuesOf(observed, measured));
      }
    }
  }
  const metrics = aggregate(values, { startMs: Math.min(startMs, endMs), endMs });
  return {
    sent: {
      traces: batches(spans).map((batch) => tracesBody(resource, batch)),
      metrics: metrics.length === 0 ? [] : [metricsBody(resource, metrics)],
    },
    at: endMs,
  };
}

function batches(spans: readonly Span[]): Span[][] {
  const count = Math.ceil(spans.length / limits.telemetrySpans);
  return Array.from({ length: count }, (_, at) =>
    spans.slice(at * limits.telemetrySpans, (at + 1) * limits.telemetrySpans),
  );
}
