/** A collector of OTLP/HTTP in JSON on loopback, which can also be faulty (O1). */
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

import { z } from 'zod';

const value = z.union([
  z.strictObject({ stringValue: z.string() }).transform(({ stringValue }) => stringValue),
  z
    .strictObject({ intValue: z.union([z.int(), z.string().regex(/^-?\d+$/)]) })
    .transform(({ intValue }) => Number(intValue)),
  z.strictObject({ boolValue: z.boolean() }).transform(({ boolValue }) => boolValue),
]);
const attributes = z
  .array(z.strictObject({ key: z.string().min(1), value }))
  .transform((pairs) => Object.fromEntries(pairs.map(({ key, value: read }) => [key, read])));
const nanoseconds = z.string().regex(/^\d{1,19}$/);

/** Closed: a member that is not known here may be content. */
const span = z.strictObject({
  traceId: z.string().regex(/^[0-9a-f]{32}$/),
  spanId: z.string().regex(/^[0-9a-f]{16}$/),
  parentSpanId: z
    .string()
    .regex(/^[0-9a-f]{16}$/)
    .optional(),
  name: z.string(),
  kind: z.int(),
  startTimeUnixNano: nanoseconds,
  endTimeUnixNano: nanoseconds,
  attributes,
  droppedAttributesCount: z.literal(0),
  events: z.tuple([]),
  droppedEventsCount: z.literal(0),
  status: z.strictObject({ code: z.int() }),
  links: z.tuple([]),
  droppedLinksCount: z.literal(0),
  flags: z.int(),
});
const request = z.strictObject({
  resourceSpans: z.array(
    z.strictObject({
      resource: z.strictObject({ attributes, droppedAttributesCount: z.literal(0) }),
      scopeSpans: z.array(
        z.strictObject({ scope: z.strictObject({ name: z.string(), version: z.string() }), spans: z.array(span) }),
      ),
    }),
  ),
});

export type CollectedSpan = z.output<typeof span>;

export interface Collected {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  readonly resource: Readonly<Record<string, unknown>>;
  readonly spans: readonly CollectedSpan[];
}

export interface Collector {
  /** Value of `OTEL_EXPORTER_OTLP_ENDPOINT`. */
  readonly url: string;
  readonly requests: readonly Collected[];
  readonly spans: readonly CollectedSpan[];
  /** Every request was `POST` with JSON of the protocol; otherwise, the reasons. */
  readonly faults: readonly string[];
  /** How it answers; by default, it takes everything. */
  answer: (response: ServerResponse) => void;
  close(): Promise<void>;
}

export async function startCollector(): Promise<Collector> {
  const requests: Collected[] = [];
  const faults: string[] = [];
  const server = createServer((incoming, response) => {
    const chunks: Buffer[] = [];
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
    incoming.on('end', () => {
      const text = Buffer.concat(chunks).toString();
      if (incoming.method !== 'POST' || incoming.headers['content-type'] !== 'application/json') {
        faults.push(`${incoming.method} ${incoming.headers['content-type']}`);
      }
      const parsed = request.safeParse(JSON.parse(text));
      if (!parsed.success) faults.push(z.prettifyError(parsed.error));
      else {
        const all = parsed.data.resourceSpans;
        requests.push({
          path: incoming.url ?? '',
          headers: incoming.headers,
          text,
          resource: all[0]?.resource.attributes ?? {},
          spans: all.flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans)),
        });
      }
      collector.answer(response);
    });
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const collector: Collector = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    get spans() {
      return requests.flatMap(({ spans }) => spans);
    },
    faults,
    answer: (response) => response.setHeader('content-type', 'application/json').end('{}'),
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => {
        server.close(resolve);
      });
    },
  };
  return collector;
}
