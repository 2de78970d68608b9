/**
 * Schemas of the responses, for the OpenAPI document and the tests (H4). Nothing is validated with them at run time.
 * Future versions may add members; clients must ignore unknown ones.
 */
import * as z from 'zod';
import type { OpenApproval } from '../engine/actions/approval-list.ts';
import type { ApprovalView } from '../engine/actions/approval-view.ts';
import type { RunResult } from '../engine/run/run-result.ts';
import { ACTION_TYPES } from '../domain/action-types.ts';
import { ACTION_MODES } from '../domain/action.ts';
import type { ArtifactEntry } from '../domain/artifact.ts';
import { ERROR_TABLE } from '../domain/errors.ts';
import type { ErrorCode } from '../domain/errors.ts';
import { EVENT_SCHEMAS, json, jsonObject, JOURNALED } from '../domain/event-schemas.ts';
import { EXECUTION_KINDS } from '../domain/session.ts';
import type { RunStatus } from '../domain/session.ts';
import { SCOPES } from './tokens.ts';

const count = z.int().min(0);
const at = z.int().describe('Epoch milliseconds');
const next = (what: string) =>
  z.string().nullable().describe(`Value of \`before\` for the page with ${what}; null on the last page`);

const RUN_STATUSES = [
  'queued',
  'running',
  'waiting',
  'completed',
  'failed',
  'cancelled',
] as const satisfies RunStatus[];
const runStatus = z.enum(RUN_STATUSES);
const actionType = z.enum(ACTION_TYPES);
const actionMode = z.enum(ACTION_MODES);

export const problem = z
  .looseObject({
    type: z.literal('about:blank'),
    title: z.string(),
    status: z.int(),
    code: z.enum(Object.keys(ERROR_TABLE) as ErrorCode[]),
    detail: z.string(),
  })
  .describe('RFC 9457; branch on `code`. Some codes have further members, such as `issues` or `run_id`');

export const sessionEvent = z
  .union([...EVENT_SCHEMAS.values()])
  .describe('Discriminated by `type`; ignore unknown types');

const codeAndMessage = z.object({ code: z.string(), message: z.string() });
const name = z.string().nullable();

/** The complete result of a run (H7). */
export const runResult: z.ZodType<RunResult> = z.object({
  session_id: z.string(),
  run_id: z.string(),
  status: runStatus,
  response: z.string().describe('The answer so far'),
  responses: z.array(z.object({ content: z.string(), final: z.boolean().nullable() })),
  actions: z.array(
    z.object({
      id: z.string(),
      name,
      type: actionType.nullable(),
      mode: actionMode.nullable(),
      status: z.enum(['queued', 'running', 'completed', 'failed', 'skipped', 'cancelled', 'rejected']),
      output: json,
      error: z
        .union([
          z.object({ ...codeAndMessage.shape, retryable: z.boolean() }),
          codeAndMessage,
          z.object({ code: z.literal('skipped'), reason: z.string(), because: z.string().nullable() }),
        ])
        .nullable(),
      attempts: count,
      queued_at: at.nullable(),
      started_at: at.nullable(),
      ended_at: at.nullable(),
    }),
  ),
  outputs: jsonObject
    .nullable()
    .exactOptional()
    .describe('Outputs of a workflow by name, null until it has them; absent for other runs'),
  failed_actions: count.describe('Number of actions that failed or were rejected, also in a completed run'),
  approvals: z
    .array(
      z.object({
        approval_id: z.string(),
        action_id: z.string(),
        name,
        sha256: z.string(),
        bytes: count,
      }),
    )
    .exactOptional()
    .describe('Pending approvals; present while the run waits for them'),
  warnings: z.array(codeAndMessage),
  usage: z.object({
    prompt_tokens: count,
    completion_tokens: count,
    cached_tokens: count,
    model_calls: count,
    estimated: z.literal(true).exactOptional(),
    cost: z.number().exactOptional().describe('US dollars'),
  }),
  iterations: count,
  error: codeAndMessage.nullable(),
  started_at: at,
  ended_at: at.nullable(),
});

