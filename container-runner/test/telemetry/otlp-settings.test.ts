/** OpenTelemetry's variables (O1). */
import { describe, expect, test } from 'vitest';

import { readConfig } from '../../config.ts';

const read = (variables: Record<string, string>): unknown =>
  readConfig({ RUNNER_SECRET: 'x'.repeat(32), ...variables }).spans;
const ENDPOINT = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector.example:4318' };

describe('the export of spans', () => {
  test.each([
    [{}],
    [{ OTEL_SERVICE_NAME: 'x', OTEL_EXPORTER_OTLP_HEADERS: 'a=b' }],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: '' }],
    [{ ...ENDPOINT, OTEL_SDK_DISABLED: 'true' }],
    [{ ...ENDPOINT, OTEL_SDK_DISABLED: 'TRUE' }],
    [{ ...ENDPOINT, OTEL_TRACES_EXPORTER: 'none' }],
  ])('[O1] is off with %j', (variables) => {
    expect(read(variables)).toBeNull();
  });

  test.each([
    [ENDPOINT, 'http://collector.example:4318/v1/traces'],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'https://c.example/otlp/' }, 'https://c.example/otlp/v1/traces'],
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: 'https://c.example/otlp?key=1' }, 'https://c.example/otlp/v1/traces?key=1'],
    [{ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'https://c.example/in' }, 'https://c.example/in'],
    [{ ...ENDPOINT, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'https://c.example/in' }, 'https://c.example/in'],
    [{ ...ENDPOINT, OTEL_SDK_DISABLED: 'false' }, 'http://collector.example:4318/v1/traces'],
    [{ ...ENDPOINT, OTEL_SDK_DISABLED: '1' }, 'http://collector.example:4318/v1/traces'],
    [
      { ...ENDPOINT, OTEL_TRACES_EXPORTER: 'otlp', OTEL_EXPORTER_OTLP_PROTOCOL: 'http/json' },
      'http://collector.example:4318/v1/traces',
    ],
  ])('[O1] with %j goes to %s', (variables, url) => {
    expect(read(variables)).toMatchObject({ url });
  });

  test('[O1] has the headers of both variables, and those for traces win', () => {
    expect(
      read({
        ...ENDPOINT,
        OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20a%3Db, x-team = one ,',
        OTEL_EXPORTER_OTLP_TRACES_HEADERS: 'x-team=two',
      }),
    ).toMatchObject({ headers: { authorization: 'Bearer a=b', 'x-team': 'two' } });
  });

  test('[O1] has the attributes of the resource, and the name of the service wins', () => {
    const attributes = 'service.name=a,deployment.environment.name=my%20stage';
    expect(read({ ...ENDPOINT, OTEL_RESOURCE_ATTRIBUTES: attributes })).toMatchObject({
      resource: { 'service.name': 'a', 'deployment.environment.name': 'my stage' },
    });
    expect(read({ ...ENDPOINT, OTEL_RESOURCE_ATTRIBUTES: attributes, OTEL_SERVICE_NAME: 'b' })).toMatchObject({
      resource: { 'service.name': 'b' },
    });
  });
});

test.each([
  ['OTEL_EXPORTER_OTLP_ENDPOINT', 'collector:4318'],
  ['OTEL_EXPORTER_OTLP_ENDPOINT', 'ftp://collector.example'],
  ['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', 'x'],
  ['OTEL_EXPORTER_OTLP_HEADERS', 'secret'],
  ['OTEL_EXPORTER_OTLP_HEADERS', '=secret'],
  ['OTEL_EXPORTER_OTLP_HEADERS', 'a=%0asecret'],
  ['OTEL_EXPORTER_OTLP_TRACES_HEADERS', 'a b=secret'],
  ['OTEL_RESOURCE_ATTRIBUTES', 'a=%secret'],
  ['OTEL_EXPORTER_OTLP_PROTOCOL', 'grpc'],
  ['OTEL_TRACES_EXPORTER', 'zipkin'],
])('[H8] %s=%j is refused with its name and without its value', (name, value) => {
  expect(() => read({ [name]: value })).toThrow(name);
  expect(() => read({ [name]: value })).not.toThrow('secret');
});
