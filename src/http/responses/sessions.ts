/** Responses about one session. */
import * as z from 'zod';
import type { ArtifactEntry } from '../../domain/artifact.ts';
import { SESSION_STATUSES } from '../../domain/directory.ts';
import type { DirectoryEntry } from '../../domain/directory.ts';
import { json, jsonObject } from '../../domain/event-table.ts';
import { SCOPES } from '../operations.ts';
import { SURFACES } from '../tokens.ts';
import {
  actionId,
  at,
  codeAndMessage,
  count,
  flag,
  head,
  name,
  next,
  number,
  parentRun,
  retryOf,
  runId,
  runStatus,
  sessionId,
  text,
  userId,
} from './members.ts';

const sessionStatus = z.enum(SESSION_STATUSES).describe('`waiting`: a run waits for approvals or client tools');
const updatedAt = at.describe('When the latest run began or ended, or the session was created, epoch milliseconds');
const agentName = text('The same as `agent`');
const messageCount = number('Number of messages and answers, as in `…/history`');
const forkedFrom = z.object({
  session_id: sessionId,
  run_id: runId.nullable().describe('The run at whose end it began; null: none'),
});

export const session = z.object({
  session_id: sessionId,
  agent: text('Name of the agent, or of the workflow'),
  agent_name: agentName,
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
  forked_from: forkedFrom.exactOptional().describe('For a fork: the session that it was made from'),
  metadata: jsonObject.describe('As the client gave it at the creation'),
  created_at: at,
  updated_at: updatedAt,
  message_count: messageCount,
  status: sessionStatus,
  last_seq: number('Number of the last event'),
  runs: number('Number of runs'),
  head,
});

const entry: z.ZodType<DirectoryEntry> = z.object({
  session_id: sessionId,
  agent: text('Name of the agent, or of the workflow'),
  user_id: userId,
  title: z.string().nullable().describe('First line of the first message; null if the first message has no text'),
  status: sessionStatus,
  created_at: at,
  updated_at: updatedAt,
  cost: z
    .number()
    .nullable()
    .describe('US dollars of all runs, for calls with a known price; null if no price is known'),
});

export const sessions = z.object({
  sessions: z
    .array(entry)
    .describe(
      'Newest activity first. An entry follows its session within seconds; with two filters that few sessions fit together, a page may have fewer than `limit`, also none, and still have a next one',
    ),
  next: next('earlier sessions'),
});

export const createdSession = session
  .pick({
    session_id: true,
    agent: true,
    agent_name: true,
    user_id: true,
    created_at: true,
    updated_at: true,
    message_count: true,
  })
  .extend({ status: z.literal('active').describe('The session accepts messages') });

export const forkedSession = createdSession.extend({
  forked_from: forkedFrom.describe('The session that it was made from'),
});

export const endedSession = z.object({
  status: z.literal('ended').describe('The session was deleted'),
  session_id: sessionId,
});

export const token = z.object({
  token: text('The token; send it as `Authorization: Bearer <token>`'),
  session_id: sessionId,
  scopes: z.array(z.enum(SCOPES)).describe('What the token allows'),
  expires_at: at,
});

export const userToken = z.object({
  token: token.shape.token,
  user_id: text('The user'),
  agents: z.array(z.string()).nullable().describe('The agents that it may use; null: all of the namespace'),
  surfaces: z.array(z.enum(SURFACES)).describe('The protocols that it may use'),
  scopes: token.shape.scopes,
  expires_at: at,
});

const participant = z.string().exactOptional().describe('As given; absent if none was given');
const isSeeded = z.literal(true).describe('It is of the history that the session was created with');

const parts = z
  .array(
    z.discriminatedUnion('type', [
      z.object({ type: z.literal('text').describe('Text'), text: text('The text') }),
      z.object({
        type: z.enum(['image', 'file']).describe('An image or another file'),
        name: text('Its name'),
        media_type: text('Media type'),
        size: z.int().describe('Bytes'),
        sha256: text('SHA-256 of the bytes, in hexadecimal'),
      }),
    ]),
  )
  .exactOptional()
  .describe('Its parts; absent if it is text only');

const seededMessages = [
  z.object({
    role: z.literal('user').describe('A message of the user'),
    content: text('The message; a line for each of its files'),
    parts,
    name: participant,
    seeded: isSeeded,
  }),
  z.object({
    role: z.literal('assistant').describe('An answer, calls, or both'),
    content: z.string().nullable().describe('The answer; null if there are only calls'),
    name: participant,
    tool_calls: z
      .array(
        z.object({
          id: text('Id of the call'),
          type: z.literal('function').describe('Always `function`'),
          function: z
            .object({ name: text('Name of the function'), arguments: text('A JSON object as text') })
            .describe('What was called'),
        }),
      )
      .exactOptional()
      .describe('Calls; absent if there are none'),
    seeded: isSeeded,
  }),
  z.object({
    role: z.literal('tool').describe('The result of a call'),
    tool_call_id: text('Id of the call'),
    content: text('Its result; a line for each of its files; `[hidden]` if the token may not read it'),
    parts,
    name: participant,
    seeded: isSeeded,
  }),
] as const;

const summary = z.object({
  text: text('What the model wrote about the turns'),
  turns: number('Number of turns that it covers, from the first one of the branch'),
  until_run: runId.nullable().describe('The last run that it covers; null: it covers only turns before the session'),
});

export const history = z.object({
  session_id: sessionId,
  summary: summary
    .exactOptional()
    .describe('What prompts show instead of older turns; absent if there is none, and for tokens that may only view'),
  messages: z
    .array(
      z.union([
        ...seededMessages,
        z.object({
          role: z.literal('user').describe('A message of the user'),
          content: text('The message; a line for each of its files'),
          parts,
          metadata: jsonObject.exactOptional().describe('As given with the message; absent if none was given'),
          run_id: runId,
          parent_run: parentRun,
          retry_of: retryOf,
          branches: z
            .array(runId)
            .exactOptional()
            .describe('The runs with the same parent, oldest first, this one included; absent if it is the only one'),
          steered: z
            .literal(true)
            .exactOptional()
            .describe('It came during the run, and the model sees it in the next generation'),
          message_id: z.string().exactOptional().describe('Its id, if it came during the run'),
          timestamp: at,
        }),
        z.object({
          role: z.literal('assistant').describe('The answer'),
          content: text('The answer so far'),
          run_id: runId,
          parent_run: parentRun,
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

export const state = z.object({
  session_id: sessionId,
  variables: jsonObject.describe('The session variables'),
  state: jsonObject.describe('The same as `variables`'),
});
