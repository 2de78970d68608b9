/** Answers of a client that come together (C3, J8). */
import { describe, expect, test } from 'vitest';
import type { SessionEvent } from '../../../src/domain/event.ts';
import { callsOf } from '../../support/client-calls.ts';
import { toolOf } from '../../support/definitions.ts';
import { say, sessionKit, settle } from '../../support/session-kit.ts';
import type { KitOptions, SessionKit } from '../../support/session-kit.ts';

const PAY = toolOf({ type: 'builtin', entrypoint: 'echo' }, { name: 'pay', approval: 'always' });
const LOCATE = toolOf({ type: 'client' }, { name: 'locate' });
const action = (id: string, name: string): string =>
  `<action type="tool" mode="async" id="${id}">${JSON.stringify({ name, parameters: {} })}</action>`;

const typesOf = (events: readonly SessionEvent[], type: SessionEvent['type']): number =>
  events.filter((event) => event.type === type).length;

/** A run that waits for two decisions and two results. */
async function waiting(more: KitOptions = {}): Promise<SessionKit> {
  let count = 0;
  const kit = await sessionKit({
    script: [
      ['a', 'b'].map((id) => action(id, 'pay')).join('') + ['c', 'd'].map((id) => action(id, 'locate')).join(''),
    ],
    tools: [PAY, LOCATE],
    approvalIds: () => `apr_${String((count += 1)).padStart(32, '0')}`,
    ...more,
  });
  kit.sql.onSync = settle;
  await say(kit, 'go');
  return kit;
}

const decisionsOf = (
  { session }: SessionKit,
  approved: boolean,
): { approvalId: string; approved: boolean; note: null }[] =>
  session.openApprovalIds.map((approvalId) => ({ approvalId, approved, note: null }));

describe('[J8] [C3] answers that come together', () => {
  test('do not let the run wait in between', async () => {
    const kit = await waiting();
    const results = callsOf(kit).map((callId) => ({ callId, result: { output: 'Bern' } }));
    const taken = await kit.session.answer([...decisionsOf(kit, false), ...results]);
    const [{ runId } = { runId: '' }] = kit.session.runs(1);
    expect(taken).toEqual(Array.from({ length: 4 }, () => ({ status: 'fulfilled', value: runId })));
    await kit.session.ended(1);
    expect(typesOf(kit.events, 'agent_waiting')).toBe(1);
    expect(typesOf(kit.events, 'agent_completed')).toBe(1);
  });

  test('let it wait once for the others, also if the last of them is refused', async () => {
    const kit = await waiting();
    const decisions = decisionsOf(kit, false);
    const [first] = decisions;
    if (first === undefined) throw new Error('the run asks for two approvals');
    const taken = await kit.session.answer([...decisions, { ...first, approved: true }]);
    expect(taken.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'rejected']);
    await settle();
    expect(typesOf(kit.events, 'agent_waiting')).toBe(2);
    expect(kit.session.runs(1)).toMatchObject([{ status: 'waiting' }]);
  });

  test('are accepted again if they are the same, also while they are being written', async () => {
    const kit = await waiting();
    const decisions = decisionsOf(kit, false);
    const both = await Promise.all([kit.session.answer(decisions), kit.session.answer(decisions)]);
    expect(both.flat().map(({ status }) => status)).toEqual(Array.from({ length: 4 }, () => 'fulfilled'));
    expect(typesOf(kit.events, 'approval_resolved')).toBe(2);
    const [other] = await kit.session.answer(decisions.map((decision) => ({ ...decision, approved: true })));
    expect(other).toMatchObject({ status: 'rejected', reason: { code: 'approval_closed' } });
  });
});

test.each([
  ['asks for an approval', 'pay', {}],
  ['is skipped', 'pay', { when: 'false' }],
])(
  '[J8] [C3] answers that come together do not let the run wait for an action that %s after the first one',
  async (_, name, more) => {
    const dependent = `<action type="tool" mode="async" id="c">${JSON.stringify({ name, parameters: {}, depends_on: ['a'], ...more })}</action>`;
    const kit = await sessionKit({
      script: [action('a', 'locate') + action('b', 'locate') + dependent],
      tools: [PAY, LOCATE],
    });
    kit.sql.onSync = settle;
    await say(kit, 'go');
    const answers = callsOf(kit).map((callId) => ({ callId, result: { output: 'Bern' } }));
    expect(answers).toHaveLength(2);
    await kit.session.answer(answers);
    await settle();
    const types = kit.events.map(({ type }) => type);
    const [first, last] = [types.indexOf('client_tool_settled'), types.lastIndexOf('client_tool_settled')];
    expect(types.slice(first, last)).not.toContain('agent_waiting');
  },
);
