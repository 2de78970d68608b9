/** The first page: the tour, and a new conversation with any agent. */
import { useState } from 'preact/hooks';
import { access } from '../app/access.ts';
import { href, route, setQuery } from '../app/router.ts';
import { Composer } from '../chat/composer.tsx';
import { ChoiceField } from '../parts/fields.tsx';
import { ForeignText } from '../parts/foreign-text.tsx';
import { Loaded, useLoad } from '../parts/loaded.tsx';
import { useTask } from '../parts/task.tsx';
import { startSession, startStep } from './start.ts';
import { TOUR } from './tour-steps.ts';

const DEFAULT_AGENT = 'assistant';

export function StartPage() {
  const agents = useLoad(async (client) => await client.agents(), []);
  const { isBusy, fault, run } = useTask();
  const [begun, setBegun] = useState('');
  const { client } = access.value;

  return (
    <main id="main" class="page" tabIndex={-1}>
      <h1>See an agent think, plan and work</h1>
      <p class="lead">
        The model's text is the program: each action starts when its closing tag arrives, while the model is still
        writing. Watch it in three steps.
      </p>
      {fault}
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
              disabled={isBusy}
              aria-label={`Run it: ${step.title}`}
              onClick={() => {
                setBegun(step.id);
                void run(async () => await startStep(client, step));
              }}
            >
              {isBusy && begun === step.id ? 'Starting …' : 'Run it'}
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
                <ChoiceField
                  label="Agent"
                  value={agent.name}
                  options={list.map(({ name }) => name)}
                  set={(name) => setQuery({ agent: name })}
                />
                <p class="quiet">
                  <ForeignText text={agent.summary} />
                </p>
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
