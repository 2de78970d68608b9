/** Functions of a test in place of tools and actions. */
import { z } from 'zod';
import type { ActionOutcome } from '../src/domain/action.ts';
import type { JsonObject } from '../src/domain/json.ts';
import type { ToolContext } from '../src/code-tools/define-tool.ts';
import { runTool } from '../src/code-tools/run-tool.ts';
import type { ActionCall, ActionContext } from '../src/executors/executor.ts';
import type { VirtualTime } from './virtual-time.ts';

/** What a function in place of a tool or an action gets, next to the parameters. */
export interface CallContext extends Pick<
  ToolContext,
  'signal' | 'idempotencyKey' | 'attempt' | 'session' | 'fetch' | 'progress' | 'artifacts'
> {
  /** The name of the action: of the tool, of a relic's endpoint (`notes.get`), of an agent. */
  readonly name: string;
  /** Values that python, shell and docker get as data. */
  readonly inputs: JsonObject;
  /** Waits in the time of the test, which passes at once. `sleep(Infinity)`: until the time limit of the action. */
  sleep(ms: number): Promise<void>;
}

/**
 * In place of a tool or an action.
 *
 * @returns a JSON value; `undefined` means null
 * @throws ToolError to choose the code and whether a retry may help
 */
export type CallFunction = (parameters: JsonObject, context: CallContext) => unknown;

/** Runs it like a code tool: the same results, errors and files. */
export async function callFunction(
  replacement: { readonly subject: string; readonly run: CallFunction },
  { action, parameters, inputs, runtimeKey, attempt }: ActionCall,
  { signal, fetch, progress }: Pick<ActionContext, 'signal' | 'fetch' | 'progress'>,
  { session, time }: { readonly session: ToolContext['session']; readonly time: VirtualTime },
): Promise<ActionOutcome> {
  return await time.hold(replacement.subject, signal, async (sleep) => {
    const tool = {
      name: action.name,
      description: action.name,
      parameters: z.unknown(),
      effects: 'unsafe' as const,
      run: (_: unknown, context: ToolContext) =>
        replacement.run(parameters, { ...context, name: action.name, inputs, sleep }),
    };
    return await runTool(tool, {
      parameters,
      // the runtime has checked them against the tool's schema
      parsed: true,
      idempotencyKey: runtimeKey,
      attempt,
      session,
      secrets: {},
      bindings: {},
      signal,
      fetch,
      progress: (update) => progress({ stream: 'tool', ...update }),
    });
  });
}
