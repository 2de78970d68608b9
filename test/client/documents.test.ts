/** The documents of the client are those of the HTTP API: what the server declares fits them (K3). */
import { expectTypeOf, test } from 'vitest';
import type { z } from 'zod';
import type * as client from '../../src/client/index.ts';
import type * as approvals from '../../src/http/responses/approvals.ts';
import type * as runs from '../../src/http/responses/runs.ts';
import type * as sessions from '../../src/http/responses/sessions.ts';

test('[K3] each declared answer is assignable to the type of the client', () => {
  expectTypeOf<z.output<typeof sessions.session>>().toExtend<client.SessionDocument>();
  expectTypeOf<z.output<typeof sessions.history>>().toExtend<client.HistoryPage>();
  expectTypeOf<z.output<typeof sessions.artifacts>>().toExtend<client.ArtifactPage>();
  expectTypeOf<z.output<typeof runs.runResult>>().toExtend<client.RunDocument>();
  expectTypeOf<z.output<typeof approvals.approval>>().toExtend<client.Approval>();
  expectTypeOf<z.output<typeof approvals.openApproval>>().toExtend<client.OpenApproval>();
});
