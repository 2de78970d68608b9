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
import { MANIFEST_KINDS } from '../domain/catalog.ts';
import { ERROR_TABLE } from '../domain/errors.ts';
import type { ErrorCode } from '../domain/errors.ts';
import { EVENT_SCHEMAS, json, jsonObject, JOURNALED } from '../domain/event-schemas.ts';
import { EXECUTION_KINDS } from '../domain/session.ts';
import type { RunStatus } from '../domain/session.ts';
import { SCOPES } from './tokens.ts';
import { PART_STATES } from './health.ts';

const count = z.int().min(0);
const at = z.int().describe('Epoch milliseconds');
const text = (description: string) => z.string().describe(description);
const number = (description: string) => z.int().min(0).describe(description);
const flag = (description: string) => z.boolean().describe(description);
const sessionId = text('Id of the session');
const runId = text('Id of the run');
const actionId = text('Id of the action, as the model wrote it');
const approvalId = text('Id of the request for approval');
const digest = text('SHA-256 of the UTF-8 text of `JSON.stringify({ parameters, inputs })`');
const digestBytes = number('Length of the text of the digest, in bytes');
const userId = z.string().nullable().describe('The user, as the client named it; else null');
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
const runStatus = z.enum(RUN_STATUSES).describe('Status of the run; `waiting`: for approvals');
const actionType = z.enum(ACTION_TYPES).describe('Type of the action');
const actionMode = z.enum(ACTION_MODES).describe('Whether later text waits for the action');

export const problem = z
  .looseObject({
    type: z.literal('about:blank').describe('Always `about:blank`; the kind of the problem is `code`'),
    title: text('What the code means'),
    status: z.int().describe('The HTTP status'),
    code: z.enum(Object.keys(ERROR_TABLE) as ErrorCode[]).describe('A stable code'),
    detail: text('What happened, which one, and what was allowed'),
  })
  .describe('RFC 9457; branch on `code`. Some codes have further members, such as `issues` or `run_id`');

export const sessionEvent = z
  .union([...EVENT_SCHEMAS.values()])
  .describe('Discriminated by `type`; ignore unknown types');

const codeAndMessage = z.object({ code: text('A stable code'), message: text('Human-readable') });
const warnings = z.array(codeAndMessage).describe('What the runtime tolerated or repaired');
const responses = z
  .array(
    z.object({
      content: text('The text'),
      final: z.boolean().nullable().describe('`final` as the model wrote it; null: the runtime decides'),
    }),
  )
  .describe('Every response, in order');
const name = z.string().nullable().describe('The tool, agent, relic or workflow that the action calls');

/** The complete result of a run (H7). */
export const runResult: z.ZodType<RunResult> = z.object({
  session_id: sessionId,
  run_id: runId,
  status: runStatus,
  response: z.string().describe('The answer so far'),
  responses,
  actions: z
    .array(
      z.object({
        id: actionId,
        name,
        type: actionType.nullable().describe('Type of the action; null if its text has none'),
        mode: actionMode.nullable().describe('Whether later text waits for it; null if its text has none'),
        status: z
          .enum(['queued', 'running', 'completed', 'failed', 'skipped', 'cancelled', 'rejected'])
          .describe('Status of the action; `rejected`: its text was not accepted'),
        parameters: jsonObject
          .nullable()
          .describe('As executed; null if it was not dispatched. Of a rejected action: as declared'),
        parameters_cut: z
          .literal(true)
          .exactOptional()
          .describe('Set if they were longer than 16,384 characters; markers say where they were cut'),
        output: json.describe('The output of a completed action; else null'),
        error: z
          .union([
            z.object({ ...codeAndMessage.shape, retryable: flag('Whether a retry may succeed') }),
            codeAndMessage,
            z.object({
              code: z.literal('skipped').describe('The action was skipped'),
              reason: text('`condition` or `dependency`'),
              because: z.string().nullable().describe('The condition, or the dependency that did not complete'),
            }),
          ])
          .nullable()
          .describe('Why there is no output; null for a completed or unfinished action'),
        attempts: number('Attempts so far; 0 for a reused outcome'),
        queued_at: at.nullable().describe('When it was accepted, epoch milliseconds'),
        started_at: at.nullable().describe('When its first attempt began, epoch milliseconds'),
        ended_at: at.nullable().describe('When it ended, epoch milliseconds'),
      }),
    )
    .describe('Every action, also rejected ones, in order'),
  outputs: jsonObject
    .nullable()
    .exactOptional()
    .describe('Outputs of a workflow by name, null until it has them; absent for other runs'),
  failed_actions: count.describe('Number of actions that failed or were rejected, also in a completed run'),
  approvals: z
    .array(
      z.object({
        approval_id: approvalId,
        action_id: actionId,
        name,
        sha256: digest,
        bytes: digestBytes,
      }),
    )
    .exactOptional()
    .describe('Pending approvals; present while the run waits for them'),
  warnings,
  usage: z
    .object({
      prompt_tokens: number('Tokens of all prompts'),
      completion_tokens: number('Generated tokens'),
      cached_tokens: number('Prompt tokens that the endpoint had cached'),
      model_calls: number('Calls of the model'),
      estimated: z.literal(true).exactOptional().describe('Set if an endpoint did not report its usage'),
      cost: z.number().exactOptional().describe('US dollars, for calls with a known price'),
    })
    .describe(
      'Usage of the own model calls of the run: not of its sub-agents and workflows, which have runs of their own',
    ),
  iterations: number('Number of generations'),
  error: codeAndMessage.nullable().describe('Why the run failed; else null'),
  started_at: at,
  ended_at: at.nullable().describe('Epoch milliseconds; null for a run that has not ended'),
});

