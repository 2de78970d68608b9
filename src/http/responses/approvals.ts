/** Responses about approval requests (J8). */
import * as z from 'zod';
import type { OpenApproval } from '../../engine/actions/approval-list.ts';
import type { ApprovalView } from '../../engine/actions/approval-view.ts';
import { jsonObject, shownQuestion } from '../../domain/event-table.ts';
import { actionId, actionType, approvalId, at, digest, digestBytes, name, number, runId, userId } from './members.ts';

const question = shownQuestion
  .nullable()
  .describe('What the target of the started action asks; null: the action needs an approval to start');

const reason = z.string().nullable().describe('Message of the policy that asks; null: none asks, or it has no message');
const redacted = z
  .literal(true)
  .exactOptional()
  .describe('Text was redacted, or is hidden from the token; `sha256` and `bytes` are about the call as shown');

export const approval: z.ZodType<ApprovalView> = z.object({
  approval_id: approvalId,
  status: z
    .enum(['open', 'approved', 'denied', 'expired', 'cancelled'])
    .describe('`cancelled`: the action ended for another reason before a decision'),
  run_id: runId,
  iteration: number('The iteration of the run, 1-based'),
  action_id: actionId,
  name,
  type: actionType,
  requested_at: at,
  expires_at: at.describe('When it counts as denied, epoch milliseconds'),
  decided_at: at.nullable().describe('When it was decided or ended, epoch milliseconds; null while it is open'),
  note: z.string().nullable().describe('The note of the decision'),
  sha256: digest,
  bytes: digestBytes,
  reason,
  redacted,
  parameters: jsonObject.nullable().describe('With resolved references; what will be executed, unless `redacted`'),
  inputs: jsonObject.nullable().describe('Values of other actions that are passed to the code'),
  question,
  content: jsonObject.nullable().describe('The values that answered the question; null if there are none'),
});

export const openApproval: z.ZodType<OpenApproval> = z.object({
  approval_id: approvalId,
  session_id: z.string().describe('The session in which it is decided'),
  parent_session_id: z.string().nullable().describe('The session that started it; null if a client created it'),
  run_id: runId,
  agent: z.string().describe('Name of the agent, or of the workflow'),
  user_id: userId,
  action_id: actionId,
  type: actionType,
  name,
  requested_at: at,
  expires_at: at.describe('When it counts as denied, epoch milliseconds'),
  sha256: digest,
  bytes: digestBytes,
  reason,
  redacted,
  complete: z
    .boolean()
    .describe('Whether `parameters` and `inputs` are included; `GET …/approvals/{approval}` always has them'),
  parameters: jsonObject.nullable().describe('With resolved references; what will be executed, unless `redacted`'),
  inputs: jsonObject.nullable().describe('Values of other actions that are passed to the code'),
  question,
});

export const approvals = z.object({
  approvals: z.array(openApproval).describe('Oldest first'),
  next: z.string().nullable().describe('Value of `after` for the next page; null on the last page'),
});

export const decision = z.object({
  approval_id: approvalId,
  decision: z.enum(['approve', 'deny']).describe('The decision that counts'),
});
