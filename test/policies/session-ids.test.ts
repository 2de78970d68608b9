import { expect, test } from 'vitest';
import { derivedSessionId, isSessionId, withCheck } from '../../src/policies/session-ids.ts';

const ours = { secret: 'a'.repeat(64) };
const theirs = { secret: 'b'.repeat(64) };
const invented = `ses_${'0'.repeat(32)}`;

test('the same start gives the same id, in one deployment only', async () => {
  const id = await derivedSessionId(ours, 'schedule x 5');
  expect(id).toMatch(/^ses_[0-9a-f]{32}$/);
  expect(await derivedSessionId(ours, 'schedule x 5')).toBe(id);
  expect(await derivedSessionId(ours, 'schedule x 6')).not.toBe(id);
  expect(await isSessionId(ours, id)).toBe(true);
  expect(await isSessionId(theirs, id)).toBe(false);
});

test('an invented id, and an id with any character changed, is refused', async () => {
  expect(await isSessionId(ours, invented)).toBe(false);
  const id = await withCheck(ours, invented);
  for (const at of [4, 20, 28, 35]) {
    const changed = id.slice(0, at) + (id[at] === 'f' ? 'e' : 'f') + id.slice(at + 1);
    expect(await isSessionId(ours, changed)).toBe(false);
  }
  expect(await isSessionId(ours, `${id}0`)).toBe(false);
});
