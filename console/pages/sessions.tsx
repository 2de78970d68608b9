/** All sessions, or the runs of all sessions, newest activity first (U4). */
import { useState } from 'preact/hooks';
import type { ExecutionEntry } from '../../src/client/index.ts';
import { go, href, route, setQuery } from '../app/router.ts';
import { List } from '../parts/bounded.tsx';
import { ChoiceField, TextField } from '../parts/fields.tsx';
import { duration } from '../parts/format.ts';
import * as limits from '../parts/limits.ts';
import { Loaded, useLoad } from '../parts/loaded.tsx';
import { Page } from '../parts/page.tsx';
import { Status } from '../parts/status.tsx';
import { When } from '../parts/when.tsx';
import { Directory } from './directory.tsx';
import { bySession, sessionIdIn } from './session-list.ts';

const STATUSES = ['completed', 'failed', 'cancelled', 'waiting'] as const;
const KINDS = ['chat', 'execution', 'workflow'] as const;

export function SessionsPage() {
  const { list, before } = route.value.query;
  const isRuns = list === 'runs';
  return (
    <Page
      title="Sessions"
      about={
        isRuns
          ? 'Runs that have ended or wait, by session.'
          : 'All sessions. A new one appears after a moment; the list stays up to date.'
      }
      actions={
        <a class="button" href={href(['sessions'], { list: isRuns ? undefined : 'runs' })}>
          {isRuns ? 'All sessions' : 'Runs'}
        </a>
      }
    >
      <OpenById />
      {/* Another page of the list begins at its top. */}
      {isRuns ? <Runs key={before} /> : <Directory key={before} />}
    </Page>
  );
}

function Runs() {
  const { query } = route.value;
  const { before } = query;
  const status = STATUSES.find((each) => each === query['status']);
  const kind = KINDS.find((each) => each === query['kind']);
  const load = useLoad(
    async (client, signal) => await client.executions({ status, kind, before, limit: limits.rows, signal }),
    [status, kind, before],
  );
  return (
    <>
      <div class="filters">
        <ChoiceField
          label="Status"
          all="All"
          value={status ?? ''}
          options={STATUSES}
          set={(value) => setQuery({ status: value || undefined, before: undefined })}
        />
        <ChoiceField
          label="Kind"
          all="All"
          value={kind ?? ''}
          options={KINDS}
          set={(value) => setQuery({ kind: value || undefined, before: undefined })}
        />
      </div>
      <section aria-label="Sessions">
        <Loaded load={load}>
          {({ executions, next }) => (
            <>
              {executions.length === 0 && (
                <p class="empty-state">
                  No session matches. <a href={href([])}>Start a conversation</a>
                </p>
              )}
              <ul class="list">
                {bySession(executions).map(({ id, agent, runs }) => (
                  <li key={id} class="card">
                    <div class="row">
                      <a class="target" href={href(['sessions', id])}>
                        {agent}
                      </a>
                      <span class="quiet">{runs[0]?.kind}</span>
                      <code class="quiet clip">{id}</code>
                    </div>
                    <List items={runs} max={limits.runsInList}>
                      {runItem}
                    </List>
                  </li>
                ))}
              </ul>
              {next !== null && (
                <a class="button" href={href(['sessions'], { ...query, before: next })}>
                  Earlier runs
                </a>
              )}
            </>
          )}
        </Loaded>
      </section>
    </>
  );
}

function OpenById() {
  const [text, setText] = useState('');
  const [hasNone, setHasNone] = useState(false);
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        setHasNone(text !== '');
      }}
    >
      <TextField
        label="Paste an id to open its session"
        placeholder="ses_…"
        value={text}
        set={(to) => {
          const id = sessionIdIn(to);
          if (id !== null) go(href(['sessions', id]));
          setText(to);
          setHasNone(false);
        }}
      />
      {hasNone && (
        <p class="note" role="alert">
          This is not the id of a session. An id is ses_ and 32 hexadecimal digits.
        </p>
      )}
    </form>
  );
}

function runItem({
  session_id: session,
  run_id: id,
  status,
  error,
  started_at: began,
  ended_at: ended,
}: ExecutionEntry) {
  return (
    <li key={id} class="row">
      <Status status={status} />
      <a class="target" href={href(['sessions', session, 'runs', id])}>
        <When at={began} />
        <span class="visually-hidden">: run {id}</span>
      </a>
      <span class="quiet">{ended !== null && duration(ended - began)}</span>
      {error !== null && (
        <code class="status-failed" title={error.message}>
          {error.code}
        </code>
      )}
    </li>
  );
}
