/** The list of open approvals of a session (J8). */
import { describe, expect, test } from 'vitest';
import type { ActionOutcome } from '../../../src/domain/action.ts';
import { limits } from '../../../src/domain/limits.ts';
import { mergeApprovals } from '../../../src/engine/actions/approval-list.ts';
import type { OpenApproval } from '../../../src/engine/actions/approval-list.ts';
import { eventsOf } from '../../support/events.ts';
import { toolOf } from '../../support/definitions.ts';
import { openNodeSql } from '../../support/node-sql.ts';
import { resultOf, runText, sessionKit, settle } from '../../support/session-kit.ts';
import type { KitOptions, SessionKit } from '../../support/session-kit.ts';

const PAY = toolOf({ type: 'builtin', entrypoint: 'echo' }, { name: 'pay', effects: 'idempotent', approval: 'always' });

const pay = (id: string, parameters: object): string =>
  `<action type="tool" mode="async" id="${id}">${JSON.stringify({ name: 'pay', parameters })}</action>`;

let count = 0;
const approvalIds = (): string => `apr_${String((count += 1)).padStart(32, '0')}`;

const kitWith = async (more: KitOptions = {}): Promise<SessionKit> =>
  await sessionKit({ tools: [PAY], approvalIds, ...more });

const list = (kit: SessionKit, limit = 9, after: OpenApproval | null = null): readonly OpenApproval[] =>
  kit.session.openApprovals({
    limit,
    after: after === null ? null : { at: after.requested_at, id: after.approval_id },
  });

describe('[J8] open approvals', () => {
  test('are listed with their resolved call, where they are decided, and until when', async () => {
    const kit = await kitWith();
    const { run_id: run } = await runText(
      kit,
      '<action type="tool" mode="async" id="x">{"name": "echo", "parameters": {"to": "Ann"}}</action>',
      pay('a', { to: '$x.to', amount: 3 }),
    );
    const [asked] = eventsOf(kit.events, 'approval_requested');
    expect(list(kit)).toEqual([
      {
        approval_id: asked?.data.approval_id,
        session_id: kit.session.record.session_id,
        parent_session_id: null,
        run_id: run,
        agent: kit.session.record.agent,
        user_id: kit.session.record.user_id,
        action_id: 'a',
        type: 'tool',
        name: 'pay',
        requested_at: asked?.timestamp,
        expires_at: (asked?.timestamp ?? 0) + limits.approvalExpiryMs,
        sha256: asked?.data.sha256,
        bytes: asked?.data.bytes,
        complete: true,
        parameters: { to: 'Ann', amount: 3 },
        inputs: {},
        reason: null,
        question: null,
      },
    ]);
    expect(kit.session.status).toBe('waiting');
  });

  test('have pages, oldest first, and only those without a decision', async () => {
    const kit = await kitWith();
    await runText(kit, ...[1, 2, 3, 4, 5].map((n) => pay(`a${n}`, { n })));
    const all = list(kit);
    expect(all.map(({ action_id: id }) => id)).toEqual(['a1', 'a2', 'a3', 'a4', 'a5']);
    const first = list(kit, 2);
    const second = list(kit, 2, first[1]);
    const third = list(kit, 2, second[1]);
    expect([...first, ...second, ...third]).toEqual(all);
    expect(list(kit, 2, third[0])).toEqual([]);
    await kit.session.resolveApproval(all[1]?.approval_id ?? '', true, null);
    await kit.session.resolveApproval(all[3]?.approval_id ?? '', false, null);
    expect(list(kit)).toEqual([all[0], all[2], all[4]]);
    const only = [all[0], all[1], all[4]].map((one) => one?.approval_id ?? '');
    expect(kit.session.openApprovals({ limit: 9, after: null, only })).toEqual([all[0], all[4]]);
    await kit.session.cancel('enough');
    expect([list(kit), kit.session.status]).toEqual([[], 'idle']);
  });

  test('end the waiting of their run when they are decided, before its work is done', async () => {
    const work = Promise.withResolvers<ActionOutcome>();
    const kit = await kitWith({ executors: { tool: async () => await work.promise } });
    const { run_id: run } = await runText(kit, pay('a', {}), '<response final="true">$a</response>');
    const statusOf = async (): Promise<unknown[]> => {
      const { status, ended_at: ended } = await resultOf(kit.session, kit.session.run(run));
      return [status, ended === null, kit.session.runs().map((one) => one.status), kit.session.status];
    };
    expect(await statusOf()).toEqual(['waiting', false, ['waiting'], 'waiting']);
    await kit.session.resolveApproval(kit.session.openApprovalIds[0] ?? '', true, null);
    await settle();
    expect(await statusOf()).toEqual(['running', true, ['running'], 'running']);
    work.resolve({ ok: true, output: 'paid' });
    await kit.session.ended(1);
    expect(await statusOf()).toEqual(['completed', false, ['completed'], 'idle']);
    expect(await resultOf(kit.session, kit.session.run(run))).toMatchObject({ actions: [{ output: 'paid' }] });
  });

  test('end with their expiry, also before the alarm', async () => {
    const kit = await kitWith();
    await runText(kit, pay('a', {}));
    kit.clock.advance(limits.approvalExpiryMs - 1);
    expect(list(kit)).toHaveLength(1);
    kit.clock.advance(1);
    expect(list(kit)).toEqual([]);
  });

  test('are listed in the same order after a restart', async () => {
    const sql = openNodeSql();
    const before = await kitWith({ sql });
    await runText(before, pay('a', { n: 1 }), pay('b', { n: 2 }));
    const after = await kitWith({ sql, clock: before.clock });
    expect(after.session.status).toBe('waiting');
    await after.session.recover('read');
    expect(list(after)).toEqual(list(before));
    expect(after.session.openApprovalIds).toEqual(before.session.openApprovalIds);
  });
});

test('[J8] lists of several sessions are merged in order of time and id', () => {
  const at = (time: number, id: string): OpenApproval =>
    ({ requested_at: time, approval_id: id }) as unknown as OpenApproval;
  const [a, b, c, d] = [at(1, 'z'), at(2, 'a'), at(2, 'b'), at(3, 'a')] as const;
  expect(mergeApprovals([[b, d], [a, c], []], 3)).toEqual([a, b, c]);
});
