/** Where the messages of a session are written: new ones, and other versions of earlier ones (C4, C5). */
import type { HistoryMessage, Session } from '../../src/client/index.ts';
import { attached, NOTHING } from '../chat/attachments.ts';
import { Composer } from '../chat/composer.tsx';
import { draft } from '../parts/drafts.ts';
import { toNewest } from './newest.ts';
import type { SessionModel } from './session-model.ts';

interface SessionComposerProps {
  readonly session: SessionModel;
  /** The run of the message that is edited; null: a new message is written. */
  readonly edited: string | null;
  /** Ends editing. */
  readonly cancel: () => void;
  /** The last run of the branch that is shown; undefined: the newest branch. */
  readonly branch: string | undefined;
  readonly stop: (() => Promise<void>) | null;
}

export function SessionComposer({ session, edited, cancel, branch, stop }: SessionComposerProps) {
  const { id } = session;
  if (edited !== null) {
    return (
      <Composer
        draft={nameOf(id, edited)}
        cancel={cancel}
        stop={stop}
        send={async (content) => {
          const goOn = toNewest(id);
          await session.retry(edited, content);
          cancel();
          goOn();
        }}
      />
    );
  }
  return (
    <Composer
      draft={id}
      stop={stop}
      isSteered={branch === undefined}
      send={async (content, tools) => {
        const goOn = toNewest(id);
        // On the newest branch, the run that is active takes it; client tools belong to a run of their own.
        const isSteered = branch === undefined && tools.length === 0;
        await session.send(content, {
          tools,
          ...(branch !== undefined && { parentRun: branch }),
          ...(isSteered && { ifBusy: 'steer' }),
        });
        // The new run is the latest one.
        goOn();
      }}
    />
  );
}

function nameOf(id: string, runId: string): string {
  return `${id} ${runId}`;
}

/** Puts a message with its files where its new version is written. @throws CortexError if a file cannot be loaded */
export async function beginEdit(
  session: Session,
  { run_id: run = '', content, parts = [] }: HistoryMessage,
): Promise<void> {
  const name = nameOf(session.id, run);
  const texts = parts.map((part) => (part.type === 'text' ? part.text : ''));
  const files = await Promise.all(
    parts.flatMap((part) =>
      part.type === 'text'
        ? []
        : [
            session
              .content(part.sha256)
              .then(async (response) => new File([await response.blob()], part.name, { type: part.media_type })),
          ],
    ),
  );
  draft(`message ${name}`, '').value = parts.length === 0 ? (content ?? '') : texts.filter(Boolean).join('\n\n');
  draft(`files ${name}`, NOTHING).value = attached([], files);
}
