/** Schema of workflow manifests: triggers, steps, outputs (M6). */
import { MANIFEST_ACTION_TYPES } from '../../domain/action-types.ts';
import * as z from 'zod';
import { CAPABILITIES } from '../../domain/action-types.ts';
import { limits } from '../../domain/limits.ts';
import { GROUP_TYPES, VALUE_TYPES } from '../../domain/manifests/workflow.ts';
import { policies } from './schema-policy.ts';
import { base, count, duration, expose, imports, json, jsonMap, names, redact, retry, secretName } from './fields.ts';

const trigger = z.union(
  [
    z.enum(['manual']),
    z.discriminatedUnion('type', [
      z.strictObject({ type: z.literal('manual') }).describe('Started by a call.'),
      z
        .strictObject({
          type: z.literal('scheduled'),
          cron: z
            .string()
            .min(1)
            .max(200)
            .describe(`Five or six fields; times are at least ${limits.cronMinMs / 1_000} s apart (CRON_MIN_SECONDS).`),
          timezone: z.string().min(1).max(64).optional().describe('An IANA name. Default UTC.'),
          inputs: jsonMap.optional().describe('Inputs of the scheduled runs.'),
        })
        .describe('Started by a schedule.'),
      z
        .strictObject({
          type: z.literal('webhook'),
          secret: secretName.describe('Name of the secret that signs the requests, TOOL_….'),
        })
        .describe('Started by a signed request.'),
      z
        .strictObject({
          type: z.literal('event'),
          event: z
            .string()
            .min(1)
            .max(128)
            .describe(`Name of the event; at most ${limits.eventWorkflows} workflows per event.`),
        })
        .describe('Started by an event.'),
    ]),
  ],
  { error: 'must be manual, or a map with "type": manual, scheduled, webhook or event' },
);

const policy = z.enum(['abort', 'continue', 'retry', 'skip']);

const step = z.strictObject({
  name: z
    .string()
    .regex(/^[A-Za-z_][A-Za-z0-9_-]{0,63}$/, { error: 'must be letters, digits, "_" and "-", at most 64' })
    .describe('Unique within its list; used in references.'),
  type: z.enum([...MANIFEST_ACTION_TYPES, 'shell', ...GROUP_TYPES, ...VALUE_TYPES]).describe('Type of the step.'),
  target: z
    .string()
    .min(1)
    .max(255)
    .optional()
    .describe('The tool, agent, relic, workflow, model or internal action, by name or path.'),
  optional: z
    .boolean()
    .optional()
    .describe('If true, a target that does not exist is a warning, and the step fails when it runs. Default false.'),
  action: z.string().min(1).max(64).optional().describe("A relic's endpoint, or an internal action."),
  parameters: jsonMap.optional().describe('Values, with references $(steps.s.field), $(trigger.x), $(item).'),
  condition: z
    .string()
    .min(1)
    .max(limits.conditionChars)
    .optional()
    .describe('CEL; a step whose condition is false is skipped.'),
  depends_on: z
    .union([z.string(), names])
    .optional()
    .describe('Steps to wait for; [] for none. Default: the previous step.'),
  timeout: duration.optional().describe('Default: by the type of the target.'),
  on_failure: z
    .union(
      [
        policy,
        z.strictObject({
          do: policy.optional(),
          get steps() {
            return z.array(step).max(limits.workflowSteps);
          },
        }),
      ],
      { error: 'must be abort, continue, retry or skip, or a map of do and steps' },
    )
    .optional()
    .describe('Default abort. In a map {do, steps}, the steps run after a failure.'),
  get compensate() {
    return z
      .array(step)
      .max(limits.workflowSteps)
      .optional()
      .describe('Steps that run after a failure, to undo or report it.');
  },
  retry_policy: retry.optional().describe('Attempts, or {max_attempts, backoff, delay, max_delay}.'),
  retry: retry.optional().describe('The same as retry_policy.'),
  output_mapping: z
    .record(z.string(), z.string())
    .optional()
    .describe('Map of output name to a path in the result. Default: the whole result.'),
  get steps() {
    return z
      .array(step)
      .max(limits.workflowSteps)
      .optional()
      .describe(
        'Nested steps of conditional (run if the condition is true), parallel, race, loop and try, and of for_each and reduce (run for each item).',
      );
  },
  value: json
    .optional()
    .describe('For value and return: the result. For switch: what is compared. For reduce: the first $(acc).'),
  get cases() {
    return z
      .array(
        z.strictObject({
          value: z.union([z.string(), z.number(), z.boolean()]).describe('Compared as text.'),
          steps: z.array(step).max(limits.workflowSteps),
        }),
      )
      .max(limits.workflowSteps)
      .optional()
      .describe('For switch: the steps for each value.');
  },
  get catch() {
    return z.array(step).max(limits.workflowSteps).optional().describe('For try: steps that run after a failure.');
  },
  get finally() {
    return z.array(step).max(limits.workflowSteps).optional().describe('For try: steps that run in any case.');
  },
  until: z
    .string()
    .min(1)
    .max(limits.conditionChars)
    .optional()
    .describe('For loop: CEL; the loop ends if it is true after a round.'),
  max_rounds: count
    .min(1)
    .max(limits.workflowRounds)
    .optional()
    .describe(`For loop: maximum number of rounds. Default ${limits.workflowRounds}.`),
  get else() {
    return z
      .array(step)
      .max(limits.workflowSteps)
      .optional()
      .describe('For conditional: steps to run if the condition is false; for switch, if no case has the value.');
  },
  get otherwise() {
    return z.array(step).max(limits.workflowSteps).optional().describe('The same as else.');
  },
  items: json
    .optional()
    .describe('For for_each and reduce: a list, or a reference to one; steps use $(item) and $(index).'),
  concurrency: count
    .min(1)
    .max(256)
    .optional()
    .describe(
      'For for_each and parallel: maximum concurrency. Default for for_each: max_parallel_steps; for parallel: no limit.',
    ),
});

export const workflowSchema = z.strictObject({
  ...base,
  trigger: trigger.optional().describe('What starts the workflow. Default manual.'),
  inputs: json.optional().describe('In the same form as the parameters of a tool. Default: any inputs.'),
  parameters: json.optional().describe('The same as inputs.'),
  defaults: jsonMap.optional().describe('Values of inputs that a start leaves out.'),
  import: imports.optional().describe('Imports of the steps; targets of steps are imported automatically.'),
  steps: z.array(step).min(1).max(limits.workflowSteps).describe('Run in order, unless depends_on says otherwise.'),
  outputs: z
    .record(
      z.string(),
      z.union([z.string(), z.strictObject({ source: z.string() })], {
        error: 'must be a path, or a map {source: path}',
      }),
    )
    .optional()
    .describe('Map of output name to its source: steps.s.field, or {source: path}.'),
  fail_fast: z
    .boolean()
    .optional()
    .describe('Starts nothing after the first failure. If false, independent steps still run. Default true.'),
  capabilities: z
    .array(z.enum(CAPABILITIES))
    .optional()
    .describe('Types of code that the steps may run. Default: none.'),
  max_parallel_steps: count.min(1).max(256).optional().describe('Maximum concurrency of steps. Default 5.'),
  policies: policies.optional().describe('Rules that decide about its steps, see docs/policies.md. Default: none.'),
  redact: redact.optional(),
  expose: expose.optional().describe('`mcp`: clients of `/mcp` may run it, see docs/mcp.md. Default: they may not.'),
});

export type WorkflowInput = z.infer<typeof workflowSchema>;
export type StepInput = z.infer<typeof step>;
