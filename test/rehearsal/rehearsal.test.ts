import { expect, test } from 'vitest';
import { REHEARSALS, rehearse } from '../../bench/rehearsal/rehearse.ts';

test('the rehearsal has forty distinct parts', () => {
  expect(new Set(REHEARSALS.map(({ task, behaviour }) => `${task.name}/${behaviour.name}`)).size).toBe(40);
});

test.each(REHEARSALS.map((part) => [part.task.name, part.behaviour.name, part.shape, part] as const))(
  '%s, by a model that %s (%s), completes correctly with at most one additional iteration',
  async (_task, _behaviour, _shape, part) => {
    const { result, iterations } = await rehearse(part);
    expect(result).toMatchObject({ status: 'completed' });
    expect(result.response).toContain(part.task.expect);
    expect(iterations).toBeLessThanOrEqual(part.behaviour.careful + (part.behaviour.sloppy ? 1 : 0));
  },
);
