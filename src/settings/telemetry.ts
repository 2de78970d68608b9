/** The standard settings of OpenTelemetry that the Worker reads (O1, O2). */
import { VERSION } from '../domain/version.ts';
import type { Attributes } from '../telemetry/otlp.ts';
import type { Sampling } from '../telemetry/run-trace.ts';
import type { Collector } from '../telemetry/send.ts';
import type { WorkerSettings } from './setting-table.ts';

export interface TelemetrySettings {
  /** Null: traces are not exported. */
  readonly traces: Collector | null;
  readonly metrics: Collector | null;
  /** Null: traces are not exported. */
  readonly sampling: Sampling | null;
  /** What all spans and metrics have in common. */
  readonly resource: Attributes;
  /** Whether spans have the texts of messages, parameters, results and errors. */
  readonly hasContent: boolean;
}

export interface ReadTelemetry {
  /** Null: nothing is exported, and nothing is stored for it. */
  readonly settings: TelemetrySettings | null;
  /** Values without an effect, as sentences. */
  readonly issues: readonly string[];
}

const SERVICE = 'cortex-edge';

/** The settings of each signal. */
const SIGNAL = {
  traces: { exporter: 'OTEL_TRACES_EXPORTER', endpoint: 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT' },
  metrics: { exporter: 'OTEL_METRICS_EXPORTER', endpoint: 'OTEL_EXPORTER_OTLP_METRICS_ENDPOINT' },
} as const;

const SAMPLERS: Readonly<Record<string, Omit<Sampling, 'ratio'> & { readonly ratio: number | null }>> = {
  always_on: { ratio: 1, followsParent: false },
  always_off: { ratio: 0, followsParent: false },
  traceidratio: { ratio: null, followsParent: false },
  parentbased_always_on: { ratio: 1, followsParent: true },
  parentbased_always_off: { ratio: 0, followsParent: true },
  parentbased_traceidratio: { ratio: null, followsParent: true },
};
const DEFAULT_SAMPLER = 'parentbased_always_on';

let latest: { readonly key: string; readonly read: ReadTelemetry } | null = null;

/** A Worker reads its settings with every request: the latest result is kept. */
export function parseTelemetry(env: WorkerSettings): ReadTelemetry {
  const given = Object.entries(env).filter(([name, value]) => name.startsWith('OTEL_') && Boolean(value));
  const key = JSON.stringify(given);
  if (latest?.key !== key) latest = { key, read: read(env) };
  return latest.read;
}

function read(env: WorkerSettings): ReadTelemetry {
  const issues: string[] = [];
  const flag = (name: keyof WorkerSettings): boolean => {
    const text = env[name]?.trim().toLowerCase() ?? '';
    if (!['', 'true', 'false'].includes(text)) issues.push(`${name} must be true or false, found ${quoted(text)}`);
    return text === 'true';
  };
  const headers = pairs(env, 'OTEL_EXPORTER_OTLP_HEADERS', issues);
  const endpoint = (signal: keyof typeof SIGNAL): Collector | null => {
    const names = SIGNAL[signal];
    const exporter = env[names.exporter]?.trim() ?? '';
    if (!['', 'otlp', 'none'].includes(exporter)) {
      issues.push(`${names.exporter} must be otlp or none, found ${quoted(exporter)}`);
    }
    if (exporter === 'none') return null;
    const own = env[names.endpoint]?.trim() ?? '';
    const base = env.OTEL_EXPORTER_OTLP_ENDPOINT?.trim() ?? '';
    if (own === '' && base === '') return null;
    const name = own === '' ? 'OTEL_EXPORTER_OTLP_ENDPOINT' : names.endpoint;
    const url = urlOf(own === '' ? base : own);
    if (url !== null) {
      if (own === '') url.pathname = `${url.pathname.replace(/\/+$/, '')}/v1/${signal}`;
      return { url: url.href, headers };
    }
    const issue = `${name} must be an HTTP(S) URL without a user (example: ${name}=http://127.0.0.1:4318)`;
    if (!issues.includes(issue)) issues.push(issue);
    return null;
  };
  const traces = endpoint('traces');
  const metrics = endpoint('metrics');
  const protocol = env.OTEL_EXPORTER_OTLP_PROTOCOL?.trim() ?? '';
  if (!['', 'http/json', 'http/protobuf'].includes(protocol)) {
    issues.push(`OTEL_EXPORTER_OTLP_PROTOCOL must be http/json, found ${quoted(protocol)}: a Worker cannot send gRPC`);
  }
  const sampling = samplingOf(env, issues);
  const attributes = pairs(env, 'OTEL_RESOURCE_ATTRIBUTES', issues);
  const name = env.OTEL_SERVICE_NAME?.trim() ?? '';
  const resource = {
    'service.version': VERSION,
    ...attributes,
    'service.name': name === '' ? (attributes['service.name'] ?? SERVICE) : name,
  };
  const hasContent = flag('OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT');
  const isOff = flag('OTEL_SDK_DISABLED') || (traces === null && metrics === null);
  const exported = traces === null ? null : sampling;
  return { settings: isOff ? null : { traces, metrics, sampling: exported, resource, hasContent }, issues };
}

function samplingOf(env: WorkerSettings, issues: string[]): Sampling {
  const { OTEL_TRACES_SAMPLER: given = '', OTEL_TRACES_SAMPLER_ARG: argument = '' } = env;
  const name = given.trim() === '' ? DEFAULT_SAMPLER : given.trim();
  const sampler = Object.hasOwn(SAMPLERS, name) ? SAMPLERS[name] : undefined;
  if (sampler === undefined) {
    issues.push(`OTEL_TRACES_SAMPLER must be one of ${Object.keys(SAMPLERS).join(', ')}, found ${quoted(name)}`);
    return { ratio: 1, followsParent: true };
  }
  if (sampler.ratio !== null) return { ...sampler, ratio: sampler.ratio };
  const ratio = argument.trim() === '' ? 1 : Number(argument);
  if (ratio >= 0 && ratio <= 1) return { ...sampler, ratio };
  issues.push(`OTEL_TRACES_SAMPLER_ARG must be a number from 0 to 1, found ${quoted(argument)}`);
  return { ...sampler, ratio: 1 };
}

/** A user belongs into a header: requests to URLs with one fail. */
function urlOf(text: string): URL | null {
  const url = /^https?:\/\//i.test(text) && URL.canParse(text) ? new URL(text) : null;
  return url === null || url.username !== '' || url.password !== '' ? null : url;
}

/** `key=value,key=value`, percent-encoded. The values may be secret, so that an issue does not contain them. */
function pairs(
  env: WorkerSettings,
  name: 'OTEL_EXPORTER_OTLP_HEADERS' | 'OTEL_RESOURCE_ATTRIBUTES',
  issues: string[],
): Readonly<Record<string, string>> {
  const read: [string, string][] = [];
  for (const item of (env[name] ?? '').split(',')) {
    if (item.trim() === '') continue;
    const at = item.indexOf('=');
    const key = item.slice(0, Math.max(0, at)).trim();
    const value = decoded(item.slice(at + 1).trim());
    const isRefused = name === 'OTEL_EXPORTER_OTLP_HEADERS' && !isHeader(key, value ?? '');
    if (key === '' || value === null || isRefused) {
      issues.push(`${name} must be a list of key=value pairs, separated by commas, with percent-encoded values`);
      continue;
    }
    // Header names have no case. The content type is that of the body.
    const known = name === 'OTEL_EXPORTER_OTLP_HEADERS' ? key.toLowerCase() : key;
    if (known !== 'content-type') read.push([known, value]);
  }
  return Object.fromEntries(read);
}

function isHeader(key: string, value: string): boolean {
  return /^[\w!#$%&'*+.^`|~-]+$/.test(key) && /^[\t\x20-\x7e]*$/.test(value);
}

function decoded(text: string): string | null {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}

const SHOWN_CHARS = 60;

function quoted(text: string): string {
  return JSON.stringify(text.slice(0, SHOWN_CHARS));
}
