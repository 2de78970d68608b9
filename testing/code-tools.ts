/** The project's code tools, run in the process of the test. This is where they are plugged into its sessions (K2). */
import type { ActionOutcome } from '../src/domain/action.ts';
import { bindingIssue } from '../src/domain/bindings.ts';
import type { CodeToolCall, CodeTools } from '../src/domain/ports/code-tools.ts';
import type { OutboundFetch } from '../src/domain/ports/outbound.ts';
import type { CodeTool, ToolBindings, ToolContext } from '../src/code-tools/define-tool.ts';
import { runTool } from '../src/code-tools/run-tool.ts';
import { failure } from '../src/executors/failure.ts';
import type { VirtualTime } from './virtual-time.ts';

export interface CodeToolPorts {
  readonly tools: Readonly<Record<string, CodeTool>>;
  /** The bindings of the Worker, as the test gives them. */
  readonly env: Readonly<Record<string, unknown>>;
  readonly secrets: Readonly<Record<string, string>>;
  readonly session: () => ToolContext['session'];
  readonly fetch: OutboundFetch;
  readonly time: VirtualTime;
}

export function testCodeTools({ tools, env, secrets, session, fetch, time }: CodeToolPorts): CodeTools {
  return {
    async run(call, { signal, progress }): Promise<ActionOutcome> {
      const tool = Object.hasOwn(tools, call.name) ? tools[call.name] : undefined;
      if (tool === undefined) {
        return failure('not_available', `The project has no code for the tool "${call.name}": run cortex build`);
      }
      const bindings = bindingsOf(call, env);
      if (typeof bindings === 'string') return failure('missing_binding', bindings, { beforeDispatch: true });
      const { parameters, idempotencyKey, attempt } = call;
      return await time.hold(`the code tool "${call.name}"`, signal, () =>
        runTool(tool, {
          parameters,
          idempotencyKey,
          attempt,
          session: session(),
          // the catalogue has checked that they exist
          secrets: Object.fromEntries(call.secrets.map((name) => [name, secrets[name] ?? ''])),
          bindings,
          signal,
          fetch,
          progress,
        }),
      );
    },
    lost: async () => undefined,
  };
}

/** Only the bindings that the tool's manifest lists. @returns a message if one is missing */
function bindingsOf({ name, bindings }: CodeToolCall, env: Readonly<Record<string, unknown>>): ToolBindings | string {
  const found: Record<string, unknown> = {};
  for (const binding of bindings) {
    const issue = bindingIssue(binding);
    if (issue !== null) return issue;
    if (!Object.hasOwn(env, binding)) {
      return `The tool "${name}" needs the binding ${binding}: pass env: { ${binding}: … } to openSession`;
    }
    found[binding] = env[binding];
  }
  // projects give the type of each binding; here it is not known
  return found as unknown as ToolBindings;
}
