/** A message of the user, and messages of a conversation that took place elsewhere. */
import type { HistoryMessage } from '../../src/client/index.ts';
import { time } from '../parts/format.ts';
import { memo } from '../parts/memo.ts';
import { canSendAgain } from '../session/branches.ts';
import type { SessionModel } from '../session/session-model.ts';
import { Markdown } from './markdown.tsx';
import { MessageFrame } from './message-frame.tsx';
import { PlainText } from './plain-text.tsx';
import { StoredFile } from './stored-file.tsx';
import { VersionSwitch } from './version-switch.tsx';

interface SentMessageProps {
  readonly session: SessionModel;
  readonly message: HistoryMessage;
  /** Begins to write another version of it; absent: it cannot be changed. */
  readonly edit?: ((message: HistoryMessage) => void) | undefined;
}

export const SentMessage = memo(function SentMessage({ session, message, edit }: SentMessageProps) {
  const { role, seeded, steered, timestamp, content, parts, run_id: runId, branches } = message;
  return (
    <MessageFrame
      role={role}
      head={
        <>
          <span class="quiet">
            {seeded === true && 'from an earlier conversation'}
            {steered === true && 'while it worked, '}
            {typeof timestamp === 'number' && time(timestamp)}
          </span>
          {edit !== undefined && canSendAgain(message) && (
            <button type="button" class="small plain" onClick={() => edit(message)}>
              Edit
            </button>
          )}
          {runId !== undefined && branches !== undefined && (
            <VersionSwitch session={session} versions={branches} runId={runId} />
          )}
        </>
      }
    >
      {role === 'assistant' ? (
        <Markdown text={content ?? 'It called tools.'} />
      ) : (
        (parts ?? [{ type: 'text', text: content ?? '' }]).map((part, index) =>
          part.type === 'text' ? (
            <PlainText key={index} text={part.text} />
          ) : (
            <StoredFile key={index} session={session.session} part={part} />
          ),
        )
      )}
    </MessageFrame>
  );
});

/** A message that was sent into a run. Where the events of the run are loaded, its answer shows the message. */
export function SteeredMessage({ session, message }: SentMessageProps) {
  const run = session.run(message.run_id ?? '');
  // Subscribes.
  void run.version.value;
  const isInAnswer = run.started !== null && (run.hasEnded || session.isActive(run.id));
  return isInAnswer ? null : <SentMessage session={session} message={message} />;
}
