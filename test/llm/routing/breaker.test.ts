import { describe, expect, test } from 'vitest';
import { limits } from '../../../src/domain/limits.ts';
import { Breaker } from '../../../src/llm/routing/breaker.ts';
import { Endpoints } from '../../../src/llm/routing/endpoints.ts';
import type { Endpoint, EndpointIdentity, EndpointReport } from '../../../src/llm/routing/endpoints.ts';
import { VirtualClock } from '../../../testing/virtual-clock.ts';

function opened(): { breaker: Breaker; clock: VirtualClock } {
  const clock = new VirtualClock();
  const breaker = new Breaker(clock);
  for (let n = 0; n < limits.breakerFailures; n += 1) {
    expect(breaker.enter()).toBeNull();
    breaker.failed();
  }
  return { breaker, clock };
}

const at = (some: Partial<EndpointIdentity>): EndpointIdentity => ({
  owner: null,
  address: 'http://a/v1',
  key: null,
  name: 'http://a',
  ...some,
});

describe('[L2] a circuit breaker', () => {
  test('opens after a number of failures in a row, and reports the remaining time', () => {
    const { breaker, clock } = opened();
    expect(breaker.state).toBe('open');
    clock.advance(1_000);
    expect(breaker.enter()).toBe(limits.breakerOpenMs - 1_000);
  });

  test('stays closed after a success in between', () => {
    const breaker = new Breaker(new VirtualClock());
    for (let n = 0; n < limits.breakerFailures * 3; n += 1) {
      if (n % limits.breakerFailures === limits.breakerFailures - 1) breaker.succeeded();
      else breaker.failed();
    }
    expect(breaker.state).toBe('closed');
  });

  test('allows one call when its time is over; a success closes it', () => {
    const { breaker, clock } = opened();
    clock.advance(limits.breakerOpenMs);
    expect(breaker.state).toBe('half_open');
    expect(breaker.enter()).toBeNull();
    expect(breaker.enter()).not.toBeNull();
    breaker.succeeded();
    expect(breaker.state).toBe('closed');
    expect(breaker.enter()).toBeNull();
  });

  test('doubles its open time with each failed trial, up to a limit', () => {
    const { breaker, clock } = opened();
    for (let openMs: number = limits.breakerOpenMs; openMs < limits.breakerOpenMaxMs * 4; openMs *= 2) {
      const expected = Math.min(openMs, limits.breakerOpenMaxMs);
      expect(breaker.enter()).toBe(expected);
      clock.advance(expected);
      expect(breaker.enter()).toBeNull();
      breaker.failed();
    }
  });

  test('a cancelled trial allows another one', () => {
    const { breaker, clock } = opened();
    clock.advance(limits.breakerOpenMs);
    expect(breaker.enter()).toBeNull();
    breaker.abandoned();
    expect(breaker.state).toBe('half_open');
    expect(breaker.enter()).toBeNull();
  });

  test('opens at once for the time that the endpoint requests, up to a limit', () => {
    const clock = new VirtualClock();
    const breaker = new Breaker(clock);
    breaker.failed(120_000);
    expect(breaker.enter()).toBe(120_000);
    const other = new Breaker(clock);
    other.failed(86_400_000);
    expect(other.enter()).toBe(limits.breakerOpenMaxMs);
  });

  test('ignores failures of calls that began before it opened', () => {
    const { breaker, clock } = opened();
    clock.advance(10_000);
    breaker.failed();
    expect(breaker.enter()).toBe(limits.breakerOpenMs - 10_000);
  });
});

test('[L2] changes are reported with the host and without the path', () => {
  const clock = new VirtualClock();
  const told: EndpointReport[] = [];
  const endpoint = new Endpoints(clock, (report) => told.push(report)).of(at({ address: 'http://a/v1' }));
  for (let n = 0; n < limits.breakerFailures; n += 1) endpoint.breakerOf('m').failed();
  clock.advance(limits.breakerOpenMs);
  endpoint.breakerOf('m').enter();
  endpoint.breakerOf('m').succeeded();
  expect(told.map(({ state }) => state)).toEqual(['open', 'half_open', 'closed']);
  expect(told[0]).toEqual({
    endpoint: 'http://a',
    model: 'm',
    key: null,
    state: 'open',
    failures: limits.breakerFailures,
    next_try_at: clock.now(),
  });
});

test('[L2] a learned latency follows new values, and expires', () => {
  const clock = new VirtualClock();
  const endpoint = new Endpoints(clock).of(at({}));
  expect(endpoint.latencyOf('m')).toBeNull();
  endpoint.learnLatency('m', 100);
  endpoint.learnLatency('m', 200);
  expect(endpoint.latencyOf('m')).toBeGreaterThan(100);
  expect(endpoint.latencyOf('m')).toBeLessThan(200);
  clock.advance(limits.latencySampleMs + 1);
  expect(endpoint.latencyOf('m')).toBeNull();
});

describe('[L2] the state of an endpoint for one API key', () => {
  const open = (endpoint: Endpoint, model = 'm'): void => endpoint.breakerOf(model).failed(limits.retryAfterMaxMs);

  test('is separate for another key, with the same address and secret name', () => {
    const endpoints = new Endpoints(new VirtualClock());
    const anns = endpoints.of(at({ owner: 'ann', key: 'TOOL_KEY' }));
    open(anns);
    anns.refusedBy('m').add('temperature');
    anns.learnLatency('m', 1);
    for (const owner of ['bob', null, 'key:ann', 'Ann']) {
      const other = endpoints.of(at({ owner, key: 'TOOL_KEY' }));
      expect(other.breakerOf('m').state).toBe('closed');
      expect([...other.refusedBy('m')]).toEqual([]);
      expect(other.latencyOf('m')).toBeNull();
    }
    expect(endpoints.of(at({ owner: 'ann', key: 'TOOL_KEY' }))).toBe(anns);
  });

  test('is separate for each secret and model', () => {
    const endpoints = new Endpoints(new VirtualClock());
    open(endpoints.of(at({ key: 'TOOL_ONE' })));
    expect(endpoints.of(at({ key: 'TOOL_ONE' })).breakerOf('other').state).toBe('closed');
    expect(endpoints.of(at({ key: 'TOOL_TWO' })).breakerOf('m').state).toBe('closed');
    expect(endpoints.of(at({ key: null })).breakerOf('m').state).toBe('closed');
    expect(endpoints.of(at({ key: 'TOOL_ONE' })).breakerOf('m').state).toBe('open');
  });

  test('is bounded per key, so that one key cannot evict the state of another', () => {
    const endpoints = new Endpoints(new VirtualClock());
    const first = endpoints.of(at({ owner: 'ann', address: '0' }));
    for (let n = 0; n <= limits.knownEndpoints * 2; n += 1) endpoints.of(at({ owner: 'bob', address: String(n) }));
    expect(endpoints.of(at({ owner: 'ann', address: '0' }))).toBe(first);
    for (let n = 0; n <= limits.knownEndpoints; n += 1) endpoints.of(at({ owner: 'ann', address: String(n) }));
    expect(endpoints.of(at({ owner: 'ann', address: '0' }))).not.toBe(first);
    open(first, 'kept');
    for (let n = 0; n < limits.knownModels; n += 1) first.refusedBy(String(n));
    expect(first.breakerOf('kept').state).toBe('closed');
  });
});
