/** Which executor does which type of action. */
import type { ActionType } from '../domain/action.ts';
import type { JsonObject } from '../domain/json.ts';
import type { Executor } from './executor.ts';
import { failure } from './failure.ts';
import { internalExecutor } from './internal.ts';
import { llmExecutor } from './llm.ts';
import { pythonExecutor } from './python.ts';
import { shellExecutor } from './shell.ts';
import { toolExecutor } from './tool.ts';

/** One executor for every action type; those that this runtime cannot run fail with `unsupported_type`. */
export function createExecutors(): Readonly<Record<ActionType, Executor>> {
  return {
    tool: toolExecutor,
    llm: llmExecutor,
    internal: internalExecutor,
    python: pythonExecutor,
    shell: shellExecutor,
    agent: unsupported('agent'),
    relic: unsupported('relic'),
    workflow: unsupported('workflow'),
    docker: unsupported('docker'),
  };
}

function unsupported(type: ActionType): Executor {
  return {
    // oxlint-disable-next-line require-await -- the interface is asynchronous
    async execute() {
      const message = `This runtime does not run actions of type "${type}" (it runs: tool, llm, internal, python, shell)`;
      return failure('unsupported_type', message, { beforeDispatch: true });
    },
  };
}

const DESCRIPTIONS: Readonly<Record<ActionType, string>> = {
  tool: 'Built-in, script and HTTP tools',
  llm: 'One model call outside the conversation',
  internal: 'Session variables',
  python: "Python code in the runner's sandbox",
  shell: "Shell commands in the runner's sandbox",
  agent: 'Sub-agents',
  relic: 'Persistent services',
  workflow: 'Multi-step pipelines',
  docker: 'Containers',
};

/**
 * What `GET /executors` says: every action type, whether it runs now, and why not.
 *
 * @param runner the runner's health, null when there is none or it does not answer
 */
export function executorList(runner: JsonObject | null): JsonObject[] {
  const list: JsonObject[] = [];
  for (const [type, description] of Object.entries(DESCRIPTIONS)) {
    const needsRunner = type === 'python' || type === 'shell';
    const supported = ['tool', 'llm', 'internal', 'python', 'shell'].includes(type);
    const available = supported && (!needsRunner || runner !== null);
    list.push({
      type,
      description,
      needs_runner: needsRunner,
      available,
      ...(available ? {} : { reason: supported ? 'the runner does not answer' : 'not supported by this runtime' }),
      ...(needsRunner && typeof runner?.['sandbox'] === 'string' ? { sandbox: runner['sandbox'] } : {}),
    });
  }
  return list;
}
