/** LangGraph JS: the agent loop of its documentation, a model node and a `ToolNode`, streamed. */
import { tool } from '@langchain/core/tools';
import { END, MessagesAnnotation, START, StateGraph } from '@langchain/langgraph';
import { ToolNode, toolsCondition } from '@langchain/langgraph/prebuilt';
import { ChatOpenAI } from '@langchain/openai';
import { z } from 'zod';
import { DELAY_DESCRIPTION, DELAY_TOOLS, FETCH_DESCRIPTION, STEP_LIMIT } from './tools.ts';
import type { RunTask } from './tools.ts';

const delayInput = z.object({ delay_ms: z.number().optional(), q: z.string().optional(), of: z.string().optional() });

export const runTask: RunTask = async ({ baseUrl, prompt }, tools) => {
  const available = [
    ...DELAY_TOOLS.map((name) =>
      tool(async (input: z.infer<typeof delayInput>) => await tools.wait(input), {
        name,
        description: DELAY_DESCRIPTION,
        schema: delayInput,
      }),
    ),
    tool(async ({ url }: { url: string }) => await tools.fetch(url), {
      name: 'web_fetch',
      description: FETCH_DESCRIPTION,
      schema: z.object({ url: z.string() }),
    }),
  ];
  const model = new ChatOpenAI({
    model: 'scripted',
    apiKey: 'none',
    configuration: { baseURL: baseUrl },
  }).bindTools(available);
  const graph = new StateGraph(MessagesAnnotation)
    .addNode('model', async ({ messages }) => ({ messages: [await model.invoke(messages)] }))
    .addNode('tools', new ToolNode(available))
    .addEdge(START, 'model')
    .addConditionalEdges('model', toolsCondition, { tools: 'tools', [END]: END })
    .addEdge('tools', 'model')
    .compile();
  let text = '';
  const stream = await graph.stream(
    { messages: [{ role: 'user', content: prompt }] },
    { streamMode: 'messages', recursionLimit: STEP_LIMIT },
  );
  for await (const [message] of stream) {
    if (message.getType() === 'ai' && typeof message.content === 'string') text += message.content;
  }
  return text;
};
