/** The requests for approval of a session and its sub-agents. */
import { useEffect, useRef } from 'preact/hooks';
import { access } from '../app/access.ts';
import type { SessionModel } from '../session/session-model.ts';
import { announce } from './announcer.tsx';
import { ApprovalCard } from './approval-card.tsx';
import { useSteady } from './steady-approvals.ts';

export function ApprovalList({ session }: { readonly session: SessionModel }) {
  const approvals = session.approvals.value;
  const { client } = access.value;
  const known = useRef<readonly string[]>([]);
  useEffect(() => {
    const added = approvals.find(({ approval_id: id }) => !known.current.includes(id));
    known.current = approvals.map(({ approval_id: id }) => id);
    if (added !== undefined) announce(`Approval needed: ${added.name ?? added.type}.`);
  }, [approvals]);
  return (
    <>
      {useSteady(approvals).map(({ approval, isOver }) => (
        <ApprovalCard
          key={approval.approval_id}
          approval={approval}
          isOver={isOver}
          showsAgent={approval.session_id !== session.id}
          decide={async (decision) => await session.decide(client, approval, decision)}
        />
      ))}
    </>
  );
}
