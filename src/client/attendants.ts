/** What the options of a run ask for: calls of client tools are executed, and approvals are asked about. */
import { ApprovalRequests } from './approvals.ts';
import { ToolCalls } from './client-tools.ts';
import type { Attend } from './run.ts';

export const attend: Attend = ({ clientTools: tools, onApproval, signal }, run) => [
  ...(tools === undefined ? [] : [new ToolCalls({ ...run, tools, signal })]),
  ...(onApproval === undefined ? [] : [new ApprovalRequests({ ...run, onApproval })]),
];
