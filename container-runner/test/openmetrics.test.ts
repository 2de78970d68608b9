/** The reader of the tests reads what is valid, and nothing else (O2). */
import { expect, test } from 'vitest';

import { parseOpenMetrics } from './support/openmetrics.ts';

const HISTOGRAM = [
  '# TYPE h_seconds histogram',
  '# UNIT h_seconds seconds',
  'h_seconds_bucket{le="1.0"} 1 # {trace_id="a"} 0.5 1700000000.5',
  'h_seconds_bucket{le="+Inf"} 2',
  'h_seconds_sum 7.5',
  'h_seconds_count 2',
];

test('[O2] a valid document is read', () => {
  const lines = [
    '# TYPE c counter',
    String.raw`# HELP c A \"word\" and \\ and \n.`,
    String.raw`c_total{a="x,}\"\\\n",b=""} 1e3`,
    '# TYPE g gauge',
    'g NaN',
    ...HISTOGRAM,
    '# EOF',
    '',
  ];
  const families = parseOpenMetrics(lines.join('\n'));
  expect([...families.keys()]).toEqual(['c', 'g', 'h_seconds']);
  expect(families.get('c')?.samples).toEqual([
    { name: 'c_total', labels: { a: 'x,}"\\\n', b: '' }, value: 1_000, exemplar: null },
  ]);
  expect(families.get('h_seconds')?.samples[0]?.exemplar).toEqual({
    labels: { trace_id: 'a' },
    value: 0.5,
    timestamp: 1_700_000_000.5,
  });
});

test.each([
  ['no end', ['# TYPE g gauge', 'g 1', '']],
  ['something after the end', ['# EOF', 'g 1', '']],
  ['an empty line', ['# TYPE g gauge', '', 'g 1', '# EOF', '']],
  ['a name of a counter with its suffix', ['# TYPE c_total counter', 'c_total 1', '# EOF', '']],
  ['a gauge with the suffix of counters', ['# TYPE g_total gauge', 'g_total 1', '# EOF', '']],
  ['a counter without its suffix', ['# TYPE c counter', 'c 1', '# EOF', '']],
  ['a negative counter', ['# TYPE c counter', 'c_total -1', '# EOF', '']],
  ['a sample of no family', ['g 1', '# EOF', '']],
  ['an interrupted family', ['# TYPE g gauge', 'g{a="1"} 1', '# TYPE i gauge', '# TYPE g gauge', '# EOF', '']],
  ['a duplicate', ['# TYPE g gauge', 'g{a="1",b="2"} 1', 'g{b="2",a="1"} 1', '# EOF', '']],
  ['the not-a-number of prom-client', ['# TYPE g gauge', 'g Nan', '# EOF', '']],
  ['a raw quote in the help', ['# TYPE g gauge', '# HELP g A "word".', 'g 1', '# EOF', '']],
  ['a unit that the name does not end with', ['# TYPE g gauge', '# UNIT g seconds', 'g 1', '# EOF', '']],
  ['an exemplar of a gauge', ['# TYPE g gauge', 'g 1 # {a="b"} 1', '# EOF', '']],
  ['a comma at the end of labels', ['# TYPE g gauge', 'g{a="b",} 1', '# EOF', '']],
  ['an integer as a bound', [...HISTOGRAM, '# EOF', ''].map((line) => line.replace('1.0', '1'))],
  [
    'a count that is not the last bucket',
    [...HISTOGRAM, '# EOF', ''].map((line) => line.replace('_count 2', '_count 3')),
  ],
  ['no bucket +Inf', [...HISTOGRAM, '# EOF', ''].filter((line) => !line.includes('+Inf'))],
  ['an exemplar above its bucket', [...HISTOGRAM, '# EOF', ''].map((line) => line.replace('0.5 17', '1.5 17'))],
])('[O2] refuses %s', (_, lines) => {
  expect(() => parseOpenMetrics(lines.join('\n'))).toThrow();
});
