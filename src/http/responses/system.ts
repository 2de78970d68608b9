/** Responses about the system and its agents. */
import * as z from 'zod';
import { json, jsonObject } from '../../domain/event-table.ts';
import { PART_STATES } from '../health.ts';
import { count, number, text } from './members.ts';

export const health = z.object({
  status: z
    .enum(['healthy', 'starting', 'degraded'])
    .describe('`starting`: a part has not worked yet; `degraded`: a part no longer works'),
  service: z.literal('cortex-edge').describe('The name of the service'),
  version: text('The version of the system'),
  parts: z
    .object({ runner: z.enum(PART_STATES).exactOptional().describe('The best of the configured runners') })
    .describe('The state of each configured part'),
  missing: z
    .array(z.object({ part: z.literal('runner').describe('The part'), reason: text('Why it does not work') }))
    .exactOptional()
    .describe('Configured parts that do not work'),
  executors: z.array(json).describe('Available action types'),
  model: z.string().exactOptional().describe('The default model; with an API key only'),
  model_endpoints: z
    .array(jsonObject)
    .exactOptional()
    .describe('Model endpoints that are avoided because they failed; with an API key only'),
  runner: jsonObject.nullable().exactOptional().describe('Health of the runner; with an API key only'),
  set_aside: z.array(z.string()).exactOptional().describe('Databases that could not be read and were renamed'),
});

export const executors = z.object({
  executors: z.array(jsonObject).describe('Action types: where they run, and whether they are available'),
});

export const agents = z.object({
  agents: z
    .array(z.object({ name: text('Name of the agent'), summary: text('What it does') }))
    .describe('The agents that can be used'),
});

export const agentPrompt = z.object({
  agent: text('Name of the agent'),
  prompt: text('The system prompt'),
  characters: number('Length of the prompt'),
  tokens: count.describe('An estimate'),
  sections: z
    .array(z.object({ title: text('Title of the section'), tokens: number('An estimate') }))
    .describe('The sections of the prompt'),
  parts: z
    .array(
      z.object({
        id: text('Id of the part, see docs/prompt.md'),
        state: z.enum(['built_in', 'replaced', 'left_out']).describe('What the manifest does with it'),
        tokens: number('An estimate; 0 if it is left out'),
        share: z.number().describe('Share of the tokens of all parts, 0 to 1'),
      }),
    )
    .describe('The parts of the prompt, in its order'),
  warnings: z.array(z.string()).describe('Mistakes in examples of the manifest'),
});

export const agentGrammar = z.object({
  grammar: text('The grammar'),
  notes: z.array(z.string()).describe('Constraints of parameters that the grammar does not express'),
});

export const document = z.looseObject({ openapi: text('Version of OpenAPI') });
