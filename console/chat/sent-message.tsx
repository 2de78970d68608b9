/** A message of the user, and messages of a conversation that took place elsewhere. */
import type { HistoryMessage } from '../../src/client/index.ts';
import { time } from '../parts/format.ts';
import { memo } from '../parts/memo.ts';
import type { SessionModel } from '../session/session-model.ts';
import { Markdown } from './markdown.tsx';
import { MessageFrame } from './message-frame.tsx';
import { PlainText } from './plain-text.tsx';
import { StoredFile } from './stored-file.tsx';

interface SentMessageProps {
  readonly session: SessionModel;
  readonly message: HistoryMessage;
}

export const SentMessage = memo(function SentMessage({
  session: { session },
  message: { role, seeded, timestamp, content, parts },
}: SentMessageProps) {
  return (
    <MessageFrame
      role={role}
      head={
        <span class="quiet">
          {seeded === true && 'from an earlier conversation'}
          {typeof timestamp === 'number' && time(timestamp)}
        </span>
      }
    >
      {role === 'assistant' ? (
        <Markdown text={content ?? 'It called tools.'} />
      ) : (
        (parts ?? [{ type: 'text', text: content ?? '' }]).map((part, index) =>
          part.type === 'text' ? (
            <PlainText key={index} text={part.text} />
          ) : (
            <StoredFile key={index} session={session} part={part} />
          ),
        )
      )}
    </MessageFrame>
  );
});
