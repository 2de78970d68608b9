/** The demo provider with agents that use sub-agents, workflows and relics: everything that works without a model (L3). */
import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { TOUR } from '../../../console/session/tour-steps.ts';
import { bundled } from '../../support/bundled.ts';
import type { ActionDeclaration } from '../../../src/domain/action.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import type { ModelRequest } from '../../../src/domain/ports/model.ts';
import { agentSummary } from '../../../src/engine/generation/agent-summary.ts';
import { validateParameters } from '../../../src/executors/validate-parameters.ts';
import { buildMessages } from '../../../src/protocol/prompt/feedback.ts';
import { createParser } from '../../../src/protocol/parser/parser.ts';
import { demoText } from '../../support/demo-text.ts';

function summaryOf(name: string): NonNullable<ModelRequest['agent']> {
  const resolved = bundled.agent(name);
  if (resolved === null) throw new Error(`no agent ${name}`);
  return agentSummary(resolved);
}

function ask(agent: string, user: string): { readonly text: string; readonly actions: readonly ActionDeclaration[] } {
  const messages = buildMessages({ system: '', history: [], current: { user, generations: [] } });
  const text = demoText({ messages, agent: summaryOf(agent) });
  const parser = createParser({ json: 'strict', actInReasoning: false });
  const events = [...parser.feed(text), ...parser.end()];
  expect(events.filter(({ type }) => type === 'warning' || type === 'action_rejected')).toEqual([]);
  return { text, actions: events.flatMap((event) => (event.type === 'action_declared' ? [event.action] : [])) };
}

test('[L3] several agents are called at the same time, each with its own message', () => {
  const { actions, text } = ask(
    'research_orchestrator',
    'ask researcher to calculate 6 * 7; ask researcher: what is 5+4',
  );
  expect(actions).toMatchObject([
    { type: 'agent', name: 'researcher', mode: 'async', parameters: { message: 'calculate 6 * 7' } },
    { type: 'agent', name: 'researcher', mode: 'async', parameters: { message: 'what is 5+4' } },
  ]);
  expect(new Set(actions.map(({ id }) => id)).size).toBe(2);
  for (const { outputKey } of actions) expect(text).toContain(`$${outputKey ?? ''}`);
});

test('[L3] a workflow runs with the inputs after its name', () => {
  const orders = [{ item: 'lamp', price: 20, quantity: 3 }];
  const { actions } = ask('analyst', `run data_pipeline with ${JSON.stringify({ orders })}`);
  expect(actions).toMatchObject([{ type: 'workflow', name: 'data_pipeline', parameters: { orders } }]);
});

test('[L3] relics are called by their endpoints', () => {
  const { actions } = ask('notes_keeper', 'notes.set {"key": "milk", "value": "two bottles for $2"}, then notes.list');
  expect(actions).toMatchObject([
    { type: 'relic', name: 'notes.set', parameters: { key: 'milk', value: 'two bottles for $$2' } },
    { type: 'relic', name: 'notes.list', parameters: {} },
  ]);
});

test('[L3] a feed is shown by its id', () => {
  const messages = buildMessages({
    system: '',
    history: [],
    current: {
      user: 'what is the system',
      generations: [],
      feeds: [{ id: 'system', ageMs: 5, value: 'all well' }],
    },
  });
  expect(demoText({ messages, agent: summaryOf('system_monitor') })).toContain('${system}');
});

test('[C3] a tool that came with the message is used by its name, with the parameters that are given, or a sample', () => {
  const own = summaryOf('assistant');
  const schemas = { exact: { type: 'integer' }, place: { type: 'string' }, more: {} };
  const parameters = { type: 'object', properties: schemas, required: ['exact', 'place'] };
  const agent = { ...own, tools: [...own.tools, { name: 'locate', summary: 'Finds the place.', parameters }] };
  const texts = ['use locate', 'use locate {"exact":3}'].map((user) =>
    demoText({ messages: buildMessages({ system: '', history: [], current: { user, generations: [] } }), agent }),
  );
  expect(texts[0]).toContain('{"name":"locate","parameters":{"exact":2,"place":"place"}');
  expect(texts[1]).toContain('{"name":"locate","parameters":{"exact":3}');
});

/** What the documentation and the console offer: [agent, message]. */
function offered(): (readonly [agent: string, message: string])[] {
  const section = (file: string, title: string): string =>
    readFileSync(file, 'utf8').split(`## ${title}\n`)[1]?.split('\n## ')[0] ?? '';
  const agents = Array.from(
    section('docs/manifests.md', 'Bundled agents').matchAll(/^\| `(\w+)` \|.*\| `(.+)` \|$/gm),
    ([, agent = '', message = '']) => [agent, message] as const,
  );
  const listed = section('docs/models.md', 'Demo model')
    .split('\n')
    .flatMap((line) => {
      const example = /^\| [a-z ]+ \| (.*) \|$/i.exec(line)?.[1] ?? '';
      const agent = /\(with `(\w+)`\)/.exec(example)?.[1] ?? 'assistant';
      const quoted = /(?<!`)``(?!`)(.*?)``(?!`)|(?<!`)`([^`]+)`(?!`)/g;
      const messages = Array.from(example.matchAll(quoted), ([, long, short = '']) => long ?? short);
      return messages.filter((message) => message !== agent).map((message) => [agent, message] as const);
    });
  expect([agents.length, listed.length].map((count) => count > 0)).toEqual([true, true]);
  return [...agents, ...listed, ...TOUR.map(({ agent, message }) => [agent, message] as const)];
}

test.each(offered().filter(([agent]) => agent !== 'eval_judge'))(
  '[L3] with %s, the offered message %j is understood',
  (name, user) => {
    const agent = summaryOf(name);
    const history = [{ user: 'remember my city is Oslo', generations: [{ text: 'x', results: [] }] }];
    const feeds = ['system', 'clock'].map((id) => ({ id, ageMs: 5, value: 'all well' }));
    const text = demoText({
      messages: buildMessages({ system: '', history, current: { user, generations: [], feeds } }),
      agent,
    });
    expect(text).not.toContain('I did not understand');
    expect(text).not.toContain('Try:');
    const parser = createParser({ json: 'strict', actInReasoning: false });
    const events = [...parser.feed(text), ...parser.end()];
    expect(events.filter(({ type }) => type === 'warning' || type === 'action_rejected')).toEqual([]);
    for (const event of events) {
      if (event.type !== 'action_declared') continue;
      const { name: target, parameters } = event.action;
      const known = [...agent.tools, ...(agent.workflows ?? []), ...(agent.relics ?? [])].find(
        (one) => one.name === target,
      );
      if (known !== undefined) expect(validateParameters(known.parameters, parameters as JsonObject)).toBeNull();
    }
  },
);