export const prompt = z.object({
  session_id: sessionId,
  run_id: runId,
  generations: z
    .array(
      z.object({
        iteration: count.describe('The iteration, 1-based'),
        sent_at: at.describe('Epoch milliseconds'),
        model: text('The model that was requested first'),
        max_tokens: count.exactOptional().describe('Maximum length of the output'),
        tools: z.array(z.string()).exactOptional().describe('Names of the declared functions, if there are any'),
        tokens: count.describe('Estimated tokens of the messages'),
        messages: z
          .array(
            z.object({
              role: z.enum(['system', 'user', 'assistant', 'tool']).describe('Role of the message'),
              content: text('The text, without secrets'),
              tool_calls: json.exactOptional().describe('Native calls of the model'),
              tool_call_id: z.string().exactOptional().describe('The native call that the message answers'),
            }),
          )
          .describe('The messages in order'),
      }),
    )
    .describe('One entry for each model call of the conversation, in order'),
  dropped: count.describe('Number of generations whose messages were deleted to save space'),
});

export const session = z.object({
  session_id: sessionId,
  agent: text('Name of the agent, or of the workflow'),
  workflow: z.string().exactOptional().describe('Name of the workflow that the session runs'),
  user_id: userId,
  kind: z
    .enum(['chat', 'execution', 'child'])
    .describe('`execution`: a program or a workflow; `child`: started by an action of another session'),
  parent: z
    .object({
      session_id: text('Id of the parent session'),
      key: text('Key of the action that started it'),
      depth: number('Nesting depth, from 1'),
    })
    .exactOptional()
    .describe('For a child: what started it'),
  metadata: jsonObject.describe('As the client gave it at the creation'),
  created_at: at,
  status: z.enum(['running', 'waiting', 'idle']).describe('`waiting`: a run waits for approvals'),
  last_seq: number('Number of the last event'),
  runs: number('Number of runs'),
});

export const createdSession = session.pick({ session_id: true, agent: true, user_id: true, created_at: true });

export const token = z.object({
  token: text('The token; send it as `Authorization: Bearer <token>`'),
  session_id: sessionId,
  scopes: z.array(z.enum(SCOPES)).describe('What the token allows'),
  expires_at: at,
});

export const history = z.object({
  session_id: sessionId,
  messages: z
    .array(
      z.discriminatedUnion('role', [
        z.object({
          role: z.literal('user').describe('A message of the user'),
          content: text('The message'),
          run_id: runId,
          timestamp: at,
        }),
        z.object({
          role: z.literal('assistant').describe('The answer'),
          content: text('The answer so far'),
          run_id: runId,
          status: runStatus,
          timestamp: at.nullable().describe('Epoch milliseconds; null for a run that has not ended'),
          error: codeAndMessage.exactOptional().describe('Why the run failed; absent if it did not'),
        }),
      ]),
    )
    .describe('Messages and answers, in order'),
  next: next('earlier messages'),
});

