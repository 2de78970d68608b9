/** Definitions that the catalogue builds from short manifests. */
import type { FeedDefinition } from '../../src/domain/manifests/feed.ts';
import type { RelicDefinition, RelicImplementation } from '../../src/domain/manifests/relic.ts';
import type { ToolDefinition, ToolImplementation } from '../../src/domain/manifests/tool.ts';
import type { WorkflowDefinition } from '../../src/domain/manifests/workflow.ts';
import { TOOL_DEFAULTS } from '../../src/domain/tool-defaults.ts';

const BASE = { version: '1.0', summary: '', description: '', tags: [], metadata: {} } as const;

export function toolOf(implementation: ToolImplementation, changes: Partial<ToolDefinition> = {}): ToolDefinition {
  return {
    ...TOOL_DEFAULTS,
    name: 'thing',
    summary: '',
    implementation,
    parameters: { type: 'object' },
    ...changes,
  };
}

export function relicOf(implementation: RelicImplementation, changes: Partial<RelicDefinition> = {}): RelicDefinition {
  return {
    ...BASE,
    kind: 'Relic',
    name: 'store',
    implementation,
    scope: 'session',
    persistent: true,
    idleMs: 600_000,
    endpoints: {},
    ...changes,
  };
}

/** A workflow without steps. */
export function workflowOf(changes: Partial<WorkflowDefinition> = {}): WorkflowDefinition {
  return {
    ...BASE,
    kind: 'Workflow',
    name: 'flow',
    trigger: { type: 'manual' },
    imports: { tools: [], agents: [], relics: [], workflows: [] },
    inputs: { type: 'object' },
    steps: [],
    outputs: {},
    failFast: true,
    maxParallelSteps: 8,
    ...changes,
  };
}

/** A feed that is fetched on demand, from the tool `echo`. */
export function feedOf(id: string, changes: Partial<FeedDefinition> = {}): FeedDefinition {
  return {
    id,
    when: 'on_demand',
    intervalMs: null,
    cacheTtlMs: 0,
    maxTokens: 1_000,
    enabled: true,
    source: { type: 'tool', name: 'echo', action: null, params: {} },
    onError: 'use_cached',
    defaultValue: null,
    ...changes,
  };
}

/** A relic whose image exists. */
export const CONTAINER_RELIC: RelicImplementation = {
  type: 'container',
  image: 'store:1',
  build: null,
  command: null,
  port: 80,
  health: { path: '/health', intervalMs: 10_000, startMs: 15_000 },
  memoryMb: null,
  cpus: null,
};
