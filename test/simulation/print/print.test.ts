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
    expect(await printed(EVICTION)).toBe(
      `
The history:
  At 0 ms, a client sends message 0.
    Generation 0 is written, and finishes with "stop":
      <action type="tool" mode="async" id="m0g0a0">{"name":"unsafe","parameters":{"token":"m0g0a0","values":[]},"retry":{"max_attempts":4,"delay":0.05}}</action>
      m0g0a0: every attempt: ok after 100 ms
  At 50 ms, the host is evicted; all unsynced writes are lost.

What happened:
      0 ms  » a client sends message 0
      0 ms  host 1 starts
      0 ms    #1 agent_started
      0 ms    #2 iteration_started
      0 ms  the model is called for message 0, generation 0
      0 ms  message 0 is answered: run 1
      0 ms    #3 action_queued  m0g0a0
      0 ms    #4 action_started  m0g0a0  attempt: 1
      0 ms  m0g0a0 takes effect (unsafe), attempt 1
      0 ms  message 0, generation 0 was delivered: stop
      0 ms    #5 plan_generated
     50 ms  » the host is evicted; all unsynced writes are lost
     50 ms  host 1 ends: evicted
  30000 ms  host 2 starts
  30000 ms    #6 warning  code: run_recovered  message: The host was restarted during this run; the run continues (r…
  30000 ms    #7 action_failed  m0g0a0  error: outcome_unknown  attempt: 1
  30000 ms    #8 iteration_completed  not final
  30000 ms    #9 iteration_started
  30000 ms  the model is called for message 0, generation 1
  30000 ms    #10 response_started  final
  30000 ms    #11 response_completed  content: The values are here.  final
  30000 ms  message 0, generation 1 was delivered: stop
  30000 ms    #12 iteration_completed  final
  30000 ms    #13 agent_completed  response: The values are here.  failed_actions: 1
  At the end, run 1 is completed.`.trim(),
    );
  });

  test('mentions only settings that are not usual', async () => {
    const agent = { ...EVICTION.agent, supervised: true, maxParallelActions: 2 };
    const decisions = [{ afterMs: 70, approved: false, times: 2 }];
    const text = await printed({ ...EVICTION, agent, decisions, faults: [] });
    expect(text).toContain('  The agent: at most 2 parallel actions; unsafe actions need an approval.\n');
    expect(text).toContain('  Approval 1: denied 70 ms after it was seen, 2 times.\n');
    expect(text).toContain('70 ms  the decision to deny approval 1 is answered: accepted\n');
  });

  test('says which requests and faults there are', async () => {
    const [message] = EVICTION.messages;
    const text = await printed({
      ...EVICTION,
      messages: message === undefined ? [] : [{ ...message, type: 'text', ifBusy: 'reject', at: 5 }],
      requests: [
        { type: 'reader', at: 7, fromEnd: false, pauseMs: 20, reads: 3 },
        { type: 'cancel', at: 60 },
      ],
      faults: [
        { type: 'crash', life: 1, call: 30, keeps: 0.5 },
        { type: 'write', life: 2, statement: 200 },
        { type: 'statement', in: 'fork', does: 'read', names: null, statement: 4 },
        { type: 'statement', in: 'session', does: 'write', names: 'events', statement: 3 },
        { type: 'clock', at: 10, byMs: -5_000 },
        { type: 'full_disk', at: 20, forMs: 50 },
        { type: 'index', at: 30, forMs: 0, works: false },
        { type: 'index', at: 30, forMs: 60, works: false },
        { type: 'index', at: 31, forMs: 60, works: true },
      ],
    });
    const sentences = [
      'At 5 ms, a client posts the text of message 0.',
      'At 7 ms, reader 0 connects at the first event, pauses 20 ms after each read, and reconnects after 3 reads.',
      'At 60 ms, a client cancels the open runs.',
      'Host 1 crashes at its call 30 of a port; the last 50 % of the unsynced writes are lost.',
      'The write 200 of host 2 fails.',
      'The read 4 of its forks fails.',
      'The write 3 of the session that names events fails.',
      'At 10 ms, the clock of the hosts jumps back 5000 ms.',
      'At 20 ms, the disk is full.',
      'At 70 ms, the disk has space again.',
      'At 0 ms, the index of all sessions answers.',
      'At 30 ms, the index of all sessions is away.',
      'At 31 ms, the index of all sessions loses its answers.',
      'At 90 ms, the index of all sessions answers again.',
    ];
    for (const sentence of sentences) expect(text).toContain(`  ${sentence}\n`);
  });

  test('that did not end is printed without a timeline', () => {
    expect(historyText(EVICTION, null)).toContain(
      'The history did not end. A timeline is printed only for a history that ends.',
    );
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
