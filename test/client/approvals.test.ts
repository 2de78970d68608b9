/** Requests of sub-agents are found although they are only live events of the run (J8, K3). */
import { describe, expect, test } from 'vitest';
import type { SessionEvent } from '../../src/domain/event.ts';
import { ApprovalRequests } from '../../src/client/approvals.ts';
import type { OpenApproval } from '../../src/client/index.ts';
import { CortexError } from '../../src/client/index.ts';
import { settle } from '../support/session-kit.ts';

const event = (type: string, data: object = {}, action = 'a'): SessionEvent =>
  ({ seq: 1, type, iteration: 1, action_id: action, data }) as unknown as SessionEvent;
const open = (id: string, session: string, run: string): OpenApproval =>
  ({ approval_id: id, session_id: session, run_id: run }) as unknown as OpenApproval;

function requests(lists: readonly (readonly OpenApproval[])[], decide: () => Promise<unknown> = async () => undefined) {
  const asked: string[] = [];
  const faults: unknown[] = [];
  let listed = 0;
  const approvals = new ApprovalRequests({
    sessionId: 'ses',
    runId: 'run',
    onApproval: ({ approval_id: id }) => asked.push(id) > 0,
    list: async () => lists[Math.min(listed++, lists.length - 1)] ?? [],
    decide,
    fail: (fault) => faults.push(fault),
  });
  return { approvals, asked, faults, listed: () => listed };
}

describe('[J8] requests of sub-agents', () => {
  const asks = event('approval_requested');
  test.each([
    ['its own', asks],
    ['of a sub-agent', event('progress', { event: asks })],
    ['of the sub-agent of a sub-agent', event('progress', { event: event('progress', { event: asks }) })],
    ['unknown, of a run that waits', event('agent_waiting', { reason: 'approvals' })],
  ])('an event of a request (%s) leads to the list', async (_name, given) => {
    const { approvals, asked } = requests([[open('1', 'child', 'other'), open('2', 'ses', 'run')]]);
    approvals.take(given);
    await settle();
    expect(asked).toEqual(['1', '2']);
  });

  test.each(['agent', 'workflow'])(
    'while a %s runs, they are looked up after a gap, and not after its end',
    async (type) => {
      const { approvals, asked, listed } = requests([[], [open('1', 'child', 'other')]]);
      approvals.missed();
      approvals.take(event('action_queued', { type }));
      approvals.take(event('action_queued', { type: 'tool' }, 'b'));
      approvals.missed();
      await settle();
      approvals.missed();
      await settle();
      approvals.take(event('action_completed'));
      approvals.missed();
      await settle();
      expect([asked, listed()]).toEqual([['1'], 2]);
    },
  );

  test('an event that has nothing to do with requests leads to nothing, nor does a request of another run', async () => {
    const { approvals, asked, listed } = requests([[open('1', 'ses', 'other')]]);
    approvals.take(event('progress', { text: 'x' }));
    approvals.take(event('progress', { event: event('usage') }));
    await settle();
    expect(listed()).toBe(0);
    approvals.take(asks);
    await settle();
    expect([asked, listed()]).toEqual([[], 1]);
  });

  test('a decision that came too late is no fault, another refusal is one', async () => {
    const refuse = (code: string) => (): Promise<unknown> => Promise.reject(new CortexError({ code, message: 'no' }));
    const list = [[open('1', 'ses', 'run')]];
    const [late, refused] = [requests(list, refuse('approval_closed')), requests(list, refuse('forbidden'))];
    for (const each of [late, refused]) each.approvals.take(asks);
    await settle();
    expect([late.faults, refused.faults]).toMatchObject([[], [{ code: 'forbidden' }]]);
  });
});
