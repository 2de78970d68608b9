/** Results of actions in the form for the prompt. */
import type { ActionReport } from '../../../src/protocol/prompt/chat-turn.ts';

/** A completed action; its duration is not a whole number of milliseconds. */
export function done(
  id: string,
  output: ActionReport['output'] = 'ok',
  more: Partial<ActionReport> = {},
): ActionReport {
  return { id, name: 'tool', status: 'completed', ms: 12.4, output: output ?? null, ...more };
}
