/** The agent, with replies that this test writes instead of a model. It needs no key and does not wait. */
import { openSession, scripted } from 'cortex-edge/testing';
import 'cortex-edge/testing/vitest';
import { expect, test } from 'vitest';
import project from '../src/project.generated.ts';

test('counts days with its tool, and answers with the result', async () => {
  const session = await openSession(project, {
    agent: 'assistant',
    model: scripted(
      '<action type="tool" mode="async" id="d" name="days_between">{"from": "2026-12-01", "to": "2026-12-24"}</action>' +
        '<response final="true">$d.days days are left.</response>',
    ),
  });
  const run = await session.send('How many days from 1 to 24 December?');
  expect(run).toHaveCompleted();
  expect(run).toHaveCalled('days_between', { to: '2026-12-24' });
  expect(run).toHaveAnswered('23 days are left.');
});

test('tells the model about a wrong date, instead of failing', async () => {
  const session = await openSession(project, {
    agent: 'assistant',
    model: scripted(
      '<action type="tool" mode="async" id="d" name="days_between">{"from": "tomorrow", "to": "2026-12-24"}</action>' +
        '<response final="true">$d.days</response>',
      '<response final="true">Which date do you mean by tomorrow?</response>',
    ),
  });
  const run = await session.send('How many days until Christmas?');
  expect(run).toHaveAnswered(/Which date/);
  expect(session.requests[1]?.messages.at(-1)?.content).toContain('invalid_parameters');
});
