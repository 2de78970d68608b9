/** The head of a session: whose it is, and what belongs to all of its runs. */
import type { SessionDocument } from '../../src/client/index.ts';
import { access } from '../app/access.ts';
import { href, route, setQuery } from '../app/router.ts';
import { CopyButton } from '../parts/copy-button.tsx';
import { Dialog } from '../parts/dialog.tsx';
import { Status } from '../parts/status.tsx';
import { ContextPanel } from './context-panel.tsx';
import { FilesPanel } from './files-panel.tsx';
import type { SessionModel } from './session-model.ts';
import { SharePanel } from './share-panel.tsx';

const PANELS = { context: 'Feeds and variables', files: 'Files', share: 'Share' } as const;
type PanelName = keyof typeof PANELS;

interface SessionHeadProps {
  readonly session: SessionModel;
  readonly document: SessionDocument;
}

export function SessionHead({ session, document }: SessionHeadProps) {
  const { agent, workflow } = document;
  const isView = access.value.mode === 'view';
  const asked = route.value.query['panel'] ?? '';
  const names = (Object.keys(PANELS) as PanelName[]).filter((name) => name === 'files' || !isView);
  const shown = names.find((name) => name === asked) ?? null;
  return (
    <header class="session-head">
      <h1>{isView ? agent : <a href={href([workflow === undefined ? 'agents' : 'workflows', agent])}>{agent}</a>}</h1>
      <Status status={document.status} />
      <code class="session-id quiet">{session.id}</code>
      <CopyButton text={session.id} label="Copy id" />
      <div class="row session-tools">
        {names.map((name) => (
          <button key={name} type="button" class="small" onClick={() => setQuery({ panel: name })}>
            {PANELS[name]}
          </button>
        ))}
      </div>
      {shown !== null && (
        <Dialog key={shown} title={PANELS[shown]} close={() => setQuery({ panel: undefined })}>
          {shown === 'context' && <ContextPanel session={session} />}
          {shown === 'files' && <FilesPanel session={session} />}
          {shown === 'share' && <SharePanel session={session} />}
        </Dialog>
      )}
    </header>
  );
}
