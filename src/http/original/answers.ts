/** Responses of the original's routes (docs/migration.md#http). */
import * as z from 'zod';
import { json } from '../../domain/event-table.ts';
import { at, number, runId, runStatus, sessionId, text } from '../responses/members.ts';
import { manifestCheck, manifestReport, manifests } from '../responses/manifests.ts';

export const execution = z.object({
  execution_id: text('The same as `run_id`'),
  session_id: sessionId,
  run_id: runId,
  status: runStatus.describe('Status of the run; `failed` also if the tool failed'),
  output: json.describe(
    'The result of the tool, the answer of the agent, or the outputs of the workflow; null without one',
  ),
  error: z.string().nullable().describe('Reason of the failure; null if the action did not fail'),
  error_type: z.string().nullable().describe('The code of the error; null if nothing failed'),
  started_at: at,
  completed_at: at.nullable().describe('Epoch milliseconds; null for a run that has not ended'),
  duration_seconds: z.number().nullable().describe('Null for a run that has not ended'),
});

const names = z.array(z.string()).describe('The names');
export const registeredAgents = manifests.extend({ Agent: names });
export const registeredTools = manifests.extend({ Tool: names });
export const registeredRelics = manifests.extend({ Relic: names });
export const registeredWorkflows = manifests.extend({ Workflow: names });

export const registryStatus = z.object({
  total_manifests: number('Number of manifests, without monuments and skills'),
  by_type: z
    .object({
      agents: number('Number of agents'),
      tools: number('Number of tools'),
      relics: number('Number of relics'),
      workflows: number('Number of workflows'),
    })
    .describe('Their number by kind'),
  last_updated: at.nullable().describe('When a manifest last changed, epoch milliseconds; null without a change'),
});

const imported = (kind: string) => z.array(z.string()).describe(`Names of the imported ${kind}`);
export const dependencies = z.object({
  dependencies: z
    .object({
      agents: imported('agents'),
      tools: imported('tools'),
      relics: imported('relics'),
      workflows: imported('workflows'),
    })
    .describe('What the manifest imports, by kind'),
});

const first = {
  status: z.enum(['success', 'error']).describe('`error`: a problem was found'),
  manifest_type: z.string().nullable().describe('Kind of the first manifest, capitalized; null without one'),
  manifest_name: z.string().nullable().describe('Name of the first manifest; null without one'),
};
export const uploaded = manifestReport.extend(first);
export const parsed = manifestCheck.extend(first);

export const agentNames = z.array(z.string()).describe('Names of the agents');
