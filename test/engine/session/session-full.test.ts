/** The disk usage of a session is limited (J6): past the limit nothing new starts, and existing data stays readable. */
import { expect, test } from 'vitest';
import type { ActionOutcome } from '../../../src/domain/action.ts';
import { limits } from '../../../src/domain/limits.ts';
import { feedOf } from '../../support/definitions.ts';
import { openNodeSql } from '../../support/node-sql.ts';
import type { NodeSql } from '../../support/node-sql.ts';
import { runText, say, sessionKit, settle, resultOf, textOf } from '../../support/session-kit.ts';
import type { SessionKit } from '../../support/session-kit.ts';

const ECHO = (id: string): string =>
  `<action type="tool" mode="async" id="${id}">{"name":"echo","parameters":{"text":"${id}"}}</action>`;
const SAY = { ifBusy: 'queue', tokens: false } as const;

/** A database that reports the given size. */
function fillable(): NodeSql {
  const sql = openNodeSql();
  sql.sizeBytes = () => limits.sessionBytes - 1;
  return sql;
}

function fill(sql: NodeSql): void {
  sql.sizeBytes = () => limits.sessionBytes;
}

async function faultOf(kit: SessionKit, content: string, idempotencyKey: string | null = null): Promise<unknown> {
  return await kit.session.message({ ...SAY, content, idempotencyKey }).catch((fault: unknown) => fault);
}

test('[J6] a full session refuses messages; its conversation can be read and exported', async () => {
  const sql = fillable();
  const kit = await sessionKit({ sql, script: ['<response final="true">Hello.</response>'] });
  const first = await kit.session.message({ ...SAY, content: 'hi', idempotencyKey: 'k' });
  await kit.session.ended(first.run);
  fill(sql);
  const { lastSeq } = kit.session;
  const fault = await faultOf(kit, 'more');
  const message = `This session has reached ${limits.sessionBytes} bytes and accepts no further messages. It can still be read, exported and deleted; continue in a new session`;
  expect(fault).toMatchObject({ code: 'session_full', status: 507, message });
  expect([kit.session.lastSeq, kit.session.runCount]).toEqual([lastSeq, 1]);
  // An accepted message is still known by its key.
  expect(await faultOf(kit, 'hi', 'k')).toMatchObject({ runId: first.runId });
  expect(await kit.session.read().answer(kit.session.run(first.runId))).toBe('Hello.');
  expect((await textOf(kit.session.export())).split('\n').length).toBeGreaterThan(lastSeq);
  await kit.session.dispose('deleted');
});

test('[J6] a message that a full session refuses does not cancel the open approval', async () => {
  const sql = fillable();
  const kit = await sessionKit({
    sql,
    agent: (agent) => ({ ...agent, loop: { ...agent.loop, mode: 'supervised' } }),
  });
  const run = await runText(kit, '<action type="python" mode="async" id="a">{"code":"1"}</action>');
  fill(sql);
  expect(await faultOf(kit, 'more')).toMatchObject({ code: 'session_full' });
  await settle();
  expect(kit.session.approval(`apr_${'1'.repeat(32)}`).status).toBe('open');
  // The approved action does not start.
  await kit.session.resolveApproval(`apr_${'1'.repeat(32)}`, true, null);
  await settle();
  const [action] = (await resultOf(kit.session, kit.session.run(run.run_id))).actions;
  expect(action).toMatchObject({ status: 'failed', error: { code: 'session_full', retryable: false } });
});

test('[J6] if a session becomes full during a run, running actions end normally, and nothing new starts', async () => {
  const sql = fillable();
  const ends: ((outcome: ActionOutcome) => void)[] = [];
  const tool = async (): Promise<ActionOutcome> => await new Promise((end) => ends.push(end));
  const kit = await sessionKit({ sql, executors: { tool } });
  const after = `${ECHO('a')}<action type="tool" mode="async" id="b">{"name":"echo","depends_on":["a"],"parameters":{"text":"b"}}</action>`;
  const running = runText(kit, `${after}<response final="true">$a $b</response>`);
  await settle();
  fill(sql);
  ends[0]?.({ ok: true, output: 'done' });
  const { actions, status } = await running;
  expect(actions).toMatchObject([
    { id: 'a', status: 'completed' },
    {
      id: 'b',
      status: 'failed',
      error: {
        code: 'session_full',
        message: expect.stringContaining('and starts no further action. '),
        retryable: false,
      },
    },
  ]);
  expect([ends.length, status]).toEqual([1, 'completed']);
});

test('[J6] [F3] a full session refreshes no periodic feed', async () => {
  const sql = fillable();
  const source = { type: 'internal', name: 'random', action: null, params: {} } as const;
  const feed = feedOf('f', { when: 'periodic', intervalMs: 10_000, source });
  const kit = await sessionKit({
    sql,
    agent: (agent) => ({ ...agent, feeds: [feed] }),
  });
  await say(kit, 'hi');
  await settle();
  expect(kit.session.nextWake()).toBeLessThan(kit.session.expiresAt);
  const { lastSeq } = kit.session;
  fill(sql);
  expect(kit.session.nextWake()).toBe(kit.session.expiresAt);
  kit.clock.advance(20_000);
  await kit.session.wake();
  expect(kit.session.lastSeq).toBe(lastSeq);
});
