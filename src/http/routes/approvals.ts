/** The open approvals of all sessions of a namespace (J8). Those of one session, and decisions: session-actions.ts. */
import { Hono } from 'hono';
import type { ApprovalsPage, OpenApproval } from '../../engine/actions/approval-list.ts';
import { approvalsPage } from '../approvals-page.ts';
import type { EdgeEnv } from '../gateway.ts';
import { operation } from '../openapi/describe.ts';
import { approvalsQuery } from '../query.ts';
import * as answers from '../responses/approvals.ts';

/** A page of open approvals of one namespace, oldest first. */
export type ApprovalsOf = (
  owner: string | null,
  page: ApprovalsPage,
) => Promise<{ readonly approvals: readonly OpenApproval[]; readonly next: string | null }>;

export function approvalRoutes(approvals: ApprovalsOf): Hono<EdgeEnv> {
  const app = new Hono<EdgeEnv>();
  operation(app, 'GET /approvals', { query: approvalsQuery, response: answers.approvals }, async (c) =>
    c.json(await approvals(c.get('principal').owner, approvalsPage(c.req.url))),
  );
  return app;
}
