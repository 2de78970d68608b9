import { expect, test } from 'vitest';
import { tourFacts } from '../../../console/session/tour-steps.ts';
import type { SessionEvent } from '../../../src/client/index.ts';

function events(...list: readonly (readonly [type: string, timestamp: number, iteration?: number])[]): SessionEvent[] {
  return list.map(([type, timestamp, iteration = 1], index) => ({
    seq: index + 1,
    type,
    timestamp,
    iteration,
    session_id: 's',
    run_id: 'r',
    action_id: 'a',
    data: { attempt: 1 },
  })) as unknown as SessionEvent[];
}

test('[U3] the tour counts the actions that began while the model was writing', () => {
  const facts = tourFacts(
    events(
      ['iteration_started', 0],
      ['action_started', 10],
      ['action_started', 20],
      ['response_completed', 30],
      ['action_started', 40],
    ),
  );
  expect(facts).toEqual(['2 of 3 actions started before the model had finished.', 'The model was called once.']);
});

test('[U3] the tour says nothing that did not happen', () => {
  expect(tourFacts(events(['iteration_started', 0], ['response_completed', 30]))).toEqual([]);
  const late = events(
    ['iteration_started', 0],
    ['response_completed', 30],
    ['action_started', 40],
    ['iteration_started', 50, 2],
  );
  expect(tourFacts(late)).toEqual(['The model was called 2 times.']);
});

test('[U3] the tour mentions an approval that was decided', () => {
  const list = events(['iteration_started', 0], ['approval_resolved', 5], ['action_started', 10], ['usage', 9]);
  expect(tourFacts(list).at(-1)).toContain('after your approval');
});
