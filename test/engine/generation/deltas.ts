/** The stream of a scripted model: text, native calls, an end. */
import type { ModelDelta } from '../../../src/domain/ports/model.ts';

export const text = (words: string): ModelDelta => ({ type: 'text', text: words });

export const call = (name: string, args: string, id: string | null = null, index = 0): ModelDelta => ({
  type: 'tool_call',
  index,
  id,
  name,
  argumentsDelta: args,
});

export const finish = (reason: Extract<ModelDelta, { type: 'finish' }>['reason'] = 'tool_calls'): ModelDelta => ({
  type: 'finish',
  reason,
});
