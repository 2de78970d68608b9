/** Where and how the runner exports spans (O1): OpenTelemetry's variables, of which the runner reads these. */
import { validateHeaderName, validateHeaderValue } from 'node:http';

import { z } from 'zod';

export interface SpanExportSettings {
  /** URL that gets the requests, with its path. */
  readonly url: string;
  /** Headers of the requests; they may be secrets. */
  readonly headers: Readonly<Record<string, string>>;
  /** Attributes of the resource, `service.name` included if it is set. */
  readonly resource: Readonly<Record<string, string>>;
}

const url = z.url({ protocol: /^https?$/, error: 'must be an HTTP(S) URL' });

/** `key=value, key=value`, values percent-encoded, as OpenTelemetry writes lists in variables. */
function pairs(isValid: (name: string, value: string) => boolean): z.ZodType<Record<string, string>, string> {
  return z.string().transform((text, context) => {
    const found: Record<string, string> = {};
    for (const [at, pair] of text.split(',').entries()) {
      if (pair.trim() === '') continue;
      const [, name = '', written = ''] = /^\s*([^=\s]+)\s*=\s*(.*?)\s*$/.exec(pair) ?? [];
      const value = decoded(written);
      if (name === '' || value === null || !isValid(name, value)) {
        // the value may be a secret
        context.addIssue({
          code: 'custom',
          message: `entry ${at + 1} is not valid (expected name=value, percent-encoded)`,
        });
        return z.NEVER;
      }
      found[name] = value;
    }
    return found;
  });
}

function decoded(text: string): string | null {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}

function isHeader(name: string, value: string): boolean {
  try {
    validateHeaderName(name);
    validateHeaderValue(name, value);
    return true;
  } catch {
    return false;
  }
}

const headers = pairs(isHeader).optional();

export const otlpVariables = {
  OTEL_EXPORTER_OTLP_ENDPOINT: url.optional(),
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: url.optional(),
  OTEL_EXPORTER_OTLP_HEADERS: headers,
  OTEL_EXPORTER_OTLP_TRACES_HEADERS: headers,
  /** JSON is sent in any case; collectors take both over HTTP. gRPC is another port. */
  OTEL_EXPORTER_OTLP_PROTOCOL: z.enum(['http/json', 'http/protobuf']).optional(),
  OTEL_TRACES_EXPORTER: z.enum(['otlp', 'none']).optional(),
  OTEL_SERVICE_NAME: z.string().optional(),
  OTEL_RESOURCE_ATTRIBUTES: pairs(() => true).optional(),
  OTEL_SDK_DISABLED: z
    .string()
    .optional()
    .transform((text) => text?.toLowerCase() === 'true'),
};

type Given = { readonly [Name in keyof typeof otlpVariables]?: z.output<(typeof otlpVariables)[Name]> | undefined };

/** @returns null if no endpoint is set, or the export is off: then the runner exports nothing */
export function spanExportOf(given: Given): SpanExportSettings | null {
  const base = given.OTEL_EXPORTER_OTLP_ENDPOINT;
  const target = given.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT ?? (base === undefined ? null : tracesBelow(base));
  if (target === null || given.OTEL_SDK_DISABLED === true || given.OTEL_TRACES_EXPORTER === 'none') return null;
  const name = given.OTEL_SERVICE_NAME;
  return {
    url: target,
    headers: { ...given.OTEL_EXPORTER_OTLP_HEADERS, ...given.OTEL_EXPORTER_OTLP_TRACES_HEADERS },
    resource: { ...given.OTEL_RESOURCE_ATTRIBUTES, ...(name === undefined ? {} : { 'service.name': name }) },
  };
}

/** The endpoint for all signals is a base: each signal has a path below it. */
function tracesBelow(base: string): string {
  const target = new URL(base);
  target.pathname = `${target.pathname.replace(/\/$/, '')}/v1/traces`;
  return target.href;
}
