/** Requests for approval that wait for a decision, of all sessions (U4, J8). */
import { access } from '../app/access.ts';
import { href, route } from '../app/router.ts';
import { ApprovalCard } from '../chat/approval-card.tsx';
import { useSteady } from '../chat/steady-approvals.ts';
import { plural } from '../parts/format.ts';
import { Loaded } from '../parts/loaded.tsx';
import { Page } from '../parts/page.tsx';
import { useRefreshed } from '../parts/refreshed.ts';
import { Section } from '../parts/section.tsx';

export function ApprovalsPage() {
  // Another page of the list begins at its top.
  return <Approvals key={route.value.query['after']} />;
}

function Approvals() {
  const { after } = route.value.query;
  const load = useRefreshed(async (client, signal) => await client.approvals({ after, signal }), [after]);
  const { client } = access.value;
  const shown = useSteady(load.value?.approvals ?? []);
  return (
    <Page title="Approvals" about="What waits for a person in all sessions.">
      <Loaded load={load}>
        {({ approvals, next }) =>
          approvals.length === 0 ? (
            <p class="empty-state">
              No request waits for a decision. Try it: ask{' '}
              <a href={href([], { agent: 'careful_assistant' })}>the careful assistant</a> to run some code.
            </p>
          ) : (
            <Section title={plural(approvals.length, 'open request')}>
              <ul class="list">
                {shown.map(({ approval, isOver }) => (
                  <li key={approval.approval_id}>
                    <ApprovalCard
                      approval={approval}
                      isOver={isOver}
                      decide={async (decision) => {
                        try {
                          await client.session(approval.session_id).decide(approval.approval_id, decision);
                        } finally {
                          load.reload();
                        }
                      }}
                    />
                    <a class="target" href={href(['sessions', approval.session_id, 'runs', approval.run_id])}>
                      Open its session
                    </a>
                    {approval.parent_session_id !== null && (
                      <a class="target" href={href(['sessions', approval.parent_session_id])}>
                        Open the session that started it
                      </a>
                    )}
                  </li>
                ))}
              </ul>
              {next !== null && (
                <a class="button" href={href(['approvals'], { after: next })}>
                  Later requests
                </a>
              )}
            </Section>
          )
        }
      </Loaded>
    </Page>
  );
}
