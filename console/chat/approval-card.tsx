/** A request for approval: what is asked, all of the call, and the decision (J8). */
import { useState } from 'preact/hooks';
import { CortexError } from '../../src/client/index.ts';
import type { Decision, JsonObject, OpenApproval } from '../../src/client/index.ts';
import { CodeField, TextField } from '../parts/fields.tsx';
import { time } from '../parts/format.ts';
import { Loaded, useLoad } from '../parts/loaded.tsx';
import { showInvisible } from '../parts/safe-text.ts';
import { Values } from '../parts/values.tsx';
import { AskCard } from './ask-card.tsx';
import { outputOf } from './tool-declarations.ts';

const CLOSED = 'No longer open: decided elsewhere, cancelled or expired';

export interface ApprovalCardProps {
  readonly approval: OpenApproval;
  /** Whether it was decided, was cancelled or has expired. */
  readonly isOver: boolean;
  /** @throws CortexError, which the card shows */
  readonly decide: (decision: Decision) => Promise<void>;
  /** Name the agent that asks: it is not the one of this page. */
  readonly showsAgent?: boolean;
}

export function ApprovalCard({ approval, isOver, decide, showsAgent = true }: ApprovalCardProps) {
  const {
    complete,
    session_id: session,
    approval_id: id,
    agent,
    type,
    name,
    reason,
    question,
    expires_at: expiresAt,
  } = approval;
  const [note, setNote] = useState('');
  const [answer, setAnswer] = useState('');
  const [decided, setDecided] = useState<string | null>(null);
  // A call that is too large for the list is loaded.
  const load = useLoad(
    async (client, signal) => (complete ? approval : await client.session(session).approval(id, { signal })),
    [session, id, complete],
  );
  const decision = async (approve: boolean): Promise<void> => {
    const text = note.trim();
    try {
      await decide({
        approve,
        ...(text && { note: text }),
        ...(approve && answer && { content: outputOf(answer).output as JsonObject }),
      });
      setDecided(approve ? 'Approved' : 'Denied');
    } catch (fault) {
      if (!(fault instanceof CortexError) || fault.code !== 'approval_closed') throw fault;
      setDecided(CLOSED);
    }
  };
  return (
    <AskCard
      title="Approval needed"
      name={name ?? type}
      answered={decided ?? (isOver ? CLOSED : null)}
      answers={[
        ['Approve', async () => await decision(true)],
        ['Deny', async () => await decision(false)],
      ]}
    >
      <p class="quiet">
        {name !== null && name !== type && `${type} · `}
        {showsAgent && (
          <>
            asked by the agent <bdi>{showInvisible(agent)}</bdi> ·{' '}
          </>
        )}
        expires {time(expiresAt)}
      </p>
      {reason && <p>{showInvisible(reason)}</p>}
      {question && <Values title="Question" values={{ ...question }} />}
      {question?.schema && <CodeField label="Answer (JSON)" value={answer} set={setAnswer} rows={3} />}
      <Loaded load={load}>
        {({ parameters, inputs }) => (
          <>
            <Values title="Parameters" values={parameters ?? {}} />
            {inputs !== null && Object.keys(inputs).length > 0 && <Values title="Inputs" values={inputs} />}
          </>
        )}
      </Loaded>
      <TextField label="Note to the agent (optional)" value={note} set={setNote} />
    </AskCard>
  );
}
