/** The page of react.test.ts: a chat as a user of the hook would write it, in StrictMode. */
import { createElement as h, StrictMode, useState } from 'react';
import { createRoot } from 'react-dom/client';
import { useAgent } from '../../react/index.ts';
import { Client } from '../../src/client/index.ts';

const query = new URLSearchParams(location.search);
const client = new Client({ url: query.get('system') ?? '' });

function Chat({ agent }: { readonly agent: string }): ReturnType<typeof h> {
  const { messages, status, sessionId, approvals, error, send, stop, approve, deny } = useAgent({
    client,
    agent,
    sessionId: query.get('session'),
    clientTools: { get_place: { description: 'Where the user is', run: async () => ({ city: 'Rome' }) } },
  });
  const [text, setText] = useState('');
  return h(
    'main',
    null,
    h('output', { id: 'status' }, status),
    h('output', { id: 'session' }, sessionId ?? ''),
    h('output', { id: 'error' }, error?.message ?? ''),
    h(
      'ol',
      null,
      messages.map(({ id, role, text: said, run }) =>
        h('li', { key: id, className: role, 'data-actions': run?.actions.length ?? 0 }, said),
      ),
    ),
    approvals.map(({ approval_id: id }) =>
      h(
        'p',
        { key: id },
        h('button', { onClick: () => void approve(id) }, 'Approve'),
        h('button', { onClick: () => void deny(id, 'not now') }, 'Deny'),
      ),
    ),
    h('input', { value: text, onChange: ({ currentTarget }) => setText((currentTarget as HTMLInputElement).value) }),
    h('button', { onClick: () => void Promise.all([send(text), send(text)]) }, 'Send'),
    h('button', { onClick: () => void stop() }, 'Stop'),
  );
}

function Page(): ReturnType<typeof h> {
  const [isShown, show] = useState(true);
  return h(
    StrictMode,
    null,
    h('button', { onClick: () => show(!isShown) }, isShown ? 'Hide' : 'Show'),
    isShown ? h(Chat, { agent: query.get('agent') ?? 'assistant' }) : null,
  );
}

const root = document.getElementById('root');
if (root !== null) createRoot(root).render(h(Page));
