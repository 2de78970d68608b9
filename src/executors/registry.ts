/** Which executor does which type of action. */
import type { ActionType } from '../domain/action.ts';
import { isJsonObject } from '../domain/json.ts';
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

/** Which of the runner's interpreters an action type needs. */
const INTERPRETERS: Readonly<Partial<Record<ActionType, string>>> = { python: 'python3', shell: 'shell' };
const SUPPORTED: ReadonlySet<string> = new Set(['tool', 'llm', 'internal', 'python', 'shell']);

/**
 * What `GET /executors` says: every action type, whether it runs now, in which sandbox, and why not.
 *
 * @param runner the runner's health (`sandbox.active` names the level of each interpreter, null where
 *   there is none), or null when there is no runner or it does not answer
 */
export function executorList(runner: JsonObject | null): JsonObject[] {
  const list: JsonObject[] = [];
  for (const [type, description] of Object.entries(DESCRIPTIONS)) {
    const interpreter = INTERPRETERS[type as ActionType];
    const level = interpreter === undefined ? null : levelOf(runner, interpreter);
    const reason = !SUPPORTED.has(type)
      ? 'not supported by this runtime'
      : interpreter !== undefined && runner === null
        ? 'the runner does not answer'
        : interpreter !== undefined && level === null
          ? `the runner has no sandbox for ${interpreter}`
          : null;
    list.push({
      type,
      description,
      needs_runner: interpreter !== undefined,
      available: reason === null,
      ...(reason === null ? {} : { reason }),
      ...(level === null ? {} : { sandbox: level }),
    });
  }
  return list;
}

function levelOf(runner: JsonObject | null, interpreter: string): string | null {
  const sandbox = runner?.['sandbox'];
  const active = isJsonObject(sandbox) ? sandbox['active'] : null;
  const level = isJsonObject(active) ? active[interpreter] : null;
  return typeof level === 'string' ? level : null;
}