export const session = z.object({
  session_id: z.string(),
  agent: z.string(),
  workflow: z.string().exactOptional(),
  user_id: z.string().nullable(),
  kind: z.enum(['chat', 'execution', 'child']),
  parent: z.object({ session_id: z.string(), key: z.string(), depth: count }).exactOptional(),
  metadata: jsonObject,
  created_at: at,
  status: z.enum(['running', 'waiting', 'idle']).describe('`waiting`: a run waits for approvals'),
  last_seq: count,
  runs: count,
});

export const createdSession = session.pick({ session_id: true, agent: true, user_id: true, created_at: true });

export const token = z.object({
  token: z.string(),
  session_id: z.string(),
  scopes: z.array(z.enum(SCOPES)),
  expires_at: at,
});

export const history = z.object({
  session_id: z.string(),
  messages: z.array(
    z.discriminatedUnion('role', [
      z.object({ role: z.literal('user'), content: z.string(), run_id: z.string(), timestamp: at }),
      z.object({
        role: z.literal('assistant'),
        content: z.string(),
        run_id: z.string(),
        status: runStatus,
        timestamp: at.nullable(),
      }),
    ]),
  ),
  next: next('earlier messages'),
});

export const artifact: z.ZodType<ArtifactEntry> = z.object({
  id: z.string(),
  run_id: z.string(),
  action_id: z.string().nullable(),
  action_name: z.string().nullable(),
  name: z.string(),
  content_type: z.string(),
  size_bytes: count,
  created_at: at,
});

export const artifacts = z.object({
  session_id: z.string(),
  artifacts: z.array(artifact),
  next: count.nullable().describe('Value of `after` for the next page; null on the last page'),
});

export const feeds = z.object({
  session_id: z.string(),
  feeds: z.array(
    z.looseObject({
      id: z.string(),
      type: z.string(),
      source: jsonObject,
      enabled: z.boolean(),
      shared: z.boolean().optional().describe('Present and true if sessions share the value'),
      added_by_model: z.boolean(),
      value: json,
      updated_at: at.nullable(),
      error: z.string().nullable(),
    }),
  ),
});

export const state = z.object({ session_id: z.string(), variables: jsonObject });

export const runs = z.object({
  runs: z.array(z.object({ run_id: z.string(), status: runStatus, started_at: at, ended_at: at.nullable() })),
  next: next('earlier runs'),
});

export const cancelled = z.object({
  session_id: z.string(),
  run_id: z.string().nullable(),
  cancelled: z.boolean().describe('Whether anything was running'),
});

export const approval: z.ZodType<ApprovalView> = z.object({
  approval_id: z.string(),
  status: z.enum(['open', 'approved', 'denied', 'expired', 'cancelled']),
  run_id: z.string(),
  iteration: count,
  action_id: z.string(),
  name,
  type: actionType,
  requested_at: at,
  expires_at: at,
  decided_at: at.nullable(),
  note: z.string().nullable(),
  sha256: z.string().describe('SHA-256 of the UTF-8 text of `JSON.stringify({ parameters, inputs })`'),
  bytes: count,
  parameters: jsonObject.nullable(),
  inputs: jsonObject.nullable(),
});

export const openApproval: z.ZodType<OpenApproval> = z.object({
  approval_id: z.string(),
  session_id: z.string().describe('The session in which it is decided'),
  parent_session_id: z.string().nullable().describe('The session that started it; null if a client created it'),
  run_id: z.string(),
  agent: z.string().describe('Name of the agent, or of the workflow'),
  user_id: z.string().nullable(),
  action_id: z.string(),
  type: actionType,
  name,
  requested_at: at,
  expires_at: at,
  sha256: z.string().describe('SHA-256 of the UTF-8 text of `JSON.stringify({ parameters, inputs })`'),
  bytes: count.describe('Length of that text'),
  complete: z
    .boolean()
    .describe('Whether `parameters` and `inputs` are included; `GET …/approvals/{approval}` always has them'),
  parameters: jsonObject.nullable().describe('With resolved references; exactly what will be executed'),
  inputs: jsonObject.nullable().describe('Values of other actions that are passed to the code'),
});

