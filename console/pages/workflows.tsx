/** Workflows: what starts them, their steps, and running one (U4). */
import { useState } from 'preact/hooks';
import type { JsonObject, ScheduleEntry, WorkflowEntry } from '../../src/client/index.ts';
import { href } from '../app/router.ts';
import { List } from '../parts/bounded.tsx';
import { CodeField } from '../parts/fields.tsx';
import { ForeignText } from '../parts/foreign-text.tsx';
import { plural } from '../parts/format.ts';
import { JsonView } from '../parts/json-view.tsx';
import { Loaded, useLoad } from '../parts/loaded.tsx';
import { Page } from '../parts/page.tsx';
import { Section } from '../parts/section.tsx';
import { Table } from '../parts/table.tsx';
import { When } from '../parts/when.tsx';
import { Card } from './card.tsx';
import { jsonText } from './json-text.ts';
import { RunForm } from './run-form.tsx';
import { exampleOf, inputsIn } from './schema-example.ts';

/** Start times of each schedule. */
const STARTS = 3;

/** @param props.name null: the list of all workflows */
export function WorkflowsPage({ name }: { readonly name: string | null }) {
  const load = useLoad(async (client, signal) => {
    const [workflows, schedules] = await Promise.all([
      client.workflows({ signal }),
      client.schedules({ count: STARTS, signal }),
    ]);
    return { workflows, schedules };
  }, []);
  return (
    <Page
      title={name ?? 'Workflows'}
      about="Pipelines with fixed steps. A workflow is started by hand, by a schedule, by a webhook or by an event."
      actions={
        name !== null && (
          <a class="button" href={href(['manifests', 'workflow', name])}>
            Manifest
          </a>
        )
      }
    >
      <Loaded load={load}>
        {({ workflows, schedules }) => {
          const shown = workflows.filter((workflow) => name === null || workflow.name === name);
          return (
            <>
              {shown.length === 0 && (
                <p class="empty-state">
                  This workflow does not exist. <a href={href(['manifests'])}>See the manifests</a>
                </p>
              )}
              {name === null ? (
                <List items={shown} of="cards">
                  {(workflow) => (
                    <Card key={workflow.name} place="workflows" name={workflow.name} summary={workflow.summary}>
                      <p class="quiet">
                        {triggerText(workflow.trigger)}, {plural(workflow.steps.length, 'step')}
                      </p>
                    </Card>
                  )}
                </List>
              ) : (
                shown.map((workflow) => <Workflow key={workflow.name} workflow={workflow} />)
              )}
              <Schedules schedules={schedules.filter(({ workflow }) => name === null || workflow === name)} />
            </>
          );
        }}
      </Loaded>
    </Page>
  );
}

function triggerText({ type, cron, event }: JsonObject): string {
  return `Trigger: ${[type, cron, event].map(jsonText).join(' ')}`;
}

function Workflow({
  workflow: { name, version, summary, trigger, inputs, steps },
}: {
  readonly workflow: WorkflowEntry;
}) {
  const [text, setText] = useState(() => JSON.stringify(exampleOf(inputs) ?? {}, null, 2));
  const parsed = inputsIn(text);
  return (
    <>
      <p>
        <ForeignText text={summary} />
      </p>
      <p class="quiet">
        Version {version}. {triggerText(trigger)}
      </p>
      <Section title="Run it">
        <RunForm
          isReady={'inputs' in parsed}
          start={async (client, signal) =>
            await client.runWorkflow(name, 'inputs' in parsed ? parsed.inputs : {}, { signal })
          }
        >
          <CodeField label="Inputs" rows={10} value={text} set={setText} />
          {'issue' in parsed && (
            <p class="status-failed" role="status">
              {parsed.issue}
            </p>
          )}
        </RunForm>
      </Section>
      <Section title="Steps">
        <Table
          label="Table of steps"
          rows={steps}
          columns={[
            ['Step', (step) => step.name],
            ['Type', ({ type }) => type],
            ['Calls', ({ target }) => jsonText(target)],
          ]}
        />
      </Section>
      {inputs !== null && (
        <Section title="Schema of the inputs">
          <JsonView value={inputs} label="Schema of the inputs" />
        </Section>
      )}
    </>
  );
}

function Schedules({ schedules }: { readonly schedules: readonly ScheduleEntry[] }) {
  return (
    <Section title="Schedules">
      <Table
        label="Table of schedules"
        rows={schedules}
        columns={[
          ['Workflow', ({ workflow }) => <a href={href(['workflows', workflow])}>{workflow}</a>],
          ['Times', ({ cron, timezone }) => `${cron} ${timezone}`],
          [
            'Next starts',
            ({ next }) =>
              next.map((at) => (
                <p key={at}>
                  <When at={at} isExact />
                </p>
              )),
          ],
          ['Inputs', ({ inputs, workflow }) => <JsonView value={inputs} label={`Inputs of ${workflow}`} />],
        ]}
      />
    </Section>
  );
}
