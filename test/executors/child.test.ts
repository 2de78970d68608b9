/** `type="agent"`: the message that a sub-agent gets (M7, P6). */
import { expect, test } from 'vitest';
import type { JsonObject } from '../../src/domain/json.ts';
import type { ChildRequest } from '../../src/domain/ports/children.ts';
import { NOTHING_SPENT } from '../../src/domain/spent.ts';
import { agentExecutor } from '../../src/executors/child.ts';
import { callOf, contextOf, errorOf } from './support.ts';

async function ask(parameters: JsonObject): Promise<Pick<ChildRequest, 'message' | 'inputs'> | string> {
  const asked: ChildRequest[] = [];
  const context = contextOf({
    children: {
      run: (request) => {
        asked.push(request);
        return Promise.resolve({
          sessionId: 'ses_2',
          status: 'completed',
          output: 'done',
          error: null,
          spent: NOTHING_SPENT,
        });
      },
    },
  });
  const outcome = await agentExecutor.execute(callOf(parameters, { action: { type: 'agent', name: 'ann' } }), context);
  const [request] = asked;
  return request === undefined ? errorOf(outcome).message : { message: request.message, inputs: request.inputs };
}

test.each<[parameters: JsonObject, message: string, inputs: JsonObject]>([
  [{ message: 'Go', context: { a: 1 }, other: 2 }, 'Go', { a: 1 }],
  [{ instruction: 'Go' }, 'Go', {}],
  [{ anything: 'Go', op: 'prompt', ephemeral: true, dump_context: false, last_n: 5 }, 'Go', {}],
  [{ data: { a: [1] } }, '{"data":{"a":[1]}}', {}],
  [{ task: 'Go', data: [1], none: null }, '{"task":"Go","data":[1],"none":null}', {}],
  [{ logs: 'x', context: { cpu: 3 } }, '{"logs":"x","context":{"cpu":3}}', {}],
])('[P6] %j', async (parameters, message, inputs) => {
  expect(await ask(parameters)).toEqual({ message, inputs });
});

test.each<[parameters: JsonObject, error: string]>([
  [{}, 'parameters.message: expected a message for the agent, got nothing'],
  [{ ephemeral: true }, 'parameters.message: expected a message for the agent, got nothing'],
  [{ instruction: ' ' }, 'parameters.message: expected a message for the agent, got " "'],
  [{ message: 5, task: 'Go' }, 'parameters.message: expected a message for the agent, got 5'],
  [{ message: 'Go', context: 'x' }, 'parameters.context'],
])('[P6] %j is refused', async (parameters, error) => {
  expect(await ask(parameters)).toContain(error);
});
