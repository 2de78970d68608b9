import { expect, test } from 'vitest';
import { bundled } from '../../../src/catalog/bundled.ts';
import { resolveAgentVariables } from '../../../src/engine/session/resolve-agent-variables.ts';

test('[M5] the variables of a persona come from the session and the agent, never from the process', () => {
  const resolved = bundled.agent('assistant');
  if (resolved === null) throw new Error('the bundled catalogue has no assistant');
  const persona = {
    agent: '${AGENT_NAME} on ${DATE} for ${USER_ID:-nobody}; ${TEAM}, ${PATH:-no path}',
    user: '',
    examples: [],
  };
  const agent = { ...resolved.agent, persona, variables: { TEAM: 'blue' } };
  const record = {
    session_id: 'ses_1',
    agent: 'assistant',
    user_id: null,
    owner: null,
    kind: 'chat' as const,
    metadata: {},
    created_at: Date.UTC(2026, 0, 2, 3),
  };
  expect(resolveAgentVariables({ ...resolved, agent }, record).agent.persona.agent).toBe(
    'assistant on 2026-01-02 for nobody; blue, no path',
  );
});
