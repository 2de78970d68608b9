/** Whether a generation has answered (P10, P11, S11). */
import type { ActionNode, ClosedResponse, Generation, RunState } from './state.ts';

/** Some response, whatever it says of itself, or bare text that counts as one. */
export function saidSomething(generation: Generation): boolean {
  return generation.answered || generation.responses.length > 0;
}

/**
 * Whether the generation's answer ends the run. Asked when its stream has ended and its awaited
 * actions have settled.
 */
export function isFinal(state: RunState, generation: Generation): boolean {
  const answered = generation.answered || generation.responses.some((response) => ends(state, generation, response));
  if (!answered) return false;
  if (state.policy.source === 'text' || state.policy.onFailedFinal === 'end') return true;
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

/** `auto`: no awaited action was declared here whose result the response could not have told (P10). */
function coversActions(state: RunState, generation: Generation, response: ClosedResponse): boolean {
  const mark = ++state.mark;
  const told: ActionNode[] = [];
  const tell = (node: ActionNode): void => {
    if (node.mark === mark) return;
    node.mark = mark;
    told.push(node);
  };
  response.refers.forEach(tell);
  for (const node of told) node.dependencies.forEach(tell);
  return generation.nodes.every((node) => node.mode === 'fire_and_forget' || node.mark === mark);
}
