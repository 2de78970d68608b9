import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { readTraceparent, writeTraceparent } from '../../src/domain/trace.ts';
import { runTrace } from '../../src/telemetry/run-trace.ts';
import { EVERYTHING } from '../support/otlp.ts';

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const SPAN = '00f067aa0ba902b7';
const RUN = 'run_00000000000000000000000000000001_aaaaaaaaaaaa_1';

describe('[O1] traceparent', () => {
  test.each([
    [`00-${TRACE}-${SPAN}-01`, true],
    [`00-${TRACE}-${SPAN}-00`, false],
    [`00-${TRACE}-${SPAN}-ff`, true],
    [` 00-${TRACE}-${SPAN}-01 `, true],
    // a later version may have more fields
    [`01-${TRACE}-${SPAN}-01-more`, true],
  ])('%s is read', (text, isSampled) => {
    expect(readTraceparent(text)).toEqual({ traceId: TRACE, spanId: SPAN, isSampled });
  });

  test.each([
    '',
    'x',
    `ff-${TRACE}-${SPAN}-01`,
    `00-${TRACE}-${SPAN}-01-more`,
    `00-${TRACE.toUpperCase()}-${SPAN}-01`,
    `00-${'0'.repeat(32)}-${SPAN}-01`,
    `00-${TRACE}-${'0'.repeat(16)}-01`,
    `00-${TRACE}-${SPAN}`,
    `00-${TRACE}-${SPAN}-1`,
    `00-${TRACE}-${SPAN}-01\n00-${TRACE}-${SPAN}-01`,
  ])('%j is ignored', (text) => {
    expect(readTraceparent(text)).toBeNull();
  });

  test('what is written is read as the same span', () => {
    const hex = (digits: number): fc.Arbitrary<string> =>
      fc.stringMatching(new RegExp(`^[0-9a-f]{${digits}}$`)).filter((text) => !/^0+$/.test(text));
    fc.assert(
      fc.property(hex(32), hex(16), fc.boolean(), (traceId, spanId, isSampled) => {
        const span = { traceId, spanId, isSampled };
        expect(readTraceparent(writeTraceparent(span))).toEqual(span);
      }),
    );
  });
});

describe('[O1] the spans of a run', () => {
  test('have the same ids each time, and different ones for each thing', () => {
    const ids = (): string[] => {
      const trace = runTrace(RUN, null, EVERYTHING);
      if (trace === null) throw new Error('the run is not traced');
      const spans = [
        trace.root(),
        trace.generation(1),
        trace.generation(2),
        trace.attempt({ iteration: 1, actionId: 'a', attempt: 1 }),
        trace.attempt({ iteration: 1, actionId: 'a', attempt: 2 }),
        trace.attempt({ iteration: 2, actionId: 'a', attempt: 1 }),
        trace.attempt({ iteration: 1, actionId: 'b', attempt: 1 }),
        trace.approval('a'),
      ];
      return [trace.traceId, ...spans.map(({ spanId }) => spanId)];
    };
    expect(ids()).toEqual(ids());
    expect(new Set(ids()).size).toBe(ids().length);
    expect(ids()[0]).toMatch(/^[0-9a-f]{32}$/);
    expect(ids()[1]).toMatch(/^[0-9a-f]{16}$/);
  });

  test('are in the trace of the caller', () => {
    const parent = { traceId: TRACE, spanId: SPAN, isSampled: true };
    expect(runTrace(RUN, parent, EVERYTHING)).toMatchObject({ traceId: TRACE, parent, isSampled: true });
  });

  test('without an export, the caller’s span is passed on, and nothing else', () => {
    const parent = { traceId: TRACE, spanId: SPAN, isSampled: true };
    const trace = runTrace(RUN, parent, null);
    expect([trace?.generation(1), trace?.attempt({ iteration: 1, actionId: 'a', attempt: 1 })]).toEqual([
      parent,
      parent,
    ]);
    expect(runTrace(RUN, null, null)).toBeNull();
  });
});

describe('[O1] sampling', () => {
  const isSampled = (parent: boolean | null, ratio: number, followsParent: boolean): boolean | undefined =>
    runTrace(RUN, parent === null ? null : { traceId: TRACE, spanId: SPAN, isSampled: parent }, {
      ratio,
      followsParent,
    })?.isSampled;

  test('follows the caller, or the ratio', () => {
    expect(isSampled(false, 1, true)).toBe(false);
    expect(isSampled(true, 0, true)).toBe(true);
    expect(isSampled(false, 1, false)).toBe(true);
    expect(isSampled(true, 0, false)).toBe(false);
    expect(isSampled(null, 0, true)).toBe(false);
    expect(isSampled(null, 1, true)).toBe(true);
  });

  test('takes about the wanted share of the traces', () => {
    const count = Array.from({ length: 2_000 }, (_, at) => `run_${at}`).filter(
      (run) => runTrace(run, null, { ratio: 0.25, followsParent: true })?.isSampled,
    ).length;
    expect(count / 2_000).toBeGreaterThan(0.2);
    expect(count / 2_000).toBeLessThan(0.3);
  });
});
