import { describe, expect, test } from 'vitest';
import * as fc from 'fast-check';
import { boundOf } from '../../../console/run/bound.ts';
import type { Bound } from '../../../console/run/bound.ts';
import { Trace } from '../../../console/run/trace.ts';
import { eventsOf, planned, queued, ran, sorted, START, started, traceOf } from './events.ts';

type Drafts = Parameters<typeof sorted>[0];

function measure(drafts: Drafts, now = 10_000): Bound {
  return boundOf(traceOf(sorted(drafts)), START + now);
}

function ended(at: number, iteration = 1): Drafts {
  return [
    [at, 'iteration_completed', { iteration, final: true }, undefined, iteration],
    [at, 'agent_completed', { response: '', iterations: iteration }, undefined, 0],
  ];
}

const approval = { approval_id: 'x', complete: true };
const error = { code: 'timeout', message: 'late', retryable: true };

describe('[U3] the lower bound', () => {
  test.each<[what: string, drafts: Drafts, expected: { bound: number; actual: number; path: string }]>([
    ['an answer without actions takes as long as its generation', ended(300), { bound: 300, actual: 300, path: '' }],
    [
      'independent actions: the one that ends last; its closing tag came at 100',
      [
        queued(50, 'a'),
        queued(100, 'b'),
        planned(150, [['a', 'b']]),
        ...ran(51, 151, 'a'),
        ...ran(110, 410, 'b'),
        ...ended(415),
      ],
      { bound: 400, actual: 415, path: '1.b' },
    ],
    [
      'a chain starts with the first closing tag, and queueing does not count',
      [
        queued(10, 'a'),
        queued(20, 'b', ['a']),
        planned(30, [['a'], ['b']]),
        ...ran(60, 160, 'a'),
        ...ran(200, 300, 'b'),
        ...ended(300),
      ],
      { bound: 210, actual: 300, path: '1.a 1.b' },
    ],
    [
      'a closing tag that comes after the dependency has ended',
      [
        queued(0, 'a'),
        ...ran(0, 50, 'a'),
        queued(200, 'b', ['a']),
        planned(210, [['a'], ['b']]),
        ...ran(201, 261, 'b'),
        ...ended(265),
      ],
      { bound: 260, actual: 265, path: '1.b' },
    ],
    [
      '[S7] attempts and the pauses between them are its own time, but not the queue after the pause',
      [
        queued(0, 'a'),
        [0, 'action_started', { attempt: 1 }, 'a'],
        [100, 'action_retrying', { attempt: 1, delay_ms: 50, error }, 'a'],
        [200, 'action_started', { attempt: 2 }, 'a'],
        planned(1, [['a']]),
        [300, 'action_completed', { output: 1, ms: 300, attempt: 2 }, 'a'],
        ...ended(300),
      ],
      { bound: 250, actual: 300, path: '1.a' },
    ],
    [
      '[J8] a person counts as own time',
      [
        queued(0, 'a'),
        planned(1, [['a']]),
        [10, 'approval_requested', approval, 'a'],
        [1_010, 'approval_resolved', { approval_id: 'x', approved: true }, 'a'],
        ...ran(1_060, 1_160, 'a'),
        ...ended(1_160),
      ],
      { bound: 1_100, actual: 1_160, path: '1.a' },
    ],
    [
      '[S4] no iteration waits for a fire_and_forget action',
      [queued(0, 'a', [], 'fire_and_forget'), planned(20, [['a']]), ...ended(20), ...ran(1, 5_000, 'a')],
      { bound: 20, actual: 20, path: '' },
    ],
    [
      '[S4] but what depends on it does',
      [
        queued(0, 'a', [], 'fire_and_forget'),
        queued(1, 'b', ['a']),
        planned(20, [['a'], ['b']]),
        ...ran(0, 300, 'a'),
        ...ran(310, 410, 'b'),
        ...ended(410),
      ],
      { bound: 400, actual: 410, path: '1.a 1.b' },
    ],
    [
      '[S4] a sync action holds the next one, as the plan shows',
      [
        queued(0, 's', [], 'sync'),
        queued(1, 'a'),
        planned(2, [['s'], ['a']]),
        ...ran(0, 100, 's'),
        ...ran(105, 205, 'a'),
        ...ended(205),
      ],
      { bound: 200, actual: 205, path: '1.s 1.a' },
    ],
    [
      '[S3] wait_for_all: false does not wait for the slower dependency',
      [
        queued(0, 'a'),
        queued(0, 'b'),
        queued(1, 'c', ['a', 'b']),
        planned(2, [['a', 'b'], ['c']]),
        ...ran(0, 50, 'a'),
        ...ran(0, 90, 'b'),
        ...ran(55, 155, 'c'),
        ...ended(155),
      ],
      { bound: 150, actual: 155, path: '1.a 1.c' },
    ],
    [
      'the bounds of the iterations are summed up',
      [
        queued(0, 'a'),
        planned(10, [['a']]),
        ...ran(0, 100, 'a'),
        [105, 'iteration_completed', { iteration: 1, final: false }],
        [110, 'iteration_started', { iteration: 2 }, undefined, 2],
        queued(120, 'b', ['a'], 'async', 2),
        planned(130, [['b']], 2),
        ...ran(125, 225, 'b', 2),
        ...ended(230, 2),
      ],
      { bound: 100 + 110, actual: 230, path: '1.a 2.b' },
    ],
    [
      'actions that never ran take no time',
      [
        queued(0, 'a'),
        queued(0, 'b', ['a']),
        planned(10, [['a'], ['b']]),
        [0, 'action_started', { attempt: 1 }, 'a'],
        [80, 'action_failed', { error, attempt: 1, ms: 80 }, 'a'],
        [81, 'action_skipped', { reason: 'dependency', because: 'a' }, 'b'],
        [81, 'action_rejected', { code: 'x', message: 'x', type: null, mode: null }, 'c'],
        ...ended(90),
      ],
      { bound: 80, actual: 90, path: '1.a' },
    ],
  ])('%s', (_, drafts, { bound, actual, path }) => {
    const result = measure([...started(), ...drafts]);
    expect({ bound: result.boundMs, actual: result.actualMs }).toEqual({ bound, actual });
    expect([...result.path].toSorted()).toEqual(path === '' ? [] : path.split(' ').toSorted());
  });

  test('while the run goes on, what has not ended lasts until now', () => {
    const drafts: Drafts = [
      ...started(),
      queued(10, 'a'),
      planned(20, [['a']]),
      [15, 'action_started', { attempt: 1 }, 'a'],
    ];
    expect(measure(drafts, 115)).toMatchObject({ boundMs: 110, actualMs: 115 });
    expect(measure([...started()], 70)).toMatchObject({ boundMs: 70, actualMs: 70 });
    expect(boundOf(new Trace(), START)).toMatchObject({ boundMs: 0, actualMs: 0, sequentialMs: 0 });
  });

  test('[S4] in sequence, only what the run waits for counts', () => {
    const late = [queued(0, 'late', [], 'fire_and_forget'), queued(0, 'a'), planned(20, [['late', 'a']])];
    const drafts: Drafts = [...started(), ...late, ...ran(1, 101, 'a'), ...ran(1, 9_000, 'late'), ...ended(110)];
    expect(measure(drafts).sequentialMs).toBe(20 + 100);
  });

  test('a cycle, which the runtime never accepts, ends too', () => {
    const drafts: Drafts = [
      ...started(),
      queued(0, 'a', ['b']),
      queued(0, 'b', ['a']),
      ...ran(1, 11, 'a'),
      ...ran(1, 11, 'b'),
    ];
    expect(measure([...drafts, ...ended(20)]).boundMs).toBeLessThanOrEqual(20);
  });

  test('it is never above the duration of a run that kept the rules', () => {
    const run = fc.array(
      fc.record({ tag: fc.nat(20), slot: fc.nat(50), ms: fc.nat(200), needs: fc.array(fc.nat(), { maxLength: 3 }) }),
      { minLength: 1, maxLength: 30 },
    );
    fc.assert(
      fc.property(run, (plans) => {
        let tag = 0;
        const ends: number[] = [];
        const drafts = plans.flatMap(({ tag: later, slot, ms, needs }, index) => {
          tag += later;
          const before = index === 0 ? [] : [...new Set(needs.map((need) => need % index))];
          const from = Math.max(tag, ...before.map((need) => ends[need] ?? 0)) + slot;
          ends.push(from + ms);
          return [
            queued(
              tag,
              `n${index}`,
              before.map((need) => `n${need}`),
            ),
            ...ran(from, from + ms, `n${index}`),
          ];
        });
        const { boundMs, actualMs } = measure([...started(), ...drafts, ...ended(Math.max(tag, ...ends))]);
        expect(boundMs).toBeLessThanOrEqual(actualMs);
      }),
    );
  });

  test('2,000 actions', () => {
    const drafts = Array.from({ length: 2_000 }, (_, index) => [
      queued(index, `n${index}`, index < 2 ? [] : [`n${index - 1}`, `n${index - 2}`]),
      ...ran(index * 2, index * 2 + 2, `n${index}`),
    ]).flat();
    const trace = traceOf(eventsOf(...started(), planned(0, []), ...drafts));
    const before = performance.now();
    const { path } = boundOf(trace, START + 10_000);
    expect(performance.now() - before).toBeLessThan(1_000);
    expect(path.size).toBeGreaterThan(1_000);
  });
});
