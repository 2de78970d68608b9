/** Makes the requests of an export from the events of a session's runs, one after the other (O1, O2). */
import type { SessionEvent } from '../domain/event.ts';
import { limits } from '../domain/limits.ts';
import { aggregate, valuesOf } from './metrics.ts';
import type { MeasuredRun } from './metrics.ts';
import { RunObserver } from './observe.ts';
import { encodedSpan, metricsBody, tracesBody } from './otlp.ts';
import type { Attributes } from './otlp.ts';
import type { Parts } from './outbox.ts';
import type { RunTrace } from './run-trace.ts';
import { SpanBuilder } from './spans.ts';
import type { SpanContent, TracedRun } from './spans.ts';

/** A run of the session, with its events from the first one. */
export interface ExportedRun {
  readonly run: Omit<TracedRun, 'model' | 'trace'>;
  /** Null: it has no trace. */
  readonly trace: RunTrace | null;
  /** Null: no text is exported. */
  readonly content: SpanContent | null;
  readonly events: AsyncIterable<SessionEvent>;
}

interface Range {
  /** Only what ended after this event is exported. */
  readonly after: number;
  /** Time of that event, epoch milliseconds; 0: unknown. */
  readonly since: number;
}

/** Yields bodies of limited size as they are filled. @returns the time of the last event, epoch milliseconds */
export async function* exportOf(runs: Iterable<ExportedRun>, resource: Attributes, { after, since }: Range): Parts {
  const values: ReturnType<typeof valuesOf>[number][] = [];
  const spans = new SpanBatch();
  let startMs = since;
  let endMs = since;
  for (const { run, trace, content, events } of runs) {
    const observer = new RunObserver();
    const measured: MeasuredRun = { agent: run.agent, kind: run.kind };
    const isTraced = trace?.isSampled === true;
    let builder: SpanBuilder | null = null;
    let model: string | null = null;
    for await (const event of events) {
      if (isTraced) content?.see(event);
      if (event.type === 'agent_started') model = event.data.model ?? null;
      if (startMs === 0) startMs = event.timestamp;
      endMs = Math.max(endMs, event.timestamp);
      for (const observed of observer.take(event)) {
        const isNew = observed.seq > after;
        if (isNew) values.push(...valuesOf(observed, measured));
        // The span of the run has events of all of its actions.
        if (!isTraced || (!isNew && observed.kind !== 'action')) continue;
        builder ??= new SpanBuilder({ ...run, trace, model }, content);
        const span = builder.take(observed);
        if (span === null) continue;
        const full = spans.add(encodedSpan(span));
        if (full !== null) yield { signal: 'traces', body: tracesBody(resource, full) };
      }
    }
  }
  const rest = spans.take();
  if (rest.length > 0) yield { signal: 'traces', body: tracesBody(resource, rest) };
  const metrics = aggregate(values, { startMs: Math.min(startMs, endMs), endMs });
  if (metrics.length > 0) yield { signal: 'metrics', body: metricsBody(resource, metrics) };
  return endMs;
}

/** Gathers spans as JSON up to the size of one request. */
class SpanBatch {
  #spans: string[] = [];
  #chars = 0;

  /** @returns the spans before it, if it does not fit with them */
  add(span: string): readonly string[] | null {
    const isFull = this.#spans.length >= limits.telemetrySpans || this.#chars + span.length > limits.telemetryBodyChars;
    const full = isFull && this.#spans.length > 0 ? this.take() : null;
    this.#spans.push(span);
    this.#chars += span.length;
    return full;
  }

  take(): readonly string[] {
    const spans = this.#spans;
    this.#spans = [];
    this.#chars = 0;
    return spans;
  }
}
