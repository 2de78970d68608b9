/** A session: its conversation beside the run that is selected, live. */
import { useEffect, useMemo, useState } from 'preact/hooks';
import type { HistoryMessage } from '../../src/client/index.ts';
import { access, isKeyMissing } from '../app/access.ts';
import { href, setQuery } from '../app/router.ts';
import { StopButton } from '../chat/stop-button.tsx';
import { Conversation } from '../chat/conversation.tsx';
import { markdownText } from '../chat/markdown.tsx';
import { cut } from '../parts/format.ts';
import { Fault } from '../parts/fault.tsx';
import { Loading } from '../parts/loaded.tsx';
import { keepFocus } from '../parts/main-focus.ts';
import { Page } from '../parts/page.tsx';
import { showInvisible } from '../parts/safe-text.ts';
import { useTask } from '../parts/task.tsx';
import { RunPanel } from '../run/run-panel.tsx';
import { beginEdit, SessionComposer } from './session-composer.tsx';
import { SessionHead } from './session-head.tsx';
import { SessionModel } from './session-model.ts';
import { Tour } from './tour.tsx';

interface SessionPageProps {
  readonly id: string;
  /** The run of the address; null shows the latest one. */
  readonly runId: string | null;
  readonly query: Readonly<Record<string, string>>;
}

const TITLE_CHARS = 60;
const SIDES = ['chat', 'run'] as const;

export function SessionPage({ id, runId, query }: SessionPageProps) {
  const { client, mode } = access.value;
  const [times, setTimes] = useState(0);
  const retry = (): void => setTimes(times + 1);
  const branch = query['branch'];
  const session = useMemo(() => new SessionModel(client, id, branch), [client, id, times]);
  useEffect(() => () => session.close(), [session]);
  // It is needed as soon as the session is there.
  useEffect(markdownText.load, []);
  useEffect(() => session.show(branch), [session, branch]);
  /** The run whose message is edited. */
  const [edited, setEdited] = useState<string | null>(null);
  const editing = useTask();
  const edit = useMemo(
    () => (message: HistoryMessage) =>
      void editing.run(async () => {
        await beginEdit(session.session, message);
        setEdited(message.run_id ?? null);
      }),
    [session],
  );
  /** On a narrow page, one of the two is shown. A link to a run leads to the run. */
  const side = SIDES.find((each) => each === query['side']) ?? (runId === null ? 'chat' : 'run');
  const document = session.document.value;
  const fault = session.fault.value;
  // A run has a status in its answer. One that is queued has nothing to show while another one runs.
  const runs = session.messages.value.filter(({ run_id: run, status }) => run !== undefined && status !== undefined);
  const latest = (runs.findLast(({ status }) => status !== 'queued') ?? runs[0])?.run_id ?? null;
  const selected = runId ?? latest;
  const run = selected === null ? null : session.run(selected);
  /** Its first message, where it is loaded. */
  const first = session.messages.value.find(({ role, seeded }) => role === 'user' && seeded !== true);
  const title = session.hasEarlier ? null : first?.content;
  useEffect(() => {
    if (title) window.document.title = `${showInvisible(cut(title, TITLE_CHARS))} · Cortex Edge`;
  }, [title]);
  // The page of a loading session is another element.
  useEffect(keepFocus, [document === null]);
  const [runFault, setRunFault] = useState<unknown>(null);
  const [loads, setLoads] = useState(0);
  useEffect(() => {
    let hasLeft = false;
    setRunFault(null);
    if (selected !== null && document !== null) {
      session.loadRun(selected).catch((error: unknown) => {
        if (!hasLeft && !isKeyMissing(error)) setRunFault(error);
      });
    }
    return () => {
      hasLeft = true;
    };
  }, [session, selected, document === null, loads]);

  if (document === null) {
    return (
      <Page title="Session">
        {fault === null ? <Loading /> : <Fault fault={fault} retry={retry} />}
        {fault !== null && branch !== undefined && (
          // With another address alone, its model would keep the error.
          <button
            type="button"
            onClick={() => {
              setQuery({ branch: undefined });
              retry();
            }}
          >
            Show the newest version
          </button>
        )}
      </Page>
    );
  }
  const stop = document.status === 'idle' ? null : async () => await session.stop();
  return (
    <main id="main" class={`session show-${side}`} tabIndex={-1}>
      <SessionHead session={session} document={document} />
      <div class="sides" role="group" aria-label="Show">
        {SIDES.map((each) => (
          <button key={each} type="button" aria-pressed={side === each} onClick={() => setQuery({ side: each })}>
            {each === 'chat' ? 'Chat' : 'Run'}
          </button>
        ))}
      </div>
      {fault !== null && <Fault fault={fault} retry={retry} />}
      <div class="panes">
        <div class="pane pane-chat">
          {branch !== undefined && (
            <p class="note">
              Another version of the conversation. <a href={href(['sessions', id])}>Show the newest one</a>
            </p>
          )}
          <Conversation
            session={session}
            selected={selected}
            edit={mode === 'view' || document.workflow !== undefined ? undefined : edit}
          />
          {editing.fault}
          {mode !== 'view' &&
            (document.workflow === undefined ? (
              <SessionComposer
                session={session}
                edited={edited}
                cancel={() => setEdited(null)}
                branch={branch}
                stop={stop}
              />
            ) : (
              stop !== null && (
                <div class="composer">
                  <StopButton stop={stop} />
                </div>
              )
            ))}
          <Tour session={session} />
        </div>
        <div class="pane pane-run">
          {runFault !== null ? (
            <Fault fault={runFault} retry={() => setLoads(loads + 1)} />
          ) : run === null ? (
            <p class="quiet empty">The run of your first message appears here.</p>
          ) : (
            <RunPanel key={run.id} session={session} run={run} query={query} />
          )}
        </div>
      </div>
    </main>
  );
}
