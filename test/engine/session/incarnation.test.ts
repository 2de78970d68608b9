/** The incarnation of a session in the ids of what leaves it (T5). */
import { describe, expect, test } from 'vitest';
import { incarnationIn, sessionKey } from '../../../src/domain/session.ts';
import { artifactIdOf, eventOfArtifact, runIdOf, runNumberOf } from '../../../src/journal/run-id.ts';
import { newJournal } from '../../journal/journal-kit.ts';
import { fakeRunner } from '../../executors/support.ts';
import { openNodeSql } from '../../support/node-sql.ts';
import { runText, sessionKit } from '../../support/session-kit.ts';

const ID = `ses_${'a'.repeat(32)}`;
const HEX = 'a'.repeat(32);
const FIRST = '0123456789ab';
const SECOND = 'ba9876543210';

describe('[T5] an id', () => {
  test('of a run has the incarnation between its session and its number; without one it stays as it was', () => {
    const session = { session_id: ID, incarnation: FIRST };
    expect(sessionKey(session)).toBe(`${ID}_${FIRST}`);
    expect(runIdOf(session, 3)).toBe(`run_${HEX}_${FIRST}_3`);
    expect(runNumberOf(runIdOf(session, 3))).toBe(3);
    expect(incarnationIn(runIdOf(session, 3))).toBe(FIRST);
    expect([sessionKey({ session_id: ID }), runIdOf({ session_id: ID }, 3)]).toEqual([ID, `run_${HEX}_3`]);
    expect(incarnationIn(`run_${HEX}_3`)).toBeNull();
    // A number with as many digits as an incarnation is a number.
    expect(incarnationIn(`run_${HEX}_123456789012`)).toBeNull();
  });

  test('of an artifact has it, too', () => {
    expect([artifactIdOf(FIRST, 12), artifactIdOf(FIRST, 12, 1)]).toEqual([`art_${FIRST}_12`, `art_${FIRST}_12_1`]);
    expect([artifactIdOf(null, 12), artifactIdOf(null, 12, 1)]).toEqual(['art_12', 'art_12_1']);
    for (const id of ['art_12', 'art_12_1', `art_${FIRST}_12`, `art_${FIRST}_12_1`])
      expect(eventOfArtifact(id)).toBe(12);
    for (const id of [`art_${FIRST}`, `art_${FIRST}_x`, `art__12`, 'art_']) expect(eventOfArtifact(id)).toBeNull();
  });
});

/** A session with this incarnation runs one python action. */
async function worked(incarnation: string) {
  const sql = openNodeSql();
  newJournal(sql, { incarnation });
  const runner = fakeRunner({ stdout: 'done' });
  const kit = await sessionKit({ sql, runner });
  const text = `<action type="python" id="p">{"code":"1"}</action><action type="tool" id="t">{"name":"echo","parameters":{"text":"${'x'.repeat(200_000)}"}}</action><response final="true">$p</response>`;
  const result = await runText(kit, text);
  const { artifacts } = await kit.session.read().artifacts(0);
  return { kit, result, job: runner.jobs[0], artifacts };
}

describe('[T5] two sessions with the same id', () => {
  test('have no job, reservation, run or artifact in common', async () => {
    const [one, other] = [await worked(FIRST), await worked(SECOND)];
    expect([one.job?.session, other.job?.session]).toEqual([`${ID}_${FIRST}`, `${ID}_${SECOND}`]);
    expect(one.job?.id).toBe(`${ID}_${FIRST}/1/1/0/1`);
    expect(other.job?.id).toBe(`${ID}_${SECOND}/1/1/0/1`);
    expect(one.result.run_id).not.toBe(other.result.run_id);
    const [artifact] = one.artifacts;
    expect(artifact?.id).toMatch(new RegExp(`^art_${FIRST}_`));
    expect(other.artifacts[0]?.id).toBe(artifact?.id.replace(FIRST, SECOND));
    await expect(other.kit.session.read().artifact(artifact?.id ?? '')).rejects.toMatchObject({
      code: 'unknown_artifact',
    });
    expect(() => other.kit.session.run(one.result.run_id)).toThrow(/no run/i);
  });
});
