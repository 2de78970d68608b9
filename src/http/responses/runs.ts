/** Responses about runs: executions of protocol text, messages and workflows. */
import * as z from 'zod';
import type { RunResult } from '../../view/result.ts';
import { json, jsonObject, JOURNALED, shownQuestion } from '../../domain/event-table.ts';
import { EXECUTION_KINDS } from '../../domain/session.ts';
import {
  actionId,
  actionMode,
  actionType,
  approvalId,
  callId,
  at,
  codeAndMessage,
  count,
  digest,
  digestBytes,
  flag,
  head,
  name,
  next,
  number,
  parentRun,
  responses,
  retryOf,
  runId,
  runStatus,
  sessionId,
  text,
  warnings,
} from './members.ts';

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
        reason: text('Message of the policy that asks').exactOptional(),
        question: shownQuestion
          .exactOptional()
          .describe('What the target of the action asks; absent: the action needs an approval to start'),
      }),
    )
    .exactOptional()
    .describe('Pending approvals; present while the run waits for them'),
  pending: z
    .array(
      z.object({ call_id: callId, name: text('The tool'), parameters: jsonObject.describe('What it is called with') }),
    )
    .exactOptional()
    .describe(
      'Open calls of client tools, oldest first, also while the run does something else, and of background actions of a run that has ended; absent if there are none',
    ),
  pending_more: count.exactOptional().describe('Number of further open calls; absent if there are none'),
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

/** The answer to a message: the run, and its content as a list of chunks. */
export const messageResult = z.intersection(
  runResult,
  z.object({
    chunks: z
      .array(
        z.object({
          type: z
            .enum(['thought', 'action', 'content', 'done', 'error'])
            .describe('`content`: a part of the answer; `done` or `error` is the last one'),
          data: json.describe(
            'The text of a thought or of a part of the answer; `{id, name, type, mode}` of an action; `{message}`, or `{error}`',
          ),
        }),
      )
      .describe('Thoughts, actions and parts of the answer, in order'),
  }),
);

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
              attachments: z
                .array(
                  z.object({
                    type: z.enum(['image', 'file']).describe('Kind of the file'),
                    name: text('Name, as the client or the tool wrote it'),
                    media_type: text('Media type'),
                    size: count.describe('Bytes'),
                    sha256: z.string().exactOptional().describe('Hash of the bytes; not for results of actions'),
                  }),
                )
                .exactOptional()
                .describe('Images and files that are sent with the message if the model takes them'),
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

export const movedHead = z.object({ session_id: sessionId, head: runId });

export const runs = z.object({
  runs: z
    .array(
      z.object({
        run_id: runId,
        parent_run: parentRun,
        retry_of: retryOf,
        status: runStatus,
        started_at: at,
        ended_at: at.nullable().describe('Epoch milliseconds; null for a run that has not ended'),
      }),
    )
    .describe('In order'),
  head,
  next: next('earlier runs'),
});

export const cancelled = z.object({
  session_id: sessionId,
  run_id: runId.nullable().describe('The run that was cancelled; null if none was running'),
  execution_id: z.string().nullable().describe('The same as `run_id`'),
  cancelled: z.boolean().describe('Whether anything was running'),
  status: z.enum(['cancelled', 'not_found']).describe('`not_found`: nothing was running'),
});

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
        output_key: z.string().nullable().describe('Another name for references, next to the id'),
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
