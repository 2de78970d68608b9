/** What a workflow is started with, checked against its manifest before anything runs (M6). */
import { EngineError } from '../domain/errors.ts';
import type { JsonObject } from '../domain/json.ts';
import type { WorkflowDefinition } from '../domain/manifest.ts';
import { validateParameters } from '../executors/validate-parameters.ts';

/** @throws EngineError `invalid_request` that names the input */
export function checkInputs(workflow: WorkflowDefinition, inputs: JsonObject): void {
  const complaint = validateParameters(workflow.inputs, inputs);
  if (complaint !== null) throw new EngineError('invalid_request', `Workflow "${workflow.name}": ${complaint}`);
}
