/** The answer of a run: live from its events where they are loaded, otherwise as the history has it. */
import type { HistoryMessage, Message } from '../../src/client/index.ts';
import { hasEnded } from '../../src/client/index.ts';
import { useEffect, useRef } from 'preact/hooks';
import { access } from '../app/access.ts';
import { href } from '../app/router.ts';
import * as limits from '../parts/limits.ts';
import { memo } from '../parts/memo.ts';
import { Status } from '../parts/status.tsx';
import { useTask } from '../parts/task.tsx';
import { toNewest } from '../session/newest.ts';
import type { SessionModel } from '../session/session-model.ts';
import type { Steered } from '../session/steered.ts';
import { Chips } from './action-chips.tsx';
import { announce } from './announcer.tsx';
import { BlockView } from './block-view.tsx';
import { CallCard } from './call-card.tsx';
import { partsOf } from './entries.ts';
import { Markdown } from './markdown.tsx';
import { MessageFrame } from './message-frame.tsx';
import { SentMessage } from './sent-message.tsx';

interface AnswerProps {
  readonly session: SessionModel;
  readonly runId: string;
  /** As the history has it. */
  readonly message: HistoryMessage | null;
  readonly canRetry: boolean;
  readonly isSelected: boolean;
}

export const Answer = memo(function Answer({ session, runId, message, canRetry, isSelected }: AnswerProps) {
  const run = session.run(runId);
  // Subscribes.
  void run.version.value;
  const stored = message?.status ?? 'queued';
  const isOver = stored === 'completed' || stored === 'failed' || stored === 'cancelled';
  // While the events of an earlier run are loaded, its message is not whole.
  const isLive = run.started !== null && (run.hasEnded || !isOver);
  const status = isLive ? run.message.status : stored;
  const place = ['sessions', session.id, 'runs', runId];
  return (
    <MessageFrame
      role="assistant"
      isOpen={!isOver && !run.hasEnded}
      head={
        <>
          {status !== 'completed' && <Status status={status} />}
          {isOver && canRetry && access.value.mode !== 'view' && <RetryButton session={session} runId={runId} />}
          <a class="run-link" href={href(place)} aria-current={isSelected ? 'true' : undefined}>
            Run
          </a>
        </>
      }
    >
      {isLive ? (
        <LiveAnswer session={session} message={run.message} steered={run.steered} place={place} />
      ) : (
        <>
          {message?.content && <Markdown text={message.content} />}
          {message?.error !== undefined && <Coded kind="fault" {...message.error} />}
          {stored === 'queued' && <p class="quiet working">Queued</p>}
        </>
      )}
    </MessageFrame>
  );
});

/** Runs the message again: the new version takes the place of this one. */
function RetryButton({ session, runId }: Pick<AnswerProps, 'session' | 'runId'>) {
  const { isBusy, fault, run } = useTask();
  const retry = async (): Promise<void> => {
    const goOn = toNewest(session.id);
    await session.retry(runId);
    goOn();
  };
  return (
    <>
      <button type="button" class="small plain" aria-disabled={isBusy} onClick={() => void run(retry)}>
        Retry
      </button>
      {fault}
    </>
  );
}

interface LiveAnswerProps {
  readonly session: SessionModel;
  readonly message: Message;
  readonly steered: readonly Steered[];
  /** Of the run. */
  readonly place: readonly string[];
}

function LiveAnswer({ session, message, steered, place }: LiveAnswerProps) {
  const { status, approvals, blocks, calls, warnings, error, response } = message;
  const { parts, hiddenActions, hiddenBlocks } = partsOf(message, steered);
  const hasText = parts.some((part) => part.type === 'block' && part.block.type !== 'thought');
  const isView = access.value.mode === 'view';
  useAnnouncements(message);
  return (
    <>
      {hiddenBlocks > 0 && <p class="quiet">{hiddenBlocks} earlier parts are in the run view.</p>}
      {parts.map((part) =>
        part.type === 'block' ? (
          <BlockView key={part.key} block={part.block} />
        ) : part.type === 'message' ? (
          <SentMessage key={part.key} session={session} message={part.message} />
        ) : (
          <Chips key={part.key} actions={part.actions} approvals={approvals} calls={calls} place={place} />
        ),
      )}
      {hiddenActions > 0 && (
        <p>
          <a href={href(place)}>{hiddenActions} more actions in the graph</a>
        </p>
      )}
      {status === 'completed' && !hasText && response && <Markdown text={response} />}
      {!isView &&
        calls.map((call) => (
          <CallCard
            key={call.call_id}
            call={call}
            settle={async (result) => await session.session.settle(call.call_id, result)}
          />
        ))}
      {isView && status === 'waiting' && (
        <p class="quiet">Waits for {calls[0] === undefined ? 'an approval' : `the result of ${calls[0].name}`}.</p>
      )}
      {message.is_cut && <p class="note">The model did not finish this answer.</p>}
      {warnings.slice(-limits.warningsInMessage).map((warning, index) => (
        <Coded key={index} kind="note" {...warning} />
      ))}
      {error !== null && <Coded kind="fault" {...error} />}
      {status === 'running' && !blocks.some(({ is_open: isOpen }) => isOpen) && <p class="quiet working">Working</p>}
    </>
  );
}

interface CodedProps {
  readonly kind: 'fault' | 'note';
  readonly code: string;
  readonly message: string;
}

function Coded({ kind, code, message }: CodedProps) {
  return (
    <p class={kind}>
      {message} <code>{code}</code>
    </p>
  );
}

/** Says when the run that the reader has seen working ends, or asks for something. */
function useAnnouncements(message: Message): void {
  const { status, calls, error } = message;
  const isOver = hasEnded(message);
  const wasOver = useRef(isOver);
  useEffect(() => {
    if (!isOver || wasOver.current) return;
    wasOver.current = true;
    if (status === 'completed') announce('The answer is finished.');
    else announce(status === 'failed' ? `The run has failed: ${error?.message ?? ''}` : 'The run was cancelled.');
  }, [isOver]);
  useEffect(() => {
    const call = calls.at(-1);
    if (call !== undefined) announce(`A result is needed: ${call.name}.`);
  }, [calls.length]);
}
