/** What the prompt of the session's next message adds to the conversation: context feeds and variables. */
import { relative } from '../parts/format.ts';
import { JsonView } from '../parts/json-view.tsx';
import { Loaded, useLoad } from '../parts/loaded.tsx';
import type { SessionModel } from './session-model.ts';

export function ContextPanel({ session: { session, document } }: { readonly session: SessionModel }) {
  const load = useLoad(
    async (_client, signal) => await Promise.all([session.feeds({ signal }), session.variables({ signal })]),
    [session, document.value?.updated_at],
  );
  return (
    <Loaded load={load}>
      {([feeds, variables]) => (
        <>
          <h3>Context feeds</h3>
          {feeds.length === 0 && <p class="quiet">This agent has no feeds.</p>}
          {feeds.map(({ id, type, updated_at: at, error, value }) => (
            <section key={id} class="feed" aria-label={`Feed ${id}`}>
              <p>
                <strong>{id}</strong> <span class="tag">{type}</span>{' '}
                <span class="quiet">{at === null ? 'no value yet' : relative(at, Date.now())}</span>
              </p>
              {error !== null && <p class="fault">{error}</p>}
              {value !== null && <JsonView value={value} label={`Value of ${id}`} />}
            </section>
          ))}
          <h3>Variables</h3>
          {Object.keys(variables).length === 0 ? (
            <p class="quiet">No variable is set.</p>
          ) : (
            <JsonView value={variables} label="Variables" />
          )}
        </>
      )}
    </Loaded>
  );
}
