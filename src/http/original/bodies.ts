/** Request bodies of the original's routes (docs/migration.md#http). */
import * as z from 'zod';
import { json } from '../../domain/event-table.ts';
import { limits } from '../../domain/limits.ts';
import { USER_ID, USER_ID_RULE } from '../../domain/user-id.ts';

const name = z.string().min(1).max(128).optional();
const object = z.record(z.string().max(256), json);
const label = z.string().max(256).nullish();
const seconds = z
  .number()
  .positive()
  .max(limits.maxActionTimeoutMs / 1_000)
  .nullish();
const amount = z.number().nullish().meta({ description: 'Not used: the manifest of the tool and the runner set it' });

const resourceLimits = z.strictObject({
  max_execution_time_seconds: seconds.meta({ description: 'Timeout of a tool, in seconds' }),
  max_memory_mb: amount,
  max_cpu_percent: amount,
  max_file_size_mb: amount,
  max_network_requests: amount,
});

const context = z
  .strictObject({
    user_id: z
      .string()
      .refine((id) => id === '' || USER_ID.test(id), `must be ${USER_ID_RULE}, or empty`)
      .nullish()
      .meta({ description: 'The user of the session; chosen by the client. Empty: none' }),
    session_id: label.meta({ description: "The client's own id; stored in the metadata of the session" }),
    request_id: label.meta({ description: "The client's own id; stored in the metadata of the session" }),
    timeout_seconds: seconds.meta({ description: 'Timeout of a tool, in seconds' }),
    resource_limits: resourceLimits.nullish().meta({ description: 'Limits of a tool' }),
    security_level: z
      .enum(['trusted', 'sandboxed', 'isolated'])
      .nullish()
      .meta({ description: 'Not used: every tool runs in a sandbox' }),
  })
  .nullish()
  .meta({ description: 'Who calls, and limits of a tool' });

export type CallContext = z.output<typeof context>;

const input = z.union([z.string(), object]).optional();
const inputs = object.optional();

type Check = [(body: object) => boolean, { path: string[]; error: string }];

/** A member with two names is given under one of them. @param least 1: it is required */
function oneOf(first: string, second: string, least: 0 | 1 = 1): Check {
  const error = `expected ${least === 1 ? 'either' : 'at most one of'} "${first}" ${least === 1 ? 'or' : 'and'} "${second}"`;
  const count = (body: object): number =>
    [first, second].filter((key) => (body as Record<string, unknown>)[key] !== undefined).length;
  return [(body) => count(body) >= least && count(body) <= 1, { path: [first], error }];
}

export const toolBody = z
  .strictObject({
    parameters: object.default({}).meta({ description: 'Parameters of the tool, as they are: `$name` is text' }),
    tool_name: name.meta({ description: 'Name of the tool. Required, unless `name` is given' }),
    name: name.meta({ description: 'Another name of `tool_name`' }),
    agent: name.meta({
      description:
        'The agent that calls the tool. Default: `assistant` if it imports the tool, else an agent that does',
    }),
    context,
  })
  .refine(...oneOf('tool_name', 'name'));

export const agentBody = z
  .strictObject({
    agent_name: name.meta({ description: 'Name of the agent. Required, unless `name` is given' }),
    name: name.meta({ description: 'Another name of `agent_name`' }),
    input_data: input.meta({
      description: 'The message; of an object, its only member if that is a text, else the object as JSON',
    }),
    input: input.meta({ description: 'Another name of `input_data`' }),
    context,
  })
  .refine(...oneOf('agent_name', 'name'))
  .refine(...oneOf('input_data', 'input'));

export const workflowStartBody = z
  .strictObject({
    context,
    input_data: inputs.meta({ description: 'Inputs of the workflow' }),
    workflow_name: name.meta({ description: 'Name of the workflow. Required, unless `name` is given' }),
    name: name.meta({ description: 'Another name of `workflow_name`' }),
    input: inputs.meta({ description: 'Another name of `input_data`' }),
  })
  .refine(...oneOf('workflow_name', 'name'))
  .refine(...oneOf('input_data', 'input', 0));

export const promptBody = z.strictObject({
  prompt: z.string().regex(/\S/, 'a message must not be empty').meta({ description: 'The message of the user' }),
  session_id: z
    .string()
    .max(128)
    .nullish()
    .meta({ description: 'A session of this agent to continue. Default: a new session' }),
});

export const parseBody = z.strictObject({
  content: z.string().max(limits.manifestBytes).meta({ description: 'The manifest, as YAML or Markdown' }),
  manifest_type: z.string().max(64).nullish().meta({ description: 'Not used: the manifest has its kind' }),
});
