/** Names that no tool from outside may have (C3, E5). */
import { expect, test } from 'vitest';
import { takenNames } from '../../src/domain/taken-names.ts';
import { bundled } from '../support/bundled.ts';

test('[C10] remember and forget are taken by agents that keep facts only', () => {
  const assistant = bundled.agent('assistant');
  if (assistant === null) throw new Error('the bundled catalogue has no assistant');
  const { agent } = assistant;
  const keeping = { ...agent, memory: { ...agent.memory, facts: { max: 5, maxTokens: 100 } } };
  for (const name of ['remember', 'forget']) {
    expect(takenNames(assistant).has(name)).toBe(false);
    expect(takenNames({ ...assistant, agent: keeping }).get(name)).toBe('an internal action');
  }
  expect(takenNames(assistant).has('set_variable')).toBe(true);
});
