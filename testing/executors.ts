/** Executors of a test: the real ones, except for what the test replaces and what would need a runner. */
import type { ActionOutcome, ActionType } from '../src/domain/action.ts';
import { ACTION_TYPES } from '../src/domain/action-types.ts';
import type { ToolContext } from '../src/code-tools/define-tool.ts';
import type { ActionCall, Executor } from '../src/executors/executor.ts';
import { failure } from '../src/domain/failure.ts';
import { createExecutors } from '../src/executors/registry.ts';
import { callFunction } from './functions.ts';
import type { CallFunction } from './functions.ts';
import type { VirtualTime } from './virtual-time.ts';

/**
 * Milliseconds that each action takes at least. Generations take no time, so all actions of a generation that may run at
 * the same time do.
 */
const LEAST_MS = 1;

export interface Replacements {
  readonly tools: Readonly<Record<string, CallFunction>>;
  readonly actions: Readonly<Partial<Record<ActionType, CallFunction>>>;
}

export function testExecutors(
  { tools, actions }: Replacements,
  host: { readonly session: () => ToolContext['session']; readonly time: VirtualTime },
): Record<ActionType, Executor> {
  const real = createExecutors();
  const replacementOf = ({ action, tool }: ActionCall, type: ActionType) => {
    const name = tool?.name ?? action.name;
    const own = type === 'tool' && Object.hasOwn(tools, name) ? tools[name] : undefined;
    if (own !== undefined) return { subject: `the tool "${name}"`, run: own };
    const general = actions[type];
    return general === undefined ? null : { subject: `the ${type} action "${name}"`, run: general };
  };
  const entries = ACTION_TYPES.map((type): [ActionType, Executor] => [
    type,
    {
      async execute(call, context) {
        const { time, session } = host;
        const replacement = replacementOf(call, type);
        const outcome =
          replacement === null
            ? (needsRunner(call, type) ?? (await real[type].execute(call, context)))
            : await callFunction(replacement, call, context, { time, session: session() });
        // an action that was stopped has ended already
        await time.pass(LEAST_MS, context.signal).catch(() => undefined);
        return outcome;
      },
    },
  ]);
  return Object.fromEntries(entries) as Record<ActionType, Executor>;
}

/** A failure that says how to replace what would need a runner; null: it needs none. */
function needsRunner({ action, tool, relic }: ActionCall, type: ActionType): ActionOutcome | null {
  const how = (what: string, option: string): ActionOutcome =>
    failure('runner_unavailable', `A test has no runner, so ${what} cannot run: pass ${option} to openSession`, {
      beforeDispatch: true,
    });
  if (type === 'python' || type === 'shell' || type === 'docker') {
    return how(`${type} actions`, `actions: { ${type}: async (parameters) => … }`);
  }
  const program = tool?.implementation.type;
  if (tool !== null && (program === 'script' || program === 'container')) {
    const name = /^[A-Za-z_]\w*$/.test(tool.name) ? tool.name : JSON.stringify(tool.name);
    return how(`the ${program} tool "${tool.name}"`, `tools: { ${name}: async (parameters) => … }`);
  }
  if (relic != null && relic.implementation.type !== 'edge') {
    return how(`the relic "${action.name}"`, 'actions: { relic: async (parameters, { name }) => … }');
  }
  return null;
}