export const approvals = z.object({
  approvals: z.array(openApproval),
  next: z.string().nullable().describe('Value of `after` for the next page; null on the last page'),
});

export const decision = z.object({ approval_id: z.string(), decision: z.enum(['approve', 'deny']) });

export const health = z.object({
  status: z.enum(['healthy', 'starting', 'degraded']),
  service: z.literal('cortex-edge'),
  version: z.string(),
  missing: z.array(z.object({ part: z.literal('runner'), reason: z.string() })).exactOptional(),
  executors: z.array(json).describe('Available action types'),
  model: z.string().exactOptional(),
  model_endpoints: z.array(jsonObject).exactOptional(),
  runner: jsonObject.nullable().exactOptional(),
  set_aside: z.array(z.string()).exactOptional().describe('Databases that could not be read and were renamed'),
});

export const executors = z.object({ executors: z.array(jsonObject) });
export const agents = z.object({ agents: z.array(z.object({ name: z.string(), summary: z.string() })) });

export const manifest = z.looseObject({
  kind: z.string(),
  name: z.string(),
  version: z.string(),
  summary: z.string(),
});
const issue = z.looseObject({ file: z.string(), line: count, column: count, field: z.string(), message: z.string() });
export const manifests = z.object({ manifests: z.array(manifest) });
export const manifestDetail = manifest.extend({ definition: json, versions: z.array(jsonObject) });
export const manifestChange = manifest.extend({ warnings: z.array(issue) });
export const manifestReport = z.object({
  manifests: z.array(manifest),
  problems: z.array(issue),
  warnings: z.array(issue),
});
export const manifestCheck = manifestReport.extend({ valid: z.boolean() });
export const manifestReplacement = manifestReport.extend({ removed: z.array(jsonObject) });
export const manifestGraph = z.object({
  nodes: z.array(z.object({ id: z.string(), kind: z.string(), name: z.string(), version: z.string() })),
  edges: z.array(z.object({ from: z.string(), to: z.string(), how: z.enum(['import', 'feed']) })),
});

export const workflows = z.object({
  workflows: z.array(
    z.object({
      name: z.string(),
      version: z.string(),
      summary: z.string(),
      trigger: jsonObject,
      inputs: json,
      steps: z.array(z.object({ name: z.string(), type: z.string(), target: json })),
    }),
  ),
});

export const schedules = z.object({
  schedules: z.array(
    z.object({
      workflow: z.string(),
      cron: z.string(),
      timezone: z.string().describe('IANA time zone name'),
      inputs: jsonObject,
      next: z.array(at),
    }),
  ),
});

export const startedByEvent = z.object({
  event: z.string(),
  runs: z.array(z.object({ workflow: z.string(), session_id: z.string(), run_id: z.string() })),
});
export const startedByWebhook = z.object({ session_id: z.string(), run_id: z.string() });

export const plan = z.object({
  actions: z.array(
    z.object({
      id: z.string(),
      type: actionType,
      mode: actionMode,
      name: z.string(),
      parameters: jsonObject,
      depends_on: z.array(z.string()),
      output_key: z.string().nullable(),
      embedded_in_thought: z.boolean(),
      repaired: z.boolean(),
      estimate_ms: z.number(),
    }),
  ),
  rejected: z.array(z.object({ id: z.string(), ...codeAndMessage.shape })),
  warnings: z.array(codeAndMessage),
  thoughts: z.array(z.string()),
  responses: z.array(z.object({ content: z.string(), final: z.boolean().nullable() })),
  text: z.string(),
  ...JOURNALED.plan_generated.data.shape,
  report: z.string().describe('Human-readable report'),
});

export const executions = z.object({
  executions: z.array(
    z.object({
      execution_id: z.string(),
      session_id: z.string(),
      run_id: z.string().describe('The run: the same as `execution_id`'),
      kind: z.enum(EXECUTION_KINDS),
      agent: z.string().describe('The agent, or the workflow'),
      status: z.string(),
      error: codeAndMessage.nullable().describe('Why it failed; null if it did not'),
      started_at: at,
      ended_at: at.nullable(),
    }),
  ),
  next: next('earlier executions'),
});

export const document = z.looseObject({ openapi: z.string() });