export const artifact: z.ZodType<ArtifactEntry> = z.object({
  id: text('Id of the artifact'),
  run_id: runId,
  action_id: actionId.nullable().describe('Id of the action that made it'),
  action_name: name,
  name: text('File name'),
  content_type: text('Media type'),
  size_bytes: number('Size in bytes'),
  created_at: at,
});

export const artifacts = z.object({
  session_id: sessionId,
  artifacts: z.array(artifact).describe('Oldest first'),
  next: count.nullable().describe('Value of `after` for the next page; null on the last page'),
});

export const feeds = z.object({
  session_id: sessionId,
  feeds: z
    .array(
      z.looseObject({
        id: text('Id of the feed'),
        type: text('When it is refreshed'),
        source: jsonObject.describe('Where its value comes from'),
        enabled: flag('Whether it is in use'),
        shared: z.boolean().optional().describe('Present and true if sessions share the value'),
        added_by_model: flag('Whether the model added it'),
        value: json.describe('The latest value; null if there is none yet'),
        updated_at: at.nullable().describe('Time of the latest value, epoch milliseconds'),
        error: z.string().nullable().describe('Why the last refresh failed; else null'),
      }),
    )
    .describe('The current feeds'),
});

export const state = z.object({ session_id: sessionId, variables: jsonObject.describe('The session variables') });

export const runs = z.object({
  runs: z
    .array(
      z.object({
        run_id: runId,
        status: runStatus,
        started_at: at,
        ended_at: at.nullable().describe('Epoch milliseconds; null for a run that has not ended'),
      }),
    )
    .describe('In order'),
  next: next('earlier runs'),
});

export const cancelled = z.object({
  session_id: sessionId,
  run_id: runId.nullable().describe('The run that was cancelled; null if none was running'),
  cancelled: z.boolean().describe('Whether anything was running'),
});

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
  parameters: jsonObject.nullable().describe('With resolved references; exactly what will be executed'),
  inputs: jsonObject.nullable().describe('Values of other actions that are passed to the code'),
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
  complete: z
    .boolean()
    .describe('Whether `parameters` and `inputs` are included; `GET …/approvals/{approval}` always has them'),
  parameters: jsonObject.nullable().describe('With resolved references; exactly what will be executed'),
  inputs: jsonObject.nullable().describe('Values of other actions that are passed to the code'),
});

export const approvals = z.object({
  approvals: z.array(openApproval).describe('Oldest first'),
  next: z.string().nullable().describe('Value of `after` for the next page; null on the last page'),
});

export const decision = z.object({
  approval_id: approvalId,
  decision: z.enum(['approve', 'deny']).describe('The decision that counts'),
});

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

const manifestKind = z.enum(MANIFEST_KINDS).describe('Kind of the manifest');
const manifestName = text('Name of the manifest');
const manifestVersion = text("The author's version");

export const agentPrompt = z.object({
  agent: text('Name of the agent'),
  prompt: text('The system prompt'),
  characters: number('Length of the prompt'),
  tokens: count.describe('An estimate'),
  sections: z
    .array(z.object({ title: text('Title of the section'), tokens: number('An estimate') }))
    .describe('The parts of the prompt'),
});
export const agentGrammar = z.object({
  grammar: text('The grammar'),
  notes: z.array(z.string()).describe('Constraints of parameters that the grammar does not express'),
});

