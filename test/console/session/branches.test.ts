import { describe, expect, test, vi } from 'vitest';
import type { HistoryMessage, SessionEvent } from '../../../src/client/index.ts';
import { canSendAgain, leafOf } from '../../../console/session/branches.ts';
import { RunModel } from '../../../console/session/run-model.ts';
import { steeredBy } from '../../../console/session/steered.ts';

describe('[C4] the newest run of the branch with a version of a message', () => {
  const run = (id: string, parent: string | null) => ({
    run_id: id,
    status: 'completed' as const,
    started_at: 1,
    ended_at: 2,
    parent_run: parent,
  });
  const runs = [run('1', null), run('2', '1'), run('3', '2'), run('2b', '1'), run('4', '3'), run('3b', '2')];
  test.each([
    ['1', '3b'],
    ['3', '4'],
    ['2b', '2b'],
    ['older than the list', 'older than the list'],
  ])('of %s', (version, leaf) => {
    expect(leafOf(runs, version)).toBe(leaf);
  });
});

describe('[C4] what can be sent again', () => {
  const sent: HistoryMessage = { role: 'user', content: 'q', run_id: '2', parent_run: null };
  test.each<[string, Partial<HistoryMessage>, boolean]>([
    ['a message', {}, true],
    ['another version of a message', { retry_of: '1', branches: ['1', '2'] }, true],
    ['an edited copy whose first version was not forked', { branches: ['2', '3'] }, true],
    ['an action that runs again', { retry_of: '1', parent_run: '1' }, false],
    [
      'an action that runs again beside another message',
      { retry_of: '1', parent_run: '1', branches: ['2', '3'] },
      false,
    ],
    ['a message into a run', { steered: true }, false],
    ['an answer', { role: 'assistant' }, false],
  ])('%s: %j', (_, more, can) => {
    expect(canSendAgain({ ...sent, ...more })).toBe(can);
  });

  test('a message of an earlier conversation cannot', () => {
    expect(canSendAgain({ role: 'user', content: 'q', seeded: true })).toBe(false);
  });
});

describe('[C5] messages that are sent into a run', () => {
  let seq = 0;
  const event = (type: string, iteration: number, data: object = {}): SessionEvent => {
    seq += 1;
    return { seq, type, session_id: 's', run_id: 'r', iteration, timestamp: seq, data } as unknown as SessionEvent;
  };
  const received = (iteration: number, content: string) =>
    event('message_received', iteration, { message_id: content, content });
  const shown = (run: RunModel) => run.steered.map(({ message }) => message.content);

  test('an event is a message of the user', () => {
    expect(steeredBy(received(2, 'hurry'))).toMatchObject({
      iteration: 2,
      message: { role: 'user', run_id: 'r', content: 'hurry', steered: true },
    });
    expect(steeredBy(event('iteration_started', 1))).toBe(null);
  });

  test('are shown at once; what the model has not seen before the end is the message of the next run', () => {
    const run = new RunModel('r');
    vi.stubGlobal('requestAnimationFrame', () => 0);
    for (const each of [event('agent_started', 0), event('iteration_started', 1), received(1, 'seen')]) run.apply(each);
    expect(shown(run)).toEqual(['seen']);
    run.apply(event('iteration_started', 2));
    run.apply(received(2, 'too late'));
    expect(shown(run)).toEqual(['seen', 'too late']);
    run.apply(event('agent_completed', 2, { response: '', usage: null }));
    expect(shown(run)).toEqual(['seen']);
    vi.unstubAllGlobals();
  });
});
