/** Responses about facts about users (C10). */
import * as z from 'zod';
import { at, number, text } from './members.ts';

export const fact = z.object({
  key: text('Name of the fact'),
  value: text('The fact, in one line'),
  updated_at: at,
  session_id: z.string().nullable().describe('The session that wrote it; null: it was written by API'),
  run_id: z.string().nullable().describe('The run that wrote it'),
});

const whose = { agent: text('Name of the agent'), user_id: text('The user') };

export const facts = z.object({ ...whose, facts: z.array(fact).describe('In the order of their keys') });

export const forgotten = z.object({ ...whose, forgotten: number('Number of facts that were deleted') });
