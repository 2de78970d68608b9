/** Protocol text: its plan as one types, and its run (U5). */
import { route, setQuery } from '../app/router.ts';
import { draft } from '../parts/drafts.ts';
import { ChoiceField, CodeField } from '../parts/fields.tsx';
import { Loaded, useLoad } from '../parts/loaded.tsx';
import { Page } from '../parts/page.tsx';
import { Section } from '../parts/section.tsx';
import { useTyped } from '../parts/typed.ts';
import { PlanView } from './plan-view.tsx';
import { EXAMPLES } from './playground-examples.ts';
import { RunForm } from './run-form.tsx';

const DEFAULT_AGENT = 'assistant';

export function PlaygroundPage() {
  const agents = useLoad(async (client, aborted) => await client.agents({ signal: aborted }), []);
  const agent = route.value.query['agent'] ?? DEFAULT_AGENT;
  const written = draft('playground', EXAMPLES[0]?.text ?? '');
  const text = written.value;
  const plan = useTyped(text, async (client, aborted) => await client.plan(text, { agent, signal: aborted }), [agent]);
  const names = new Set([agent, ...(agents.value ?? []).map(({ name }) => name)]);
  return (
    <Page
      title="Playground"
      about="Write what a model would write. The plan follows while you type; Run executes it without a model."
    >
      <div class="playground">
        <RunForm
          start={async (client, left) => await client.execute(text, { agent, signal: left })}
          isReady={text.trim() !== ''}
        >
          <ChoiceField
            label="Agent whose tools it may use"
            value={agent}
            options={[...names]}
            set={(name) => setQuery({ agent: name })}
          />
          <div class="row" role="group" aria-label="Insert an example">
            {EXAMPLES.map((example) => (
              <button
                key={example.title}
                type="button"
                class="small"
                aria-pressed={text === example.text}
                onClick={() => (written.value = example.text)}
              >
                {example.title}
              </button>
            ))}
          </div>
          <CodeField label="Protocol text" rows={18} value={text} set={(to) => (written.value = to)} />
        </RunForm>
        <Section title="Plan">
          <Loaded load={plan}>
            {({ result }) =>
              result === undefined ? (
                <p class="empty-state">Write something, or insert an example.</p>
              ) : (
                <PlanView plan={result} />
              )
            }
          </Loaded>
        </Section>
      </div>
    </Page>
  );
}
