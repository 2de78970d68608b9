import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { checkHistory } from '../check.ts';
import type { History } from '../history.ts';
import { readHistory } from '../stored.ts';
import { historyText, violationsText } from './print.ts';

const { history: EVICTION } = readHistory(join(import.meta.dirname, '../histories/unsafe-action-and-eviction.json'));

async function printed(history: History): Promise<string> {
  return historyText(history, (await checkHistory(history)).seen);
}

describe('a printed history', () => {
  test('says what the model writes, what fails, and what happened when', async () => {
    const text = await printed(EVICTION);
    expect(text).toMatch(
      /^The history:\n {2}0 ms {2}0: message\n {4}generation 0:\n {6}<action .*<\/action>\n {6}m0g0a0: \[\{"ms":100,"end":"ok"}]\n {2}50 ms {2}eviction\n/,
    );
    const shown = [
      '0 ms  » message',
      '0 ms    #4 action_started  run 1  m0g0a0  attempt: 1',
      '50 ms  » eviction',
      '50 ms  host_ended  life: 1  why: evicted',
      '30000 ms  host_started  life: 2',
      '30000 ms    #7 action_failed  run 1  m0g0a0  error: outcome_unknown  attempt: 1',
      'At the end, run 1 is completed.',
    ].map((line) => text.indexOf(` ${line}`));
    expect(shown).not.toContain(-1);
    expect(shown).toEqual(shown.toSorted((a, b) => a - b));
    expect(text.match(/ host_/g)).toHaveLength(3);
  });

  test('mentions only values that are not usual', async () => {
    const text = await printed({
      ...EVICTION,
      agent: { ...EVICTION.agent, supervised: true, maxParallelActions: 2 },
      decisions: [{ afterMs: 70, approved: false, times: 2 }],
      requests: [{ type: 'reader', at: 7, fromEnd: false, pauseMs: 20, reads: 3 }],
      faults: [
        { type: 'crash', life: 2, call: 30, keeps: 0.5 },
        { type: 'clock', at: 10, byMs: -5_000 },
      ],
    });
    for (const line of [
      'agent maxParallelActions: 2  supervised: true',
      'approval 1: afterMs: 70  approved: false  times: 2',
      '7 ms  reader pauseMs: 20  reads: 3',
      'crash life: 2  call: 30  keeps: 0.5',
      '10 ms  clock byMs: -5000',
    ])
      expect(text).toContain(`  ${line}\n`);
  });

  test('that did not end is printed without a timeline', () => {
    expect(historyText(EVICTION, null)).toContain('The history did not end.');
  });

  test('violations are grouped by invariant, with what should hold', () => {
    const violations = [
      { invariant: 'one end', what: 'run 1, iteration 1, m0g0a0 ended 2 times' },
      { invariant: 'never blocks', what: 'no end after 5 ms' },
      { invariant: 'one end', what: 'run 1, iteration 1, m0g0a1 has no end' },
    ];
    expect(violationsText(violations)).toBe(
      [
        'Violated: one end. Every accepted action ends exactly once.',
        '  run 1, iteration 1, m0g0a0 ended 2 times',
        '  run 1, iteration 1, m0g0a1 has no end',
        'Violated: never blocks.',
        '  no end after 5 ms',
      ].join('\n'),
    );
  });
});
