/** OpenAI Agents SDK: an agent with function tools, `run` with streaming, over chat completions. */
import { Agent, OpenAIChatCompletionsModel, run, setTracingDisabled, tool } from '@openai/agents';
import OpenAI from 'openai';
import { DELAY_DESCRIPTION, DELAY_TOOLS, FETCH_DESCRIPTION, STEP_LIMIT } from './tools.ts';
import type { DelayInput, RunTask } from './tools.ts';

setTracingDisabled(true);

export const runTask: RunTask = async ({ baseUrl, prompt }, tools) => {
  const client = new OpenAI({ baseURL: baseUrl, apiKey: 'none' });
  const agent = new Agent({
    name: 'bench',
    instructions: 'You carry out plans.',
    model: new OpenAIChatCompletionsModel(client, 'scripted'),
    tools: [
      ...DELAY_TOOLS.map((name) =>
        tool({
          name,
          description: DELAY_DESCRIPTION,
          strict: false,
          parameters: {
            type: 'object',
            properties: { delay_ms: { type: 'number' }, q: { type: 'string' }, of: { type: 'string' } },
            required: [],
            additionalProperties: true,
          },
          execute: async (input) => await tools.wait(input as DelayInput),
        }),
      ),
      tool({
        name: 'web_fetch',
        description: FETCH_DESCRIPTION,
        strict: false,
        parameters: {
          type: 'object',
          properties: { url: { type: 'string' } },
          required: ['url'],
          additionalProperties: true,
        },
        execute: async (input) => await tools.fetch((input as { url: string }).url),
      }),
    ],
  });
  const result = await run(agent, prompt, { stream: true, maxTurns: STEP_LIMIT });
  let text = '';
  for await (const delta of result.toTextStream({ compatibleWithNodeStreams: false })) text += delta;
  await result.completed;
  return text;
};
