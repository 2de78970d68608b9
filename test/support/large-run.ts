/** A model whose run has the greatest allowed number of actions: 2,000, in 8 generations with chains and parallel work. */
import type { ScriptedReply, SeenRequest } from '../../cli/scripted-llm/server.ts';
import { answer } from '../../cli/scripted-llm/server.ts';

export const LARGE_RUN = { generations: 8, actionsPerGeneration: 250, actions: 2_000 } as const;
const DELTA_CHARS = 400;
/** Every fifth action begins a chain of five. */
const CHAIN = 5;

function actionText(generation: number, index: number): string {
  const id = `g${generation}a${index}`;
  const before = index % CHAIN === 0 ? [] : [`g${generation}a${index - 1}`];
  const parameters = { message: `result ${index} of generation ${generation}`, delay_ms: (index * 7) % 20 };
  const body = JSON.stringify({ name: 'echo', parameters, depends_on: before });
  return `<action type="tool" mode="async" id="${id}">${body}</action>`;
}

/** The replies: one generation after the other, then the answer; then the same for the next run. */
export function largeRunModel(generations: number = LARGE_RUN.generations): (request: SeenRequest) => ScriptedReply {
  let generation = 0;
  return () => {
    generation += 1;
    if (generation > generations) {
      generation = 0;
      return answer('<response final="true">All actions are done.</response>', DELTA_CHARS);
    }
    const actions = Array.from({ length: LARGE_RUN.actionsPerGeneration }, (_, index) => actionText(generation, index));
    return answer(`<thought>Part ${generation}.\n${actions.join('\n')}\n</thought>`, DELTA_CHARS);
  };
}
