/** The requests for approval of a session and its sub-agents. */
import { useEffect, useRef } from 'preact/hooks';
import { access } from '../app/access.ts';
import type { SessionModel } from '../session/session-model.ts';
import { announce } from './announcer.tsx';
import { ApprovalCard } from './approval-card.tsx';

interface ApprovalListProps {
  readonly session: SessionModel;
  /** Focuses what contains the list. */
  readonly focus: () => void;
}

export function ApprovalList({ session, focus }: ApprovalListProps) {
  const approvals = session.approvals.value;
  const { client } = access.value;
  const known = useRef<readonly string[]>([]);
  useEffect(() => {
    const added = approvals.find(({ approval_id: id }) => !known.current.includes(id));
    const isLess = approvals.length < known.current.length;
    known.current = approvals.map(({ approval_id: id }) => id);
    if (added !== undefined) announce(`Approval needed: ${added.name ?? added.type}.`);
    // The button that was used is gone.
    if (isLess && document.activeElement === document.body) focus();
  }, [approvals]);
  return (
    <>
      {approvals.map((approval) => (
        <ApprovalCard
          key={approval.approval_id}
          approval={approval}
          showsAgent={approval.session_id !== session.id}
          decide={async (decision) => await session.decide(client, approval, decision)}
        />
      ))}
    </>
  );
}
