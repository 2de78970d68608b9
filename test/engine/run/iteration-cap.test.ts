import { expect, test } from 'vitest';
import type { AgentDefinition } from '../../../src/domain/manifests/agent.ts';
import { migrated } from '../../support/migrated.ts';
import { say, sessionKit } from '../../support/session-kit.ts';

const ACTION = '<action type="tool" mode="async" id="a">{"name":"echo","parameters":{}}</action>';

/** An agent in the form of the original, converted. */
function loaded(rest: string): AgentDefinition {
  const text = `kind: Agent\nversion: "1.0"\nname: helper\nsummary: s\npersona: p\n${rest}\n`;
  const { catalog, problems } = migrated([{ path: 'agent.yml', text }]);
  expect(problems).toEqual([]);
  const agent = catalog.agent('helper')?.agent;
  if (agent === undefined) throw new Error('the agent did not load');
  return agent;
}

test.each([
  ['iteration_cap: 2', 2],
  ['iteration_cap: 0', 1],
  ['runtime: {max_iterations: 3}', 3],
  ['context: {max_iterations: 1}', 1],
])('[S11] with %s, a model that never ends is called for %d iterations and the last generation', async (rest, cap) => {
  const { loop, budgets } = loaded(rest);
  const script = Array.from({ length: 20 }, () => ACTION);
  const kit = await sessionKit({ agent: (agent) => ({ ...agent, loop, budgets }), script });
  expect(await say(kit, 'go')).toMatchObject({ status: 'failed', error: { code: 'max_iterations' } });
  expect(kit.requests).toHaveLength(cap + 1);
  expect(kit.requests.at(-1)?.messages.at(-1)?.content).toContain('This is the last generation');
});
