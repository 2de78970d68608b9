/** Policies in real objects: sessions, their children, and approvals (C9). */
import { expect, test } from 'vitest';
import type { RunResult } from '../../src/engine/run/run-result.ts';
import { call, execute, post } from './client.ts';

const head = (kind: string, name: string): string =>
  `kind: ${kind}\nversion: "1.0"\nname: ${name}\nsummary: Of a test.\n`;

async function upload(kind: string, name: string, more: string): Promise<void> {
  const stored = await call(`/manifests/${kind.toLowerCase()}/${name}`, {
    method: 'PUT',
    body: `${head(kind, name)}${more}`,
  });
  if (!stored.ok) throw new Error(await stored.text());
}

const STEPS = 'steps: [{name: said, type: tool, target: echo, parameters: {text: hi}}]\noutputs: {said: steps.said}\n';
const WORKFLOW = '<action type="workflow" id="w">{"name":"policy_steps"}</action>';

test('[C9] the policies of an agent bind the steps of a workflow that it starts, in a session of its own', async () => {
  await upload('Workflow', 'policy_steps', STEPS);
  const agent = 'persona: You.\nimport: {tools: [echo], workflows: [policy_steps]}\n';
  await upload('Agent', 'policy_free', agent);
  await upload(
    'Agent',
    'policy_bound',
    `${agent}policies: [{when: action.name == "echo", do: deny, message: no echo}]\n`,
  );
  const free = await execute(WORKFLOW, { agent: 'policy_free' });
  expect(free.actions[0]).toMatchObject({ status: 'completed' });
  const bound = await execute(WORKFLOW, { agent: 'policy_bound' });
  expect(bound.actions[0]).toMatchObject({
    status: 'failed',
    error: {
      code: 'child_failed',
      message: expect.stringContaining(
        'A policy does not allow the action "said" (agent policy_bound, rule 1): no echo',
      ),
    },
  });
});

test('[C9] a workflow is bound by its own policies, and asks with their message', async () => {
  await upload('Workflow', 'policy_asks', `${STEPS}policies: [{when: action.name == "echo", do: ask, message: why}]\n`);
  const started = await post('/workflows/policy_asks/runs', { inputs: {} }, { accept: 'application/json' });
  const run = await started.json<RunResult>();
  expect(run).toMatchObject({ status: 'waiting', approvals: [{ action_id: 'said', reason: 'why' }] });
  const [asked] = run.approvals ?? [];
  const path = `/agent/session/${run.session_id}/approvals/${asked?.approval_id}`;
  expect(await (await call(path)).json()).toMatchObject({ reason: 'why', parameters: { text: 'hi' } });
  await post(path, { decision: 'approve' });
  const document = async (): Promise<RunResult> =>
    await (await call(`/agent/session/${run.session_id}/runs/${run.run_id}`)).json<RunResult>();
  await expect.poll(async () => (await document()).status).toBe('completed');
  expect((await document()).outputs).toEqual({ said: { text: 'hi' } });
});
