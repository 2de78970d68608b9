/** What a tool without further members is: for tools that no manifest file defines. */
import type { ToolDefinition } from './manifests/tool.ts';

export const TOOL_DEFAULTS = {
  kind: 'Tool',
  version: '1.0',
  description: '',
  tags: [],
  metadata: {},
  returns: null,
  effects: 'unsafe',
  approval: 'never',
  dispatch: 'eager',
  concurrency: null,
  timeoutMs: null,
  retry: null,
  cacheTtlMs: null,
  examples: [],
} as const satisfies Partial<ToolDefinition>;
