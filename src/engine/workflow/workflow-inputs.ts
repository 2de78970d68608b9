/** A workflow's inputs: completed and checked by its manifest before anything runs (M6, D3). */
import { EngineError } from '../../domain/errors.ts';
import type { JsonObject } from '../../domain/json.ts';
import type { WorkflowDefinition } from '../../domain/manifests/workflow.ts';
import type { WorkMeter } from '../../domain/work.ts';
import { completeParameters, validateJson } from '../../executors/validate-parameters.ts';

/** The inputs with which a workflow runs. */
export function completeInputs(
  { inputs: schema, defaults = {} }: Pick<WorkflowDefinition, 'inputs' | 'defaults'>,
  inputs: JsonObject,
): JsonObject {
  const given = completeParameters(schema, inputs, false);
  const missing = Object.entries(defaults).filter(([name]) => !Object.hasOwn(given, name));
  return completeParameters(
    schema,
    missing.length === 0 ? given : Object.fromEntries([...Object.entries(given), ...missing]),
  );
}

/**
 * @param meter charged for the check; default: a new one with `limits.schemaSteps`
 * @throws EngineError `invalid_request` that names the input
 */
export function checkInputs(workflow: WorkflowDefinition, inputs: JsonObject, meter?: WorkMeter): void {
  const issue = validateJson(workflow.inputs, completeInputs(workflow, inputs), 'inputs', meter);
  if (issue !== null) throw new EngineError('invalid_request', `Workflow "${workflow.name}": ${issue}`);
}
