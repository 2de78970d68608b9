/** Checks a workflow's inputs against its manifest before anything runs (M6). */
import { EngineError } from '../../domain/errors.ts';
import type { JsonObject } from '../../domain/json.ts';
import type { WorkflowDefinition } from '../../domain/manifests/workflow.ts';
import type { WorkMeter } from '../../domain/work.ts';
import { validateJson } from '../../executors/validate-parameters.ts';

/**
 * @param meter charged for the check; default: a new one with `limits.schemaSteps`
 * @throws EngineError `invalid_request` that names the input
 */
export function checkInputs(workflow: WorkflowDefinition, inputs: JsonObject, meter?: WorkMeter): void {
  const issue = validateJson(workflow.inputs, inputs, 'inputs', meter);
  if (issue !== null) throw new EngineError('invalid_request', `Workflow "${workflow.name}": ${issue}`);
}
