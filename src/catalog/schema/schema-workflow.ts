/** What authors may write about workflows: when they start, their steps, what comes out (M6). */
import { z } from 'zod';
import { limits } from '../../domain/limits.ts';
import { base, count, duration, imports, json, jsonMap, names, retry, secretName } from './fields.ts';

const trigger = z.union(
  [
    z.enum(['manual']),
    z.discriminatedUnion('type', [
      z.strictObject({ type: z.literal('manual') }).describe('Started by a call only.'),
      z
        .strictObject({
          type: z.literal('scheduled'),
          cron: z
            .string()
            .min(1)
            .max(200)
            .describe(`Five or six fields; times at least ${limits.cronMinMs / 1_000} s apart (CRON_MIN_SECONDS).`),
          timezone: z.string().min(1).max(64).optional().describe('An IANA name. Default UTC.'),
          inputs: jsonMap.optional().describe('What it gets when it starts.'),
        })
        .describe('Started by the clock.'),
      z
        .strictObject({
          type: z.literal('webhook'),
          secret: secretName.describe('Name of the secret that signs the calls, TOOL_….'),
        })
        .describe('Started by a signed request.'),
      z
        .strictObject({
          type: z.literal('event'),
          event: z
            .string()
            .min(1)
            .max(128)
            .describe(`Name of the event; at most ${limits.eventWorkflows} workflows wait for one.`),
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
    .describe('Unique within its list; how other steps refer to it.'),
  type: z
    .enum(['tool', 'agent', 'relic', 'workflow', 'llm', 'internal', 'conditional', 'parallel', 'for_each'])
    .describe('What kind of step it is.'),
  target: z
    .string()
    .min(1)
    .max(255)
    .optional()
    .describe('The tool, agent, relic, workflow, model or internal action, by name or path.'),
  action: z.string().min(1).max(64).optional().describe("A relic's endpoint; an internal action may stand here, too."),
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
    .describe('Steps that it waits for; [] for none. Default: the step before it.'),
  timeout: duration.optional().describe('Default by the type of its target.'),
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
    .describe('Default abort. As a map {do, steps}, the steps run when this one has failed.'),
  get compensate() {
    return z
      .array(step)
      .max(limits.workflowSteps)
      .optional()
      .describe('Steps that undo or report when this one has failed.');
  },
  retry_policy: retry.optional().describe('Attempts, or {max_attempts, backoff, delay, max_delay}.'),
  retry: retry.optional().describe('The same as retry_policy.'),
  output_mapping: z
    .record(z.string(), z.string())
    .optional()
    .describe('Name of an output to the path in the result that it takes. Default: the whole result.'),
  get steps() {
    return z
      .array(step)
      .max(limits.workflowSteps)
      .optional()
      .describe('Of conditional (when true), parallel, and for_each (for every item).');
  },
  get else() {
    return z.array(step).max(limits.workflowSteps).optional().describe('Of conditional: when the condition is false.');
  },
  get otherwise() {
    return z.array(step).max(limits.workflowSteps).optional().describe('The same as else.');
  },
  items: json.optional().describe('Of for_each: a list, or a reference to one; $(item) and $(index) in its steps.'),
  concurrency: count
    .min(1)
    .max(256)
    .optional()
    .describe(
      'Of for_each and parallel: how many at a time. Default of for_each: max_parallel_steps; of parallel: all.',
    ),
});

export const workflowSchema = z.strictObject({
  ...base,
  trigger: trigger.optional().describe('What starts it. Default manual.'),
  inputs: json.optional().describe('As the parameters of a tool. Default: anything is taken.'),
  parameters: json.optional().describe('The same as inputs.'),
  import: imports.optional().describe('What the steps use; what they name is imported as it is.'),
  steps: z
    .array(step)
    .min(1)
    .max(limits.workflowSteps)
    .describe('What is done, in order unless depends_on says otherwise.'),
  outputs: z
    .record(
      z.string(),
      z.union([z.string(), z.strictObject({ source: z.string() })], {
        error: 'must be a path, or a map {source: path}',
      }),
    )
    .optional()
    .describe('Name of an output to where it is read: steps.s.field, or {source: path}.'),
  fail_fast: z
    .boolean()
    .optional()
    .describe(
      'After the first failure nothing more starts; when false, what does not depend on it is done first. Default true.',
    ),
  max_parallel_steps: count.min(1).max(256).optional().describe('Steps at the same time. Default 5.'),
});

export type WorkflowInput = z.infer<typeof workflowSchema>;
export type StepInput = z.infer<typeof step>;
