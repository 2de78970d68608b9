/** The messages of a session and their answers, as they arrive. */
import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import type { HistoryMessage } from '../../src/client/index.ts';
import { access } from '../app/access.ts';
import { useTask } from '../parts/task.tsx';
import type { SessionModel } from '../session/session-model.ts';
import { Announcer } from './announcer.tsx';
import { Answer } from './answer.tsx';
import { ApprovalList } from './approval-list.tsx';
import { entriesOf } from './entries.ts';
import { useFollow } from './follow-end.ts';
import { SentMessage, SteeredMessage } from './sent-message.tsx';

export interface ConversationProps {
  readonly session: SessionModel;
  /** The run that the run view shows; null if there is none. */
  readonly selected: string | null;
  /** Begins to write another version of a message; absent: nothing can be changed. */
  readonly edit?: ((message: HistoryMessage) => void) | undefined;
}

export function Conversation({ session, selected, edit }: ConversationProps) {
  const messages = session.messages.value;
  const scroller = useRef<HTMLElement>(null);
  const content = useRef<HTMLDivElement>(null);
  const { isAtEnd, toEnd, hold, release } = useFollow(scroller, content);
  const latest = messages.findLast(({ role }) => role === 'user')?.run_id ?? null;
  const hasFocus = (): boolean => scroller.current?.contains(document.activeElement) === true;
  const hadFocus = hasFocus();
  useEffect(toEnd, [latest]);
  useLayoutEffect(release, [messages]);
  // The message of the button that was used may be gone.
  useLayoutEffect(() => {
    if (hadFocus && !hasFocus()) scroller.current?.focus({ preventScroll: true });
  }, [messages]);

  return (
    <section class="conversation" aria-label="Conversation" tabIndex={0} ref={scroller}>
      <h2 class="visually-hidden">Conversation</h2>
      <div class="messages" ref={content}>
        {session.hasEarlier && <Earlier session={session} hold={hold} />}
        {messages.length === 0 && <p class="quiet empty">No messages yet.</p>}
        {entriesOf(messages).map((entry) =>
          entry.type === 'message' ? (
            entry.message.steered === true ? (
              <SteeredMessage key={entry.key} session={session} message={entry.message} />
            ) : (
              <SentMessage key={entry.key} session={session} message={entry.message} edit={edit} />
            )
          ) : (
            <Answer
              key={entry.key}
              session={session}
              runId={entry.runId}
              message={entry.message}
              canRetry={entry.canRetry}
              isSelected={entry.runId === selected}
            />
          ),
        )}
        {access.value.mode !== 'view' && <ApprovalList session={session} />}
      </div>
      {!isAtEnd && (
        <button type="button" class="newest" onClick={toEnd}>
          Newest
        </button>
      )}
      <Announcer />
    </section>
  );
}

function Earlier({ session, hold }: { readonly session: SessionModel; readonly hold: () => void }) {
  const { isBusy, fault, run } = useTask();
  const load = async (): Promise<void> => {
    hold();
    await session.loadEarlier();
  };
  return (
    <div class="earlier">
      <button type="button" class="small" disabled={isBusy} onClick={() => void run(load)}>
        Load earlier messages
      </button>
      {fault}
    </div>
  );
}
