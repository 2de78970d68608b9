import { describe, expect, test } from 'vitest';
import { parseTelemetry } from '../../src/settings/telemetry.ts';

const ENDPOINT = 'http://127.0.0.1:4318';
const read = (more: object): ReturnType<typeof parseTelemetry> =>
  parseTelemetry({ OTEL_EXPORTER_OTLP_ENDPOINT: ENDPOINT, ...more });

describe('[O1] settings', () => {
  test('without an endpoint, nothing is exported', () => {
    expect(parseTelemetry({})).toEqual({ settings: null, issues: [] });
    expect(parseTelemetry({ OTEL_SERVICE_NAME: 'x' }).settings).toBeNull();
    expect(read({ OTEL_SDK_DISABLED: 'true' }).settings).toBeNull();
    expect(read({ OTEL_TRACES_EXPORTER: 'none', OTEL_METRICS_EXPORTER: 'none' }).settings).toBeNull();
  });

  test('one endpoint is for both signals; an endpoint of a signal is used as it is', () => {
    expect(read({}).settings).toMatchObject({
      traces: { url: `${ENDPOINT}/v1/traces` },
      metrics: { url: `${ENDPOINT}/v1/metrics` },
      sampling: { ratio: 1, followsParent: true },
      hasContent: false,
      resource: { 'service.name': 'cortex-edge' },
    });
    expect(read({ OTEL_EXPORTER_OTLP_ENDPOINT: `${ENDPOINT}/otlp/` }).settings?.traces?.url).toBe(
      `${ENDPOINT}/otlp/v1/traces`,
    );
    expect(parseTelemetry({ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'https://t.example/x' }).settings).toMatchObject({
      traces: { url: 'https://t.example/x' },
      metrics: null,
    });
    expect(read({ OTEL_METRICS_EXPORTER: 'none' }).settings?.metrics).toBeNull();
    expect(read({ OTEL_TRACES_EXPORTER: 'none' }).settings).toMatchObject({ traces: null, sampling: null });
    expect(read({ OTEL_EXPORTER_OTLP_ENDPOINT: `${ENDPOINT}?key=a` }).settings?.traces?.url).toBe(
      `${ENDPOINT}/v1/traces?key=a`,
    );
  });

  test('headers and attributes are lists of pairs with encoded values', () => {
    const { settings, issues } = read({
      OTEL_EXPORTER_OTLP_HEADERS: 'Authorization=Bearer%20abc, x-scope=a, Content-Type=text/plain',
      OTEL_RESOURCE_ATTRIBUTES: 'service.name=other,deployment.environment.name=prod',
    });
    expect(issues).toEqual([]);
    expect(settings?.traces?.headers).toEqual({ authorization: 'Bearer abc', 'x-scope': 'a' });
    expect(settings?.resource).toMatchObject({ 'service.name': 'other', 'deployment.environment.name': 'prod' });
    expect(
      read({ OTEL_SERVICE_NAME: 'own', OTEL_RESOURCE_ATTRIBUTES: 'service.name=other' }).settings?.resource,
    ).toMatchObject({ 'service.name': 'own' });
  });

  test.each([
    ['always_off', '', { ratio: 0, followsParent: false }],
    ['traceidratio', '0.25', { ratio: 0.25, followsParent: false }],
    ['parentbased_traceidratio', '', { ratio: 1, followsParent: true }],
  ])('sampler %s %s', (name, argument, sampling) => {
    const { settings, issues } = read({ OTEL_TRACES_SAMPLER: name, OTEL_TRACES_SAMPLER_ARG: argument });
    expect([settings?.sampling, issues]).toEqual([sampling, []]);
  });

  test.each([
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'localhost:4318' }, 'OTEL_EXPORTER_OTLP_ENDPOINT must be an HTTP(S) URL'],
    [
      { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://user:pass@127.0.0.1:4318' },
      'OTEL_EXPORTER_OTLP_ENDPOINT must be an HTTP(S) URL',
    ],
    [{ OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' }, 'OTEL_EXPORTER_OTLP_PROTOCOL must be http/json, found "grpc"'],
    [{ OTEL_TRACES_SAMPLER: 'sometimes' }, 'OTEL_TRACES_SAMPLER must be one of always_on'],
    [{ OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: '2' }, 'OTEL_TRACES_SAMPLER_ARG must be a number'],
    [{ OTEL_TRACES_EXPORTER: 'zipkin' }, 'OTEL_TRACES_EXPORTER must be otlp or none'],
    [{ OTEL_SDK_DISABLED: 'yes' }, 'OTEL_SDK_DISABLED must be true or false'],
    [{ OTEL_EXPORTER_OTLP_HEADERS: 'a b=c' }, 'OTEL_EXPORTER_OTLP_HEADERS must be a list'],
    [{ OTEL_EXPORTER_OTLP_HEADERS: 'a=%0a' }, 'OTEL_EXPORTER_OTLP_HEADERS must be a list'],
    [{ OTEL_RESOURCE_ATTRIBUTES: '=x' }, 'OTEL_RESOURCE_ATTRIBUTES must be a list'],
  ])('%j is reported once', (given, issue) => {
    const { issues } = read(given);
    expect(issues).toHaveLength(1);
    expect(issues[0]).toContain(issue);
  });

  test('an issue does not contain the value of a header, which may be a key', () => {
    expect(read({ OTEL_EXPORTER_OTLP_HEADERS: 'secret-without-a-name' }).issues.join('')).not.toContain('secret');
  });
});
