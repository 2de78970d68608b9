/** Responses about workflows (M6). */
import * as z from 'zod';
import { json, jsonObject } from '../../domain/event-table.ts';
import { at, manifestVersion, runId, sessionId, text, workflowName } from './members.ts';

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
