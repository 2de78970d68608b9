/** Definitions that the catalogue builds from short manifests. */
import type {
  RelicDefinition,
  RelicImplementation,
  ToolDefinition,
  ToolImplementation,
} from '../../src/domain/manifest.ts';

const BASE = { version: '1.0', summary: '', description: '', tags: [], metadata: {} } as const;

export function toolOf(implementation: ToolImplementation, changes: Partial<ToolDefinition> = {}): ToolDefinition {
  return {
    ...BASE,
    kind: 'Tool',
    name: 'thing',
    implementation,
    parameters: { type: 'object' },
    returns: null,
    effects: 'unsafe',
    approval: 'never',
    dispatch: 'eager',
    concurrency: null,
    timeoutMs: null,
    retry: null,
    cacheTtlMs: null,
    examples: [],
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
