/** Minimal workflows for tests; steps use the tool `work`. */
import type { WorkflowDefinition, WorkflowStep } from '../../../src/domain/manifests/workflow.ts';

export type StepText = Partial<WorkflowStep> & { readonly name: string };

export function step(given: StepText): WorkflowStep {
  return {
    type: 'tool',
    target: 'work',
    action: null,
    parameters: {},
    condition: null,
    dependsOn: null,
    timeoutMs: null,
    onFailure: 'abort',
    compensate: [],
    retry: null,
    outputMapping: {},
    steps: [],
    otherwise: [],
    items: null,
    concurrency: null,
    ...given,
  };
}

export function definition(steps: readonly StepText[], more: Partial<WorkflowDefinition> = {}): WorkflowDefinition {
  return {
    kind: 'Workflow',
    name: 'pipeline',
    version: '1.0',
    summary: '',
    description: '',
    tags: [],
    metadata: {},
    trigger: { type: 'manual' },
    inputs: { type: 'object' },
    imports: { tools: ['work'], agents: [], relics: [], workflows: [] },
    steps: steps.map(step),
    outputs: {},
    failFast: true,
    maxParallelSteps: 5,
    ...more,
  };
}
