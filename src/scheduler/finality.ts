/** Whether a generation has answered (P10, P11, S11). */
import type { ActionNode, ClosedResponse, Generation, RunState } from './state.ts';

/** Whether there is a response, final or not, or bare text that counts as one. */
export function hasAnswer(generation: Generation): boolean {
  return generation.answered || generation.responses.length > 0;
}

/**
 * Whether the model's answer ends the run. Called after its stream has ended and its awaited actions have settled.
 */
export function isFinal(state: RunState, generation: Generation): boolean {
  const answered = generation.answered || generation.responses.some((response) => ends(state, generation, response));
  if (!answered) return false;
  if (state.policy.onFailedFinal === 'end') return true;
  return !generation.nodes.some((node) => node.mode !== 'fire_and_forget' && !node.satisfied);
}

function ends(state: RunState, generation: Generation, response: ClosedResponse): boolean {
  if (response.final !== null) return response.final;
  switch (state.policy.responseDefault) {
    case 'final':
      return true;
    case 'continue':
      return false;
    case 'auto':
      return coversActions(state, generation, response);
  }
}

/** `auto`: every awaited action of this generation is one whose result the response could have included (P10). */
function coversActions(state: RunState, generation: Generation, response: ClosedResponse): boolean {
  const mark = ++state.mark;
  const covered: ActionNode[] = [];
  const cover = (node: ActionNode): void => {
    if (node.mark === mark) return;
    node.mark = mark;
    covered.push(node);
  };
  response.refers.forEach(cover);
  for (const node of covered) node.dependencies.forEach(cover);
  return generation.nodes.every((node) => node.mode === 'fire_and_forget' || node.mark === mark);
}
