/** The documents of the client are those of the HTTP API: what the server declares fits them (K3). */
import { expectTypeOf, test } from 'vitest';
import type { z } from 'zod';
import type * as client from '../../src/client/index.ts';
import type * as approvals from '../../src/http/responses/approvals.ts';
import type * as manifests from '../../src/http/responses/manifests.ts';
import type * as runs from '../../src/http/responses/runs.ts';
import type * as sessions from '../../src/http/responses/sessions.ts';
import type * as system from '../../src/http/responses/system.ts';
import type * as workflows from '../../src/http/responses/workflows.ts';

test('[K3] each declared answer is assignable to the type of the client', () => {
  expectTypeOf<z.output<typeof sessions.session>>().toExtend<client.SessionDocument>();
  expectTypeOf<z.output<typeof sessions.sessions>>().toExtend<client.SessionListPage>();
  expectTypeOf<z.output<typeof sessions.history>>().toExtend<client.HistoryPage>();
  expectTypeOf<z.output<typeof sessions.artifacts>>().toExtend<client.ArtifactPage>();
  expectTypeOf<z.output<typeof runs.runResult>>().toExtend<client.RunDocument>();
  expectTypeOf<z.output<typeof approvals.approval>>().toExtend<client.Approval>();
  expectTypeOf<z.output<typeof approvals.openApproval>>().toExtend<client.OpenApproval>();
  expectTypeOf<z.output<typeof approvals.approvals>>().toExtend<client.ApprovalPage>();
  expectTypeOf<z.output<typeof runs.runs>>().toExtend<client.RunPage>();
  expectTypeOf<z.output<typeof runs.prompt>>().toExtend<client.RunPrompt>();
  expectTypeOf<z.output<typeof runs.plan>>().toExtend<client.Plan>();
  expectTypeOf<z.output<typeof runs.executions>>().toExtend<client.ExecutionPage>();
  expectTypeOf<z.output<typeof sessions.feeds>['feeds'][number]>().toExtend<client.Feed>();
  expectTypeOf<z.output<typeof sessions.token>>().toExtend<client.SessionToken>();
  expectTypeOf<z.output<typeof system.health>>().toExtend<client.HealthDocument>();
  expectTypeOf<z.output<typeof system.agents>['agents'][number]>().toExtend<client.AgentEntry>();
  expectTypeOf<z.output<typeof system.agentPrompt>>().toExtend<client.AgentPrompt>();
  expectTypeOf<z.output<typeof manifests.manifest>>().toExtend<client.ManifestEntry>();
  expectTypeOf<z.output<typeof manifests.manifestDetail>>().toExtend<client.ManifestDocument>();
  expectTypeOf<z.output<typeof manifests.manifestCheck>>().toExtend<client.ManifestCheck>();
  expectTypeOf<z.output<typeof manifests.manifestGraph>>().toExtend<client.ManifestGraph>();
  expectTypeOf<z.output<typeof workflows.workflows>['workflows'][number]>().toExtend<client.WorkflowEntry>();
  expectTypeOf<z.output<typeof workflows.schedules>['schedules'][number]>().toExtend<client.ScheduleEntry>();
});
