/** Conditions of actions (`when`): what their names mean, and what a missing value does (S2, P12). */
import { expect, test } from 'vitest';
import { eventsOf } from '../../support/events.ts';
import { runText, sessionKit } from '../../support/session-kit.ts';

const act = (id: string, more: object = {}): string =>
  `<action type="tool" mode="async" id="${id}">${JSON.stringify({ name: 'echo', parameters: { n: 1 }, ...more })}</action>`;

test('[P12] a name that means nothing fails the action; it does not count as null', async () => {
  const kit = await sessionKit();
  await runText(kit, act('a', { when: 'nosuch == null' }));
  expect(eventsOf(kit.events, 'action_completed')).toEqual([]);
  const [failed] = eventsOf(kit.events, 'action_failed');
  expect(failed?.data.error.message).toContain('"nosuch" has no value here');
});

test('[S6] the name of a failed action counts as null', async () => {
  const kit = await sessionKit();
  await runText(
    kit,
    act('a', { parameters: { fail_times: 9 }, retry: 1, on_error: 'skip' }),
    act('b', { when: 'a == null' }),
  );
  expect(eventsOf(kit.events, 'action_completed').map(({ action_id: id }) => id)).toEqual(['b']);
});
