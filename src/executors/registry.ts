/** Maps each action type to its executor. */
import { ACTION_TYPES, actionSpec } from '../domain/action-types.ts';
import type { ActionType } from '../domain/action-types.ts';
import { isJsonObject } from '../domain/json.ts';
import type { JsonObject } from '../domain/json.ts';
import { agentExecutor, workflowExecutor } from './child.ts';
import { dockerExecutor } from './docker.ts';
import type { Executor } from './executor.ts';
import { internalExecutor } from './internal.ts';
import { llmExecutor } from './llm.ts';
import { pythonExecutor } from './python.ts';
import { relicExecutor } from './relic.ts';
import { shellExecutor } from './shell.ts';
import { toolExecutor } from './tool.ts';

/** Creates the executors of all action types. */
export function createExecutors(): Readonly<Record<ActionType, Executor>> {
  return {
    tool: toolExecutor,
    llm: llmExecutor,
    internal: internalExecutor,
    python: pythonExecutor,
    shell: shellExecutor,
    docker: dockerExecutor,
    agent: agentExecutor,
    relic: relicExecutor,
    workflow: workflowExecutor,
  };
}

/**
 * The answer of `GET /executors`: every action type, whether it can run now, in which sandbox, and if not, why.
 *
 * @param runner the runner's health (`sandbox.active` has the level of each interpreter, or null), or null if there is
 *   no runner or it does not answer
 */
export function executorList(runner: JsonObject | null): JsonObject[] {
  return ACTION_TYPES.map((type) => {
    const { description, runner: need } = actionSpec(type);
    const level = need === null ? null : levelOf(runner, type, need.interpreter);
    const reason = need?.required === true && level === null ? reasonAgainst(runner, need.interpreter) : null;
    return {
      type,
      description,
      needs_runner: need?.required === true,
      available: reason === null,
      ...(reason === null ? {} : { reason }),
      ...(level === null ? {} : { sandbox: level }),
    };
  });
}

function reasonAgainst(runner: JsonObject | null, interpreter: string | null): string {
  if (runner === null) return 'the runner does not answer';
  return interpreter === null ? 'the runner has no Docker engine' : `the runner has no sandbox for ${interpreter}`;
}

/** The sandbox level of an action type on the runner, or null. */
function levelOf(runner: JsonObject | null, type: ActionType, interpreter: string | null): string | null {
  if (interpreter === null) {
    const executors = runner?.['executors'];
    return Array.isArray(executors) && executors.includes(type) ? 'docker' : null;
  }
  const sandbox = runner?.['sandbox'];
  const active = isJsonObject(sandbox) ? sandbox['active'] : null;
  const level = isJsonObject(active) ? active[interpreter] : null;
  return typeof level === 'string' ? level : null;
}
