/** The examples of the prompt run as they are shown: the same results for the model, the same answer for the user (L4). */
import { describe, expect, test } from 'vitest';
import type { ActionOutcome } from '../../../../src/domain/action.ts';
import type { Json } from '../../../../src/domain/json.ts';
import type { ActionCall } from '../../../../src/executors/executor.ts';
import { promptExamples } from '../../../../src/protocol/prompt/examples.ts';
import { toolOf } from '../../../support/definitions.ts';
import { eventsOf } from '../../../support/events.ts';
import { say, sessionKit, variablesOf } from '../../../support/session-kit.ts';
import type { SessionKit } from '../../../support/session-kit.ts';

const NEEDS = {
  python: true,
  shell: true,
  variables: true,
  feeds: true,
  agents: false,
  relics: false,
  workflows: false,
} as const;
type Needs = Parameters<typeof promptExamples>[0];

/** What the fictional tools of the examples do. */
async function execute({ action, parameters, inputs }: ActionCall): Promise<ActionOutcome> {
  const difference = (values: { readonly a?: Json; readonly b?: Json }): number => Number(values.a) - Number(values.b);
  switch (action.name ?? action.type) {
    case 'tickets':
      return parameters['state'] === 'open'
        ? {
            ok: true,
            output: [
              { id: 7, title: 'Server down' },
              { id: 9, title: 'New mouse' },
            ],
          }
        : {
            ok: false,
            error: { code: 'invalid_parameters', message: 'state must be open or closed', retryable: false },
          };
    case 'weather':
      return { ok: true, output: { celsius: parameters['city'] === 'Rome' ? 19 : 7 } };
    case 'subtract':
      return { ok: true, output: difference(parameters) };
    default:
      return { ok: true, output: difference(inputs) };
  }
}

/** A session in which the model writes the outputs of the example. */
async function performed(example: ReturnType<typeof promptExamples>[number], needs: Needs): Promise<SessionKit> {
  const tools = ['tickets', 'weather', 'subtract'].map((name) =>
    toolOf(
      { type: 'builtin', entrypoint: 'echo' },
      { name, parameters: { type: 'object', additionalProperties: true } },
    ),
  );
  return await sessionKit({
    script: example.outputs.map(({ text }) => text),
    tools,
    executors: { tool: execute, python: execute, shell: execute },
    agent: (agent) => ({
      ...agent,
      protocol: { ...agent.protocol, form: needs.form, json: 'strict' },
      internalActions: { enabled: true, allowed: null, blocked: [] },
    }),
  });
}

const CASES = (['full', 'compact'] as const).flatMap((form) =>
  [
    { ...NEEDS, form },
    { ...NEEDS, form, python: false, variables: false },
    { ...NEEDS, form, python: false, shell: false },
  ].flatMap((needs) => promptExamples(needs).map((example) => ({ example, needs, title: example.title, form }))),
);

describe('[L4] an example of the prompt', () => {
  test.each(CASES)('"$title" gives the results that it shows, $form form', async ({ example, needs }) => {
    const kit = await performed(example, needs);
    const result = await say(kit, example.user);
    expect(result).toMatchObject({ status: 'completed', warnings: [] });
    expect(kit.requests).toHaveLength(example.outputs.length);
    for (const [index, { results }] of example.outputs.entries()) {
      // The example leaves out the duration.
      const shown = kit.requests[index + 1]?.messages.at(-1)?.content.replaceAll(/ ms="\d+"/g, '');
      if (results !== undefined) expect(shown).toContain(results);
    }
  });

  test.each(['full', 'compact'] as const)('has the answer that follows from the results, %s form', async (form) => {
    const answers: unknown[] = [];
    for (const needs of [
      { ...NEEDS, form },
      { ...NEEDS, form, python: false },
      { ...NEEDS, form, python: false, shell: false },
    ]) {
      for (const example of promptExamples(needs).slice(0, 2)) {
        const kit = await performed(example, needs);
        answers.push((await say(kit, example.user)).response);
      }
    }
    const both = ['Ticket 7: the server is down.', 'By 12 °C: Oslo has 7 °C, Rome 19 °C.'];
    expect(answers).toEqual([...both, ...both, ...both]);
  });

  test.each(['full', 'compact'] as const)(
    'of an internal action sets the variable, or adds the feed, %s form',
    async (form) => {
      const setting = promptExamples({ ...NEEDS, form }).at(-1);
      const watching = promptExamples({ ...NEEDS, form, variables: false }).at(-1);
      if (setting === undefined || watching === undefined) throw new Error('there is no example');
      const variables = await performed(setting, { ...NEEDS, form });
      expect((await say(variables, setting.user)).response).toBe('I will.');
      expect(await variablesOf(variables.session)).toEqual({ colour: 'green' });
      const feeds = await performed(watching, { ...NEEDS, form });
      expect((await say(feeds, watching.user)).response).toBe('I will.');
      expect(eventsOf(feeds.events, 'action_completed')).toHaveLength(1);
      await say(feeds, 'What time is it?');
      expect(feeds.requests.at(-1)?.messages.at(-1)?.content).toContain('<context_feed id="clock"');
    },
  );
});
