/**
 * Exports spans as OTLP over HTTP in JSON, with OpenTelemetry's SDK (O1). The runner loads this file only if an endpoint is
 * set.
 *
 * Owns the spans that wait or are being sent. Does not own what a span says (job-trace.ts).
 * Invariants:
 * 1. `record` returns at once and never throws: a collector cannot slow down or stop a job.
 * 2. At most `limits.spanQueue` spans wait or are being sent, whatever the collector does; further ones are dropped.
 * 3. Every span is counted once: as exported, or as dropped with a reason.
 * 4. `close` takes at most `flushMs`.
 */
import http from 'node:http';
import https from 'node:https';

import { ROOT_CONTEXT, type Context, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import { type ExportResult, ExportResultCode } from '@opentelemetry/core';
import { createOtlpHttpExportDelegate } from '@opentelemetry/otlp-exporter-base/node-http';
import { type ISerializer, JsonTraceSerializer, TraceExporterMetricsHelper } from '@opentelemetry/otlp-transformer';
import { defaultResource, resourceFromAttributes } from '@opentelemetry/resources';
import {
  BatchSpanProcessor,
  type IdGenerator,
  type ReadableSpan,
  type SpanExporter,
  TracerProvider,
} from '@opentelemetry/sdk-trace';

import { limits } from '../limits.ts';
import { JOB_ID, type JobSpan } from './job-trace.ts';
import type { SpanExportSettings } from './otlp-settings.ts';
import type { DropReason, SpanCounts } from './span-counts.ts';
import type { SpanContext } from './trace-context.ts';

/** Connections to the collector; more than one only if it is slow. */
const CONNECTIONS = 2;
/** At the end, the SDK passes all waiting batches on at once. */
const CONCURRENT_EXPORTS = Math.ceil(limits.spanQueue / limits.spanBatch) + CONNECTIONS;

export interface SpanExportOptions {
  /** Name and version of this service. */
  readonly service: string;
  readonly version: string;
  /** Called with the ids of jobs whose spans were exported, or that the collector did not take; must not throw. */
  readonly onSettled: (jobs: readonly string[]) => void;
  /** Called when the collector begins to fail, with a reason without contents, and when it works again (null). */
  readonly onState: (reason: string | null) => void;
  /** One export with its retries, in milliseconds; default: limits.ts. */
  readonly exportMs?: number;
  /** The last export at the end. */
  readonly flushMs?: number;
}

type Response = ReturnType<typeof JsonTraceSerializer.deserializeResponse>;

export class SpanExport {
  readonly #provider: TracerProvider;
  readonly #exporter: SpanExporter;
  readonly #ids = new GivenIds();
  readonly #agent: http.Agent;
  readonly #onState: SpanExportOptions['onState'];
  readonly #onSettled: SpanExportOptions['onSettled'];
  readonly #version: string;
  readonly #flushMs: number;
  readonly #dropped: Record<DropReason, number> = { queue_full: 0, failed: 0, rejected: 0, shutdown: 0 };
  #queued = 0;
  #exported = 0;
  #failing = false;
  #closed = false;

  constructor(settings: SpanExportSettings, options: SpanExportOptions) {
    const {
      service,
      version,
      onState,
      onSettled,
      exportMs = limits.spanExportMs,
      flushMs = limits.spanFlushMs,
    } = options;
    this.#onState = onState;
    this.#onSettled = onSettled;
    this.#version = version;
    this.#flushMs = flushMs;
    const agent = { keepAlive: true, maxSockets: CONNECTIONS };
    this.#agent = settings.url.startsWith('https:') ? new https.Agent(agent) : new http.Agent(agent);
    this.#exporter = this.#counted(settings, exportMs);
    const processor = new BatchSpanProcessor({
      exporter: this.#exporter,
      // `record` keeps this limit, and counts what it drops
      maxQueueSize: limits.spanQueue,
      maxExportBatchSize: limits.spanBatch,
      scheduledDelayMillis: limits.spanDelayMs,
      exportTimeoutMillis: exportMs,
    });
    this.#provider = new TracerProvider({
      resource: defaultResource().merge(
        resourceFromAttributes({ 'service.name': service, 'service.version': version, ...settings.resource }),
      ),
      idGenerator: this.#ids,
      spanProcessors: [processor],
    });
  }

  get counts(): SpanCounts {
    return { queued: this.#queued, exported: this.#exported, dropped: { ...this.#dropped } };
  }

  /** Exports ended spans, later. */
  record(spans: readonly JobSpan[]): void {
    if (this.#closed || this.#queued + spans.length > limits.spanQueue) {
      this.#dropped[this.#closed ? 'shutdown' : 'queue_full'] += spans.length;
      return;
    }
    this.#queued += spans.length;
    const tracer = this.#provider.getTracer('cortex-edge/runner', this.#version);
    for (const span of spans) {
      this.#ids.next = span.context;
      const made = tracer.startSpan(
        span.name,
        {
          kind: span.kind === 'server' ? SpanKind.SERVER : SpanKind.INTERNAL,
          // the SDK takes small numbers as times of the process's own clock
          startTime: new Date(span.startedAt),
          attributes: span.attributes,
        },
        parentContext(span),
      );
      if (span.isError) made.setStatus({ code: SpanStatusCode.ERROR });
      made.end(new Date(span.endedAt));
    }
  }

  /** Sends what waits, for at most `flushMs`, and drops the rest. */
  async close(): Promise<void> {
    if (this.#closed) return;
    let timer: NodeJS.Timeout | undefined;
    const timeout = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, this.#flushMs);
    });
    await Promise.race([this.#flush(), timeout]);
    clearTimeout(timer);
    this.#closed = true;
    this.#dropped.shutdown += this.#queued;
    this.#queued = 0;
    this.#agent.destroy();
  }

  async #flush(): Promise<void> {
    // rejects as soon as one batch fails, while others are being sent
    await this.#provider.shutdown().catch(() => undefined);
    await this.#exporter.forceFlush?.();
  }

  /** The SDK's exporter; counts what became of the spans. */
  #counted(settings: SpanExportSettings, exportMs: number): SpanExporter {
    let rejected = 0;
    // the result of an export follows its response without another one between them
    const serializer: ISerializer<ReadableSpan[], Response> = {
      serializeRequest: (spans) => JsonTraceSerializer.serializeRequest(spans),
      deserializeResponse: (bytes) => {
        const response = JsonTraceSerializer.deserializeResponse(bytes);
        // JSON of protobuf writes an int64 as a string
        rejected = Number(response.partialSuccess?.rejectedSpans ?? 0);
        return response;
      },
    };
    const delegate = createOtlpHttpExportDelegate(
      {
        url: settings.url,
        headers: () => Promise.resolve({ ...settings.headers, 'content-type': 'application/json' }),
        agentFactory: () => this.#agent,
        compression: 'none',
        concurrencyLimit: CONCURRENT_EXPORTS,
        timeoutMillis: exportMs,
      },
      serializer,
      'otlp_http_span_exporter',
      TraceExporterMetricsHelper,
      undefined,
    );
    return {
      export: (spans, done) => {
        rejected = 0;
        delegate.export(spans, (result) => {
          this.#settle(spans, rejected, result);
          rejected = 0;
          done(result);
        });
      },
      forceFlush: () => delegate.forceFlush(),
      shutdown: () => delegate.shutdown(),
    };
  }

  #settle(spans: readonly ReadableSpan[], refused: number, { code, error }: ExportResult): void {
    // they were counted as dropped
    if (this.#closed) return;
    const count = spans.length;
    const rejected = Number.isFinite(refused) ? Math.min(Math.max(refused, 0), count) : 0;
    this.#queued -= count;
    this.#onSettled(spans.flatMap(({ attributes: { [JOB_ID]: id } }) => (typeof id === 'string' ? [id] : [])));
    const isDelivered = code === ExportResultCode.SUCCESS;
    if (isDelivered) {
      this.#exported += count - rejected;
      this.#dropped.rejected += rejected;
    } else {
      this.#dropped.failed += count;
    }
    const reason = !isDelivered ? reasonOf(error) : rejected > 0 ? `${rejected} of ${count} spans were rejected` : null;
    if ((reason !== null) === this.#failing) return;
    this.#failing = reason !== null;
    this.#onState(reason);
  }
}

/** The ids of the next span. The SDK asks for them while it creates the span. */
class GivenIds implements IdGenerator {
  next: SpanContext = { traceId: '', spanId: '', flags: 0 };
  readonly generateTraceId = (): string => this.next.traceId;
  readonly generateSpanId = (): string => this.next.spanId;
}

function parentContext({ context, parent }: JobSpan): Context {
  if (parent === null) return ROOT_CONTEXT;
  const { traceId, flags } = context;
  return trace.setSpanContext(ROOT_CONTEXT, { traceId, traceFlags: flags, ...parent });
}

/** Without the body of the answer, which is not ours. */
function reasonOf(error: Error | undefined): string {
  if (error === undefined) return 'the collector did not take them';
  return 'code' in error && typeof error.code === 'number' ? `status ${error.code}` : error.message;
}
