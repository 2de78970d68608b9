/** The first page: the tour, and a new conversation with any agent. */
import { useState } from 'preact/hooks';
import { access, isKeyMissing } from '../app/access.ts';
import { href, route, setQuery } from '../app/router.ts';
import { Composer } from '../chat/composer.tsx';
import { Fault } from '../parts/fault.tsx';
import { ForeignText } from '../parts/foreign-text.tsx';
import { Loaded, useLoad } from '../parts/loaded.tsx';
import { startSession } from './start.ts';
import { TOUR } from './tour-steps.ts';
import type { TourStep } from './tour-steps.ts';

const DEFAULT_AGENT = 'assistant';

export function StartPage() {
  const agents = useLoad(async (client) => await client.agents(), []);
  const [fault, setFault] = useState<unknown>(null);
  const [begun, setBegun] = useState<string | null>(null);
  const { client } = access.value;

  const begin = async ({ id, agent, message }: TourStep): Promise<void> => {
    setBegun(id);
    setFault(null);
    try {
      await startSession(client, { agent, content: message, metadata: { tour: id } });
    } catch (error) {
      if (!isKeyMissing(error)) setFault(error);
      setBegun(null);
    }
  };

  return (
    <main id="main" class="page" tabIndex={-1}>
      <h1>See an agent think, plan and work</h1>
      <p class="lead">
        The model's text is the program: each action starts when its closing tag arrives, while the model is still
        writing. Watch it in three steps.
      </p>
      {fault !== null && <Fault fault={fault} />}
      <ol class="cards" aria-label="Tour">
        {TOUR.map((step, index) => (
          <li key={step.id} class="card tour-card">
            <h2>
              {index + 1}. {step.title}
            </h2>
            <p>{step.about}</p>
            <blockquote>{step.message}</blockquote>
            <button
              type="button"
              class={index === 0 ? 'primary' : ''}
              disabled={begun !== null}
              aria-label={`Run it: ${step.title}`}
              onClick={() => void begin(step)}
            >
              {begun === step.id ? 'Starting …' : 'Run it'}
            </button>
          </li>
        ))}
      </ol>
      <section class="start-chat" aria-label="New conversation">
        <h2>Or write your own message</h2>
        <Loaded load={agents}>
          {(list) => {
            const asked = route.value.query['agent'] ?? DEFAULT_AGENT;
            const agent = list.find(({ name }) => name === asked) ?? list[0];
            if (agent === undefined) {
              return (
                <p>
                  No agent is loaded yet. <a href={href(['manifests'])}>See the manifests</a>
                </p>
              );
            }
            return (
              <>
                <div class="field">
                  <label for="agent">Agent</label>
                  <select
                    id="agent"
                    value={agent.name}
                    onChange={({ currentTarget: { value } }) => setQuery({ agent: value })}
                  >
                    {list.map(({ name }) => (
                      <option key={name}>{name}</option>
                    ))}
                  </select>
                  <p class="quiet">
                    <ForeignText text={agent.summary} />
                  </p>
                </div>
                <Composer
                  draft="start"
                  stop={null}
                  send={async (content, tools) => await startSession(client, { agent: agent.name, content, tools })}
                />
              </>
            );
          }}
        </Loaded>
      </section>
    </main>
  );
}