export const manifest = z.looseObject({
  kind: manifestKind,
  name: manifestName,
  version: manifestVersion,
  revision: z.int().nullable().describe('Counts the changes of one name, from 1; null for a bundled manifest'),
  summary: text('What it does'),
  tags: z.array(z.string()).describe('As in the manifest'),
  common: flag('Whether it is bundled and cannot be changed'),
  updated_at: at.nullable().describe('Epoch milliseconds; null for a bundled manifest'),
  error: z.string().exactOptional().describe('Why it cannot be used'),
});
const issue = z.looseObject({
  file: text('The file'),
  line: number('Line, 1-based'),
  column: number('Column, 1-based'),
  field: text('Path of the field; empty for the whole manifest'),
  message: text('What was found and what is allowed'),
});
const manifestList = z.array(manifest).describe('The manifests');
const manifestWarnings = z.array(issue).describe('Issues that do not prevent the use');
export const manifests = z.object({ manifests: manifestList });
export const manifestDetail = manifest.extend({
  file: z.string().nullable().describe('Path of its file; null if unknown'),
  source: z.string().nullable().describe('Its source; null if unknown'),
  definition: json.describe('The loaded definition; null if it cannot be read'),
  versions: z.array(jsonObject).describe('Its revisions, with `revision`, `version` and `created_at`'),
});
export const manifestChange = manifest.extend({ warnings: manifestWarnings });
export const manifestReport = z.object({
  manifests: manifestList,
  problems: z.array(issue).describe('Issues of manifests that do not load'),
  warnings: manifestWarnings,
});
export const manifestCheck = manifestReport.extend({ valid: flag('True if no problems were found') });
export const manifestReplacement = manifestReport.extend({
  removed: z.array(jsonObject).describe('The removed manifests, with `kind` and `name`'),
});
const nodeId = text('`kind/name`');
export const manifestGraph = z.object({
  nodes: z
    .array(z.object({ id: nodeId, kind: manifestKind, name: manifestName, version: manifestVersion }))
    .describe('The manifests'),
  edges: z
    .array(
      z.object({
        from: nodeId,
        to: nodeId,
        how: z.enum(['import', 'feed']).describe('Whether `from` imports `to`, or has a feed from it'),
      }),
    )
    .describe('What uses what'),
});

const workflowName = text('Name of the workflow');

export const workflows = z.object({
  workflows: z
    .array(
      z.object({
        name: workflowName,
        version: manifestVersion,
        summary: text('What it does'),
        trigger: jsonObject.describe('What starts it'),
        inputs: json.describe('Its declared inputs, as a JSON Schema'),
        steps: z
          .array(
            z.object({
              name: text('Name of the step'),
              type: text('Type of the step'),
              target: json.describe('What the step calls'),
            }),
          )
          .describe('Its steps'),
      }),
    )
    .describe('The workflows that can be run'),
});

export const schedules = z.object({
  schedules: z
    .array(
      z.object({
        workflow: workflowName,
        cron: text('The cron expression'),
        timezone: text('IANA time zone name'),
        inputs: jsonObject.describe('Inputs of each run'),
        next: z.array(at).describe('Next start times, epoch milliseconds'),
      }),
    )
    .describe('Soonest first'),
});

export const startedByEvent = z.object({
  event: text('The event'),
  runs: z
    .array(z.object({ workflow: workflowName, session_id: sessionId, run_id: runId }))
    .describe('The runs that it started'),
});
export const startedByWebhook = z.object({ session_id: sessionId, run_id: runId });

const actionIds = z.array(z.string()).describe('Ids of actions, explicit and from references');
export const plan = z.object({
  actions: z
    .array(
      z.object({
        id: actionId,
        type: actionType,
        mode: actionMode,
        name: name.unwrap().describe('What the action calls'),
        parameters: jsonObject.describe('As written'),
        depends_on: actionIds,
        output_key: z.string().nullable().describe('The name for references, besides the id'),
        embedded_in_thought: flag('Whether it is inside a thought'),
        repaired: flag('Whether its body was not strict JSON and was repaired'),
        estimate_ms: z.number().describe('Estimated duration in milliseconds'),
      }),
    )
    .describe('Accepted actions'),
  rejected: z.array(z.object({ id: actionId, ...codeAndMessage.shape })).describe('Actions that would be rejected'),
  warnings,
  thoughts: z.array(z.string()).describe('The text of each thought, without its actions'),
  responses,
  text: text('The text outside of all tags'),
  ...JOURNALED.plan_generated.data.shape,
  report: z.string().describe('Human-readable report'),
});

export const executions = z.object({
  executions: z
    .array(
      z.object({
        execution_id: text('Id of the execution, which is the id of its run'),
        session_id: sessionId,
        run_id: text('Id of the run: the same as `execution_id`'),
        kind: z.enum(EXECUTION_KINDS).describe('What was run'),
        agent: text('Name of the agent, or of the workflow'),
        status: text('Status of the run'),
        error: codeAndMessage.nullable().describe('Why it failed; null if it did not'),
        started_at: at,
        ended_at: at.nullable().describe('Epoch milliseconds; null for one that has not ended'),
      }),
    )
    .describe('Newest first'),
  next: next('earlier executions'),
});

export const document = z.looseObject({ openapi: text('Version of OpenAPI') });
