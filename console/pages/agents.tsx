/** Agents, and the prompt of one of them as the model gets it (U4). */
import { href } from '../app/router.ts';
import { List } from '../parts/bounded.tsx';
import { CopyButton } from '../parts/copy-button.tsx';
import { count } from '../parts/format.ts';
import { TextView } from '../parts/json-view.tsx';
import { Loaded, useLoad } from '../parts/loaded.tsx';
import { Page } from '../parts/page.tsx';
import { Section } from '../parts/section.tsx';
import { Table } from '../parts/table.tsx';
import { Card } from './card.tsx';

export function AgentsPage() {
  const load = useLoad(async (client, signal) => await client.agents({ signal }), []);
  return (
    <Page title="Agents" about="Who can be asked. An agent is a manifest: a persona, and the tools that it may use.">
      <Loaded load={load}>
        {(agents) =>
          agents.length === 0 ? (
            <p class="empty-state">
              No agent is loaded. <a href={href(['manifests'])}>See what is wrong with the manifests</a>
            </p>
          ) : (
            <List items={agents} of="cards">
              {({ name, summary }) => (
                <Card key={name} place="agents" name={name} summary={summary}>
                  <a class="button" href={href([], { agent: name })} aria-label={`Chat with ${name}`}>
                    Chat
                  </a>
                </Card>
              )}
            </List>
          )
        }
      </Loaded>
    </Page>
  );
}

export function AgentPage({ name }: { readonly name: string }) {
  const load = useLoad(async (client, signal) => await client.prompt(name, { signal }), [name]);
  return (
    <Page
      title={name}
      about="The system prompt of a new session, as the model would get it now. Tokens are estimates."
      actions={
        <div class="row">
          <a class="button" href={href(['manifests', 'agent', name])}>
            Manifest
          </a>
          <a class="button primary" href={href([], { agent: name })}>
            Chat
          </a>
        </div>
      }
    >
      <Loaded load={load}>
        {({ prompt, characters, tokens, sections }) => (
          <>
            <Section title="Where its tokens go">
              <Table
                label="Tokens of each section"
                rows={sections}
                columns={[
                  ['Section', ({ title }) => title],
                  ['Tokens', (section) => count(section.tokens)],
                  [
                    'Share',
                    (section) => (
                      <span class="bar" aria-hidden="true">
                        <span style={{ width: `${(100 * section.tokens) / tokens}%` }} />
                      </span>
                    ),
                  ],
                ]}
              />
              <p class="quiet">
                Together {count(tokens)} tokens, {count(characters)} characters.
              </p>
            </Section>
            <Section title="System prompt" actions={<CopyButton text={prompt} label="Copy prompt" />}>
              <TextView text={prompt} label="System prompt" />
            </Section>
          </>
        )}
      </Loaded>
    </Page>
  );
}
