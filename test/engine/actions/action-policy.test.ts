import { expect, test } from 'vitest';
import { loadManifests } from '../../../src/catalog/load.ts';
import { policyOf } from '../../../src/engine/actions/action-policy.ts';

const head = (kind: string, name: string): string => `kind: ${kind}\nversion: 1\nname: ${name}\nsummary: s\n`;
const { catalog } = loadManifests(
  Object.entries({
    'a.yaml': `${head('Agent', 'keeper')}persona: x\nimport: {agents: [helper], relics: [notes], workflows: [nightly]}\n`,
    'b.yaml': `${head('Agent', 'helper')}persona: x\n`,
    'c.yaml': `${head('Agent', 'stranger')}persona: x\n`,
    'n.yaml': `${head('Relic', 'notes')}executor: kv\nendpoints: {get: {timeout: 3s}, increment: {}}\n`,
    'w.yaml': `${head('Workflow', 'nightly')}steps: [{name: s, type: llm}]\n`,
    'v.yaml': `${head('Workflow', 'weekly')}steps: [{name: s, type: llm}]\n`,
  }).map(([path, text]) => ({ path, text })),
);
const resolved = catalog.agent('keeper');
const policy = (type: 'relic' | 'agent' | 'workflow', name: string, parameters = {}): ReturnType<typeof policyOf> =>
  policyOf({ type, name, parameters, timeoutMs: null, cacheTtlMs: null, idempotencyKey: null }, resolved, new Map());

test('[S7] a relic action has the effects and the time of its endpoint', () => {
  expect(policy('relic', 'notes.get')).toMatchObject({ effects: 'idempotent', timeoutMs: 3_000, refusal: null });
  expect(policy('relic', 'notes.increment')).toMatchObject({ effects: 'unsafe', refusal: null });
  expect(policy('relic', 'notes', { endpoint: 'get', key: 'a' })).toMatchObject({ effects: 'idempotent' });
});

test.each([
  ['relic', 'note.get', 'No relic is called "note" (did you mean "notes"?)'],
  ['relic', 'notes.gett', 'The relic "notes" has no endpoint "gett" (did you mean "get"?)'],
  ['relic', 'notes.__proto__', 'The relic "notes" has no endpoint "__proto__" (it has: get, increment)'],
  ['agent', 'helpr', 'No agent is called "helpr" (did you mean "helper"?)'],
  ['agent', 'stranger', 'Agent "keeper" does not import the agent "stranger" (it may use: helper)'],
  ['workflow', 'nigthly', 'No workflow is called "nigthly" (did you mean "nightly"?)'],
  ['workflow', 'weekly', 'Agent "keeper" does not import the workflow "weekly" (it may use: nightly)'],
] as const)('[M3] [X4] %s %s is refused with the nearest names', (type, name, message) => {
  expect(policy(type, name).refusal).toEqual({ code: 'unknown_name', message });
});

test.each([
  ['relic', 'notes.get'],
  ['agent', 'helper'],
  ['workflow', 'nightly'],
] as const)('[X4] %s %s is imported and may run', (type, name) => {
  expect(policy(type, name).refusal).toBeNull();
});
