/** Members that several responses have. */
import * as z from 'zod';
import { ACTION_TYPES } from '../../domain/action-types.ts';
import { ACTION_MODES } from '../../domain/action.ts';
import type { RunStatus } from '../../domain/session.ts';

export const count = z.int().min(0);
export const at = z.int().describe('Epoch milliseconds');
export const text = (description: string) => z.string().describe(description);
export const number = (description: string) => z.int().min(0).describe(description);
export const flag = (description: string) => z.boolean().describe(description);
export const sessionId = text('Id of the session');
export const runId = text('Id of the run');
export const actionId = text('Id of the action, as the model wrote it');
export const approvalId = text('Id of the request for approval');
export const callId = text('Id of the call of a client tool');
export const digest = text('SHA-256 of the UTF-8 text of `JSON.stringify({ parameters, inputs })`');
export const digestBytes = number('Length of the text of the digest, in bytes');
export const userId = z.string().nullable().describe('The user, as the client named it; else null');

export const next = (what: string) =>
  z.string().nullable().describe(`Value of \`before\` for the page with ${what}; null on the last page`);

const RUN_STATUSES = [
  'queued',
  'running',
  'waiting',
  'completed',
  'failed',
  'cancelled',
] as const satisfies RunStatus[];
export const runStatus = z.enum(RUN_STATUSES).describe('Status of the run; `waiting`: for approvals or client tools');
export const actionType = z.enum(ACTION_TYPES).describe('Type of the action');
export const actionMode = z.enum(ACTION_MODES).describe('Whether later text waits for the action');
export const codeAndMessage = z.object({ code: text('A stable code'), message: text('Human-readable') });
export const warnings = z.array(codeAndMessage).describe('What the runtime tolerated or repaired');

export const responses = z
  .array(
    z.object({
      content: text('The text'),
      final: z.boolean().nullable().describe('`final` as the model wrote it; null: the runtime decides'),
    }),
  )
  .describe('Every response, in order');
export const name = z.string().nullable().describe('The tool, agent, relic or workflow that the action calls');
export const manifestVersion = text("The author's version");
export const workflowName = text('Name of the workflow');

export const head = runId.nullable().describe('The run that the next message follows; null if there is none');
export const parentRun = runId.nullable().describe('The run that it follows; null if it begins the conversation');
export const retryOf = runId.exactOptional().describe('The run whose message or action it repeats; absent if none');
