/**
 * One action of an earlier run again, as a run of its own (C4): a program with this action alone.
 *
 * What the action referred to in its run keeps its value: the input has the events with these results, and the event that
 * recorded what came from outside of the run. It never has the values themselves, so that no data becomes a reference.
 * Conditions and dependencies are left out, because a person has decided.
 */
import { actionSpec } from '../../domain/action-types.ts';
import { EngineError } from '../../domain/errors.ts';
import type { EventOf } from '../../domain/event.ts';
import { isJsonObject } from '../../domain/json.ts';
import type { Json, JsonObject } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import type { RunRecord } from '../../domain/session.ts';
import type { Journal } from '../../journal/journal.ts';
import { parameterReferences } from '../../protocol/references/references.ts';

const TYPE = 'rerun';

/**
 * The stored input of a run that repeats an action.
 *
 * @throws EngineError `unknown_action` if the run has accepted no action with this id
 */
export function rerunInput(journal: Journal, run: RunRecord, id: string): JsonObject {
  const queued = journal.history.actionOf(run.run, id);
  if (queued === null) {
    const message = `Run ${run.runId} has accepted no action "${id.slice(0, limits.excerptChars)}"`;
    throw new EngineError('unknown_action', message, { run_id: run.runId });
  }
  const results = journal.history.resultsOf(run.run);
  const started = journal.history.startOf(run.run, queued);
  const { tools } = run.input;
  const parameters = withDependencies(queued.data, results);
  const names = parameterReferences(queued.data.type, parameters).flatMap((name): [string, Json][] => {
    const seq = results.get(name);
    return seq === undefined || name === id ? [] : [[name, seq]];
  });
  const label = queued.action_name === undefined || queued.action_name === id ? id : `${id} (${queued.action_name})`;
  return {
    type: TYPE,
    content: `Run the action ${label} again.`,
    action: id,
    text: textOf(queued, parameters),
    names: Object.fromEntries(names),
    // With what the run itself was given, if it repeats an action too.
    ...(started === null ? {} : { at: started }),
    // Client tools belong to the run of their message.
    ...(tools === undefined ? {} : { tools }),
  };
}

/** The text of such an input, the events of its names, and the start of the action; null for any other input. */
export function rerunOf({ type, action, text, names, at }: JsonObject): {
  readonly action: string;
  readonly text: string;
  readonly names: ReadonlyMap<string, number>;
  readonly at: number | null;
} | null {
  if (type !== TYPE) return null;
  const events = Object.entries(isJsonObject(names) ? names : {}).map(([name, seq]) => [name, Number(seq)] as const);
  return {
    action: String(action),
    text: String(text),
    names: new Map(events),
    at: typeof at === 'number' ? at : null,
  };
}

/** Code gets the results of its dependencies as inputs; here they are named, because there are no dependencies. */
function withDependencies(
  { type, depends_on: dependsOn, parameters }: EventOf<'action_queued'>['data'],
  results: ReadonlyMap<string, number>,
): JsonObject {
  const given = parameters['inputs'] ?? {};
  if (actionSpec(type).code === null || !isJsonObject(given)) return parameters;
  const passed = dependsOn.filter((name) => results.has(name) && !Object.hasOwn(given, name));
  if (passed.length === 0) return parameters;
  const inputs = { ...Object.fromEntries(passed.map((name) => [name, `\${${name}}`])), ...given };
  return { ...parameters, inputs };
}

function textOf(
  { action_id: id = '', action_name: name, data }: EventOf<'action_queued'>,
  parameters: JsonObject,
): string {
  const { type, output_key: outputKey } = data;
  const body = {
    ...(name === undefined || name === type ? {} : { name }),
    parameters,
    ...(outputKey === null ? {} : { output_key: outputKey }),
  };
  // No text of a value ends the action.
  return `<action type="${type}" mode="async" id="${id}">${JSON.stringify(body).replaceAll('<', '\\u003c')}</action>`;
}
