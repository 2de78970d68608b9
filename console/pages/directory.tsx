/** All sessions, newest activity first (C6, U4). */
import type { SessionEntry } from '../../src/client/index.ts';
import { href, route, setQuery } from '../app/router.ts';
import { ChoiceField, TextField } from '../parts/fields.tsx';
import { cost, cut } from '../parts/format.ts';
import { ForeignText } from '../parts/foreign-text.tsx';
import * as limits from '../parts/limits.ts';
import { Loaded, useLoad } from '../parts/loaded.tsx';
import { useRefreshed } from '../parts/refreshed.ts';
import { Status } from '../parts/status.tsx';
import { When } from '../parts/when.tsx';

const STATUSES = ['running', 'waiting', 'idle'] as const;
const TITLE_CHARS = 200;

export function Directory() {
  const { query } = route.value;
  const { before, agent, user } = query;
  const status = STATUSES.find((each) => each === query['status']);
  const load = useRefreshed(
    async (client, signal) =>
      await client.sessions({ status, agent, userId: user, before, limit: limits.rows, signal }),
    [status, agent, user, before],
  );
  const agents = useLoad(async (client, signal) => await client.agents({ signal }), []);
  const filter = (name: 'status' | 'agent' | 'user') => (value: string) =>
    setQuery({ [name]: value || undefined, before: undefined });
  const names = new Set([...(agent === undefined ? [] : [agent]), ...(agents.value ?? []).map(({ name }) => name)]);
  return (
    <>
      <div class="filters">
        <ChoiceField label="Status" all="All" value={status ?? ''} options={STATUSES} set={filter('status')} />
        <ChoiceField label="Agent" all="All" value={agent ?? ''} options={[...names]} set={filter('agent')} />
        <TextField label="User" placeholder="the id of a user" value={user ?? ''} set={filter('user')} />
      </div>
      <section aria-label="Sessions">
        <Loaded load={load}>
          {({ sessions, next }) => (
            <>
              {sessions.length === 0 && (
                <p class="empty-state">
                  No session matches. <a href={href([])}>Start a conversation</a>
                </p>
              )}
              <ul class="list">{sessions.map(sessionItem)}</ul>
              {next !== null && (
                <a class="button" href={href(['sessions'], { ...query, before: next })}>
                  Earlier sessions
                </a>
              )}
            </>
          )}
        </Loaded>
      </section>
    </>
  );
}

function sessionItem({
  session_id: id,
  title,
  agent,
  user_id: user,
  status,
  updated_at: at,
  cost: spent,
}: SessionEntry) {
  return (
    <li key={id} class="card">
      <a class="target" href={href(['sessions', id])}>
        <ForeignText text={cut(title ?? '', TITLE_CHARS) || 'Without a title'} />
      </a>
      <div class="row">
        <Status status={status} />
        <span>{agent}</span>
        <span class="quiet">
          <When at={at} />
          {user !== null && (
            <>
              {' · '}
              <ForeignText text={user} />
            </>
          )}
          {spent !== null && ` · ${cost(spent)}`}
        </span>
      </div>
    </li>
  );
}
