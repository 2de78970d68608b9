/** The system: its parts, what is missing, and why (U4). */
import type { JsonObject } from '../../src/client/index.ts';
import { List } from '../parts/bounded.tsx';
import { Facts } from '../parts/facts.tsx';
import { JsonView } from '../parts/json-view.tsx';
import { Loaded } from '../parts/loaded.tsx';
import { Page } from '../parts/page.tsx';
import { useRefreshed } from '../parts/refreshed.ts';
import { Section } from '../parts/section.tsx';
import { Status } from '../parts/status.tsx';
import { Table } from '../parts/table.tsx';
import { When } from '../parts/when.tsx';
import { jsonText } from './json-text.ts';
import { membersOf, missingOf } from './runner-health.ts';

export function SystemPage() {
  const load = useRefreshed(async (client, signal) => {
    const [health, executors] = await Promise.all([client.health({ signal }), client.executors({ signal })]);
    return { ...health, executors };
  }, []);
  return (
    <Page
      title="System"
      about="What works, what does not, and why. The page stays up to date."
      actions={
        <button type="button" onClick={load.reload}>
          Refresh
        </button>
      }
    >
      <Loaded load={load}>
        {({ status, version, model, parts, runner, executors, missing = [], set_aside: setAside = [], ...health }) => (
          <>
            <Facts
              facts={[
                ['Status', <Status status={status} />],
                ['Version', version],
                ['Runner', parts.runner === undefined ? 'none' : <Status status={parts.runner} />],
                ['Model', model ?? 'needs a key'],
              ]}
            />
            <List
              items={[
                ...missing,
                ...setAside.map((part) => ({ part, reason: 'could not be read; renamed, and a new database begun' })),
              ]}
            >
              {({ part, reason }, at) => (
                <li key={at} class="note">
                  <strong>{part}</strong>: {reason}
                </li>
              )}
            </List>
            <Section title="Action types">
              <Table
                label="Table of action types"
                rows={executors}
                columns={[
                  ['Type', ({ type }) => jsonText(type)],
                  [
                    'State',
                    ({ available, reason }) => (
                      <>
                        <Status status={available === true ? 'available' : 'unavailable'} /> {jsonText(reason)}
                      </>
                    ),
                  ],
                  ['What it does', ({ description }) => jsonText(description)],
                  [
                    'Runs',
                    (each) =>
                      each['needs_runner'] === true ? `on the runner ${jsonText(each['sandbox'])}` : 'at the edge',
                  ],
                ]}
              />
            </Section>
            {runner != null && <Runner runner={runner} />}
            <Section title="Model endpoints that are avoided">
              <Table
                label="Table of avoided endpoints"
                rows={health.model_endpoints ?? []}
                columns={[
                  ['Endpoint', ({ endpoint }) => jsonText(endpoint)],
                  ['Model', (each) => jsonText(each['model'])],
                  ['Key', ({ key }) => jsonText(key)],
                  ['Failures in a row', ({ failures }) => jsonText(failures)],
                  [
                    'Until',
                    ({ state, next_try_at: at }) =>
                      state === 'half_open' ? 'the next call tests it' : <When at={at} isExact />,
                  ],
                ]}
              />
            </Section>
          </>
        )}
      </Loaded>
    </Page>
  );
}

function Runner({ runner }: { readonly runner: JsonObject }) {
  const { active, levels } = membersOf(runner['sandbox']);
  return (
    <Section title="Runner">
      <Facts
        facts={Object.entries(membersOf(active)).map(([interpreter, level]) => [
          interpreter,
          jsonText(level) || <Status status="unavailable" />,
        ])}
      />
      <Table
        label="Table of missing sandboxes"
        rows={missingOf(levels)}
        columns={[
          ['Sandbox', ({ level }) => level],
          ['Does not run', ({ interpreters }) => interpreters.join(', ')],
          ['Because', ({ reason }) => reason],
        ]}
      />
      <details>
        <summary>All that it reports</summary>
        <JsonView value={runner} label="Health of the runner" />
      </details>
    </Section>
  );
}
