/** A session: its conversation beside the run that is selected, live. */
import { useEffect, useMemo, useState } from 'preact/hooks';
import { access, isKeyMissing } from '../app/access.ts';
import { go, href } from '../app/router.ts';
import { Composer } from '../chat/composer.tsx';
import { Conversation } from '../chat/conversation.tsx';
import { Fault } from '../parts/fault.tsx';
import { Page } from '../parts/page.tsx';
import { RunPanel } from '../run/run-panel.tsx';
import { SessionHead } from './session-head.tsx';
import { SessionModel } from './session-model.ts';
import { Tour } from './tour.tsx';

interface SessionPageProps {
  readonly id: string;
  /** The run of the address; null shows the latest one. */
  readonly runId: string | null;
  readonly query: Readonly<Record<string, string>>;
}

export function SessionPage({ id, runId, query }: SessionPageProps) {
  const { client, mode } = access.value;
  const [times, setTimes] = useState(0);
  const session = useMemo(() => new SessionModel(client, id), [client, id, times]);
  useEffect(() => () => session.close(), [session]);
  /** On a narrow page, one of the two is shown. */
  const [side, setSide] = useState<'chat' | 'run'>(runId === null ? 'chat' : 'run');
  const document = session.document.value;
  const fault = session.fault.value;
  const latest = session.messages.value.findLast(({ run_id: run }) => run !== undefined)?.run_id ?? null;
  const selected = runId ?? latest;
  const run = selected === null ? null : session.run(selected);
  const [runFault, setRunFault] = useState<unknown>(null);

  useEffect(() => {
    setRunFault(null);
    if (selected === null || document === null) return;
    session.loadRun(selected).catch((error: unknown) => {
      if (!isKeyMissing(error)) setRunFault(error);
    });
  }, [session, selected, document === null]);

  if (document === null) {
    return (
      <Page title="Session">
        {fault === null ? <p class="quiet">Loading …</p> : <Fault fault={fault} retry={() => setTimes(times + 1)} />}
      </Page>
    );
  }
  return (
    <main id="main" class={`session show-${side}`} tabIndex={-1}>
      <SessionHead session={session} document={document} />
      <div class="sides" role="group" aria-label="Show">
        {(['chat', 'run'] as const).map((each) => (
          <button key={each} type="button" aria-pressed={side === each} onClick={() => setSide(each)}>
            {each === 'chat' ? 'Chat' : 'Run'}
          </button>
        ))}
      </div>
      {fault !== null && <Fault fault={fault} retry={() => setTimes(times + 1)} />}
      <div class="panes">
        <div class="pane pane-chat">
          <Conversation session={session} selected={selected} />
          {mode !== 'view' && (
            <Composer
              send={async (content, tools) => {
                await session.send(content, { tools });
                // The new run is the latest one.
                if (runId !== null) go(href(['sessions', id]));
              }}
              stop={document.status === 'idle' ? null : () => session.stop()}
            />
          )}
          <Tour session={session} />
        </div>
        <div class="pane pane-run">
          {runFault !== null && <Fault fault={runFault} />}
          {run === null ? (
            <p class="quiet empty">The run of your first message appears here.</p>
          ) : (
            <RunPanel key={run.id} session={session} run={run} query={query} />
          )}
        </div>
      </div>
    </main>
  );
}
