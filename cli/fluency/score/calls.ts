/** The calls of a run, compared with those of the plan. */
import type { EventOf, SessionEvent } from '../../../src/domain/event.ts';
import type { JsonObject } from '../../../src/domain/json.ts';
import type { TaskRun } from '../run/session.ts';
import type { Task } from '../tasks/dataset.ts';
import { BUILTIN_TOOLS } from '../tasks/tools.ts';

export interface CallMeasures {
  readonly needed: number;
  readonly made: number;
  /**
   * Of the tools that hold the values: calls of the plan that have not completed. Equal calls count once. Built-in tools
   * compute what a model may also compute itself.
   */
  readonly missing: number;
  readonly superfluous: number;
  /** Equal to an earlier one that succeeded. */
  readonly repeated: number;
  /** Made before the model had read the result that decides about them, or although the task rules them out. */
  readonly premature: number;
}

export function callsOf(
  task: Task,
  actions: TaskRun['document']['actions'],
  events: readonly SessionEvent[],
): CallMeasures {
  const ran = actions.filter(({ status, name }) => name !== null && (status === 'completed' || status === 'failed'));
  const planned = countBy(task.plan.map(({ tool }) => tool));
  const made = countBy(ran.map(({ name }) => String(name)));
  const seen = new Set<string>();
  const completed: string[] = [];
  let repeated = 0;
  for (const { name, parameters, status } of ran) {
    const key = keyOf(String(name), parameters);
    if (seen.has(key)) repeated += 1;
    else if (status === 'completed') completed.push(String(name));
    if (status === 'completed') seen.add(key);
  }
  const isBuiltin = (tool: string): boolean => (BUILTIN_TOOLS as readonly string[]).includes(tool);
  const required = task.plan.filter(({ tool, fails }) => fails !== true && !isBuiltin(tool));
  return {
    needed: task.plan.length,
    made: ran.length,
    missing: excess(countBy(required.map(({ tool }) => tool)), countBy(completed)),
    superfluous: excess(made, planned),
    repeated,
    premature: prematureIn(task, events),
  };
}

/** How many more of each name `a` has than `b`. */
function excess(a: ReadonlyMap<string, number>, b: ReadonlyMap<string, number>): number {
  return [...a].reduce((sum, [name, count]) => sum + Math.max(0, count - (b.get(name) ?? 0)), 0);
}

function countBy(names: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return counts;
}

function prematureIn({ plan, avoids = [] }: Task, events: readonly SessionEvent[]): number {
  const started = new Set(
    events.filter(({ type }) => type === 'action_started').map(({ iteration, action_id: id }) => `${iteration}/${id}`),
  );
  const queued = events
    .filter((event): event is EventOf<'action_queued'> => event.type === 'action_queued')
    .filter(({ iteration, action_id: id }) => started.has(`${iteration}/${id}`));
  const left = [...queued];
  /** The generation of each planned call that the run has made. */
  const made = new Map<string, number>();
  for (const { id, tool, parameters } of plan) {
    const wanted = keyOf(tool, parameters);
    const at = left.findIndex(({ action_name: name, data }) => keyOf(name ?? '', data.parameters) === wanted);
    const [found] = at === -1 ? [] : left.splice(at, 1);
    if (found !== undefined) made.set(id, found.iteration);
  }
  const early = plan.filter(({ id, sees = [] }) => {
    const own = made.get(id);
    return own !== undefined && sees.some((other) => own <= (made.get(other) ?? own));
  });
  return early.length + queued.filter(({ action_name: name }) => avoids.includes(name ?? '')).length;
}

function keyOf(tool: string, parameters: JsonObject | null): string {
  const members = Object.entries(parameters ?? {}).sort(([a], [b]) => (a < b ? -1 : 1));
  return `${tool} ${JSON.stringify(members)}`;
}
