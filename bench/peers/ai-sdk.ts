/** Vercel AI SDK: `streamText` with tools, several steps. */
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { isStepCount, streamText, tool } from 'ai';
import { z } from 'zod';
import { DELAY_DESCRIPTION, DELAY_TOOLS, FETCH_DESCRIPTION, STEP_LIMIT } from './tools.ts';
import type { RunTask } from './tools.ts';

const delayInput = z.object({ delay_ms: z.number().optional(), q: z.string().optional(), of: z.string().optional() });

export const runTask: RunTask = async ({ baseUrl, prompt }, tools) => {
  const provider = createOpenAICompatible({ name: 'scripted', baseURL: baseUrl, apiKey: 'none' });
  const wait = tool({
    description: DELAY_DESCRIPTION,
    inputSchema: delayInput,
    execute: async (input) => await tools.wait(input),
  });
  const result = streamText({
    model: provider('scripted'),
    prompt,
    tools: {
      ...Object.fromEntries(DELAY_TOOLS.map((name) => [name, wait])),
      web_fetch: tool({
        description: FETCH_DESCRIPTION,
        inputSchema: z.object({ url: z.string() }),
        execute: async ({ url }) => await tools.fetch(url),
      }),
    },
    stopWhen: isStepCount(STEP_LIMIT),
    onError: ({ error }) => {
      throw error;
    },
  });
  let text = '';
  for await (const delta of result.textStream) text += delta;
  return text;
};
