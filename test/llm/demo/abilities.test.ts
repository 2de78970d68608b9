/** The demo provider with agents that use sub-agents, workflows and relics: everything that works without a model (L3). */
import { describe, expect, test } from 'vitest';
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

test('[C3] the help text suggests a tool that came with the message, and the suggestion calls it', () => {
  const parameters = { type: 'object', properties: { exact: { type: 'integer' } }, required: ['exact'] };
  const own = summaryOf('assistant');
  const agent = { ...own, tools: [...own.tools, { name: 'locate', summary: 'Finds the place.', parameters }] };
  const texts = ['hello', 'use locate {"exact":2}'].map((user) =>
    demoText({ messages: buildMessages({ system: '', history: [], current: { user, generations: [] } }), agent }),
  );
  expect(texts[0]).toContain('\n- use locate {"exact":2}\n');
  expect(texts[1]).toContain('{"name":"locate","parameters":{"exact":2}');
});

describe('[L3] the suggestions of the help text', () => {
  test.each(['research_orchestrator', 'analyst', 'notes_keeper', 'archivist'])('work with %s', (name) => {
    const { text } = ask(name, 'hello');
    const [, list = ''] = /\nTry:\n([\s\S]*?)\n\n/.exec(text) ?? [];
    const [first = ''] = list.split('\n').map((line) => line.replace(/^- /, ''));
    const { actions } = ask(name, first);
    expect(actions.length, first).toBeGreaterThan(0);
    const { workflows = [], relics = [] } = summaryOf(name);
    for (const { name: target, parameters } of actions) {
      const known = [...workflows, ...relics].find((one) => one.name === target);
      if (known !== undefined) expect(validateParameters(known.parameters, parameters as JsonObject)).toBeNull();
    }
  });
});
