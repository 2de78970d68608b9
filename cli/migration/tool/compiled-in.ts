/**
 * Tools and feeds that agent-lib compiles into its program, and what this system has instead of each (M1). An agent that
 * imports one by name gets the substitute; a manifest that only describes one is skipped.
 */
import type { Capability } from '../../../src/domain/action-types.ts';

export interface CompiledTool {
  /** A bundled tool with the same purpose, a capability that grants the same, or null: it does not exist here. */
  readonly substitute: { readonly tool: string } | { readonly capability: Capability } | null;
  /** What to use instead; completes the sentence `"exec" … :`. */
  readonly advice: string;
}

export interface CompiledFeed {
  /** The source of a context feed with the same purpose (F1), or null: it does not exist here. */
  readonly substitute:
    | { readonly type: 'internal'; readonly action: string }
    | { readonly type: 'tool'; readonly name: string }
    | null;
  readonly advice: string;
}

const NO_FILES = 'there is no workspace of files; use a relic such as key_value, or a tool with a script';
const PINNED = 'there is no workspace of files; the agent can keep values with add_context_feed and set_variable';

const TOOLS: ReadonlyMap<string, CompiledTool> = new Map(
  Object.entries({
    exec: {
      substitute: { capability: 'shell' },
      advice: 'use <action type="shell"> with "command", which runs in the sandbox of a runner',
    },
    web_fetch: {
      substitute: { tool: 'web_fetch' },
      advice: 'use the bundled tool web_fetch, which reads with GET and HEAD',
    },
    json: { substitute: { tool: 'json_query' }, advice: 'use the bundled tool json_query, whose queries are JMESPath' },
    sleep: { substitute: null, advice: 'use "retry" with a delay, or a workflow with a schedule' },
    list: { substitute: null, advice: NO_FILES },
    grep: { substitute: null, advice: NO_FILES },
    fs_read: { substitute: null, advice: NO_FILES },
    fs_write: { substitute: null, advice: NO_FILES },
    simple_fs_write: { substitute: null, advice: NO_FILES },
    artifact: { substitute: null, advice: 'use the relic key_value' },
    context_pin: { substitute: null, advice: PINNED },
    context_peek: { substitute: null, advice: PINNED },
    context_unpin: { substitute: null, advice: PINNED },
    ask_tool: {
      substitute: null,
      advice: 'the agent asks in its response; "approval: always" of a tool asks before a call',
    },
  } satisfies Record<string, CompiledTool>),
);

const FEEDS: ReadonlyMap<string, CompiledFeed> = new Map(
  Object.entries({
    system_clock: {
      substitute: { type: 'internal', action: 'system_clock' },
      advice: 'use a context feed with the internal source system_clock',
    },
    system_stats: {
      substitute: { type: 'tool', name: 'system_status' },
      advice: 'use a context feed of the bundled tool system_status, which measures the runner',
    },
    working_directory: { substitute: null, advice: 'there is no workspace of files' },
  } satisfies Record<string, CompiledFeed>),
);

/** @param name as an import or a manifest has it, also `builtin/exec`; null if it is no compiled tool */
export function compiledTool(name: string): CompiledTool | null {
  return TOOLS.get(name.replace(PREFIX, '')) ?? null;
}

/** @param name as an import or a manifest has it, also `builtin/system_clock`; null if it is no compiled feed */
export function compiledFeed(name: string): CompiledFeed | null {
  return FEEDS.get(name.replace(PREFIX, '')) ?? null;
}

const PREFIX = /^builtin\//;
