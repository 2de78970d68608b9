/** What a person is asked (J8). */
import { expect, test } from 'vitest';
import type { JsonObject } from '../../src/domain/json.ts';
import { limits } from '../../src/domain/limits.ts';
import type { AgentDefinition } from '../../src/domain/manifest.ts';
import { runText, sessionKit } from '../support/session-kit.ts';

const supervised = (agent: AgentDefinition): AgentDefinition => ({
  ...agent,
  loop: { ...agent.loop, mode: 'supervised' },
});

async function asked(first: JsonObject): Promise<JsonObject | undefined> {
  const kit = await sessionKit({
    agent: supervised,
    executors: { tool: async ({ parameters }) => ({ ok: true, output: parameters }) },
  });
  const pay = { code: 'print(inputs)', inputs: { sum: '$bill.total', note: 'for $bill.who' } };
  await runText(
    kit,
    `<action name="echo" id="bill">${JSON.stringify(first)}</action>`,
    `<action type="python" id="pay">${JSON.stringify(pay)}</action>`,
  );
  return kit.events.find(({ type }) => type === 'approval_requested')?.data;
}

test('[J8] [P14] a person sees the values that the action would get', async () => {
  expect(await asked({ total: 700, who: 'Ann' })).toMatchObject({
    type: 'python',
    parameters: { code: 'print(inputs)' },
    inputs: { sum: 700, note: 'for Ann' },
  });
});

test('[J8] values that would fill pages stay names', async () => {
  const data = await asked({ total: 'x'.repeat(limits.approvalChars), who: 'Ann' });
  expect(data).toMatchObject({ parameters: { inputs: { sum: '$bill.total' } } });
  expect(data).not.toHaveProperty('inputs');
});
