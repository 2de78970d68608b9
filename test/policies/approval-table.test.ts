/** One shard of the list of open approvals (J8). */
import { expect, test } from 'vitest';
import { ApprovalTable } from '../../src/policies/approval-table.ts';
import { failEach, failingWrites } from '../support/failing-writes.ts';
import { openNodeSql } from '../support/node-sql.ts';

interface Listed {
  readonly approval_id: string;
  readonly requested_at: number;
}

test('[J8] the approvals of a session are replaced together, or stay, whichever statement fails', () => {
  const approval = (id: string): Listed => ({ approval_id: id, requested_at: 1 });
  const failed = failEach(
    () => {
      const failing = failingWrites(openNodeSql());
      const table = new ApprovalTable<Listed>(failing.sql);
      table.keep('session', [approval('a'), approval('b')]);
      return { ...failing, table };
    },
    ({ table }) => table.keep('session', [approval('b'), approval('c')]),
    ({ table }) => table.list({ limit: 10, after: null }),
  );
  expect(failed).toBe(3);
});
