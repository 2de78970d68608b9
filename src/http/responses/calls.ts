/** Responses about calls of client tools (C3). */
import * as z from 'zod';
import type { SettledCall } from '../../engine/session/session-calls.ts';
import { callId, text } from './members.ts';

export const settledCall: z.ZodType<SettledCall> = z.object({
  call_id: callId,
  run_id: text('The run, which continues; its events are in `…/events`'),
  status: z
    .enum(['completed', 'failed'])
    .describe('How the call ended; `failed` also for an output that is not accepted'),
});
