/** Session ids contain a check, so that an invented id is refused without starting an object (H1). */
import { expect, test } from 'vitest';
import { identityOf } from '../../src/durable/session-ids.ts';
import { mayBeSession, newSessionId, sessionIdOf } from '../../src/durable/session-ids.ts';
import { call, execute, newSession } from './client.ts';
import { here } from './bindings.ts';

test('[H1] only issued ids pass the check', async () => {
  const id = await newSessionId(here);
  expect(id).toMatch(/^ses_[0-9a-f]{32}$/);
  expect(await mayBeSession(here, id)).toBe(true);
  for (let at = 4; at < id.length; at += 1) {
    const other = id.slice(0, at) + (id[at] === '0' ? '1' : '0') + id.slice(at + 1);
    expect(await mayBeSession(here, other)).toBe(false);
  }
  for (const wrong of ['', 'ses_', id.toUpperCase(), `${id}0`, ` ${id}`, `ses_${'0'.repeat(32)}`]) {
    expect(await mayBeSession(here, wrong)).toBe(false);
  }
});

test('[M6] [M7] repeated starts of the same session give the same id', async () => {
  const id = await sessionIdOf(here, 'child of x');
  expect(await sessionIdOf(here, 'child of x')).toBe(id);
  expect(await sessionIdOf(here, 'child of y')).not.toBe(id);
  expect(await mayBeSession(here, id)).toBe(true);
});

test('a deployment with sessions from before the check continues to accept any id', async () => {
  await here.SCHEDULES.getByName('bundled').keep([], null);
  const before = here.IDENTITY.getByName('as if from before');
  expect(await before.identity()).toMatchObject({ checked: false });
  expect((await identityOf(here)).checked).toBe(true);
});

test('[H1] sessions and runs are found by the ids that the API returns', async () => {
  const session = await newSession();
  expect((await call(`/agent/session/${session}`)).status).toBe(200);
  const run = await execute('<response final="true">yes</response>');
  expect((await call(`/executions/${run.run_id}`)).status).toBe(200);
  expect((await call(`/agent/session/ses_${'1'.repeat(32)}`)).status).toBe(404);
});
