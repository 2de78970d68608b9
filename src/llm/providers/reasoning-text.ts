/** Converts reasoning to text, for agents that may act in it (P9). */
import type { ModelDelta } from '../../domain/ports/model.ts';

/**
 * Converts the reasoning before the first text or call to a `<think>` block, in which the parser finds actions. Later
 * reasoning is not converted, because it may arrive in the middle of a block.
 */
export async function* reasoningAsText(deltas: AsyncIterable<ModelDelta>): AsyncGenerator<ModelDelta> {
  let place: 'before' | 'within' | 'behind' = 'before';
  for await (const delta of deltas) {
    if (delta.type === 'reasoning' && place !== 'behind') {
      yield { type: 'text', text: place === 'before' ? `<think>${delta.text}` : delta.text };
      place = 'within';
      continue;
    }
    const speaks = delta.type === 'text' || delta.type === 'tool_call' || delta.type === 'finish';
    if (speaks && place === 'within') yield { type: 'text', text: '</think>\n' };
    if (speaks) place = 'behind';
    yield delta;
  }
}
