/**
 * Tools and feeds that agent-lib compiles into its program, and what this system has instead of each (M1). An agent that
 * imports one by name gets the substitute; a manifest that only describes one is skipped.
 */
import type { Capability } from '../../../src/domain/action-types.ts';

interface CompiledTool {
  /** A bundled tool with the same purpose, or a capability that grants the same; without both, it does not exist here. */
  readonly tool?: string;
  readonly capability?: Capability;
  /** What to use instead; completes the sentence `"exec" … :`. */
  readonly advice: string;
}

interface CompiledFeed {
  /** An internal source or a bundled tool with the same purpose (F1); without both, it does not exist here. */
  readonly internal?: string;
  readonly tool?: string;
  readonly advice: string;
}

const NO_FILES = 'there is no workspace of files; use a relic such as key_value, or a tool with a script';
const PINNED = 'there is no workspace of files; the agent can keep values with add_context_feed and set_variable';

const TOOLS: ReadonlyMap<string, CompiledTool> = new Map(
  Object.entries({
    exec: {
      capability: 'shell',
      advice: 'use <action type="shell"> with "command", which runs in the sandbox of a runner',
    },
    web_fetch: {
      tool: 'web_fetch',
      advice: 'use the bundled tool web_fetch, which reads with GET and HEAD',
    },
    json: { tool: 'json_query', advice: 'use the bundled tool json_query, whose queries are JMESPath' },
    sleep: { advice: 'use "retry" with a delay, or a workflow with a schedule' },
    list: { advice: NO_FILES },
    grep: { advice: NO_FILES },
    fs_read: { advice: NO_FILES },
    fs_write: { advice: NO_FILES },
    simple_fs_write: { advice: NO_FILES },
    artifact: { advice: 'use the relic key_value' },
    context_pin: { advice: PINNED },
    context_peek: { advice: PINNED },
    context_unpin: { advice: PINNED },
    ask_tool: {
      advice: 'the agent asks in its response; "approval: always" of a tool asks before a call',
    },
  } satisfies Record<string, CompiledTool>),
);

const FEEDS: ReadonlyMap<string, CompiledFeed> = new Map(
  Object.entries({
    system_clock: {
      internal: 'system_clock',
      advice: 'use a context feed with the internal source system_clock',
    },
    system_stats: {
      tool: 'system_status',
      advice: 'use a context feed of the bundled tool system_status, which measures the runner',
    },
    working_directory: { advice: 'there is no workspace of files' },
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
