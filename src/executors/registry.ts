/** Which executor does which type of action. */
import type { ActionType } from '../domain/action.ts';
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

/** One executor for every action type; those that this runtime cannot run fail with `unsupported_type`. */
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

const DESCRIPTIONS: Readonly<Record<ActionType, string>> = {
  tool: 'Built-in, script, container and HTTP tools',
  llm: 'One model call outside the conversation',
  internal: 'Session variables',
  python: "Python code in the runner's sandbox",
  shell: "Shell commands in the runner's sandbox",
  agent: 'Sub-agents',
  relic: 'Persistent services: stores at the edge, and containers where the runner has a Docker engine',
  workflow: 'Multi-step pipelines',
  docker: 'A command in a container of its own, from an image by name',
};

/** Which of the runner's interpreters an action type needs. */
const INTERPRETERS: Readonly<Partial<Record<ActionType, string>>> = { python: 'python3', shell: 'shell' };
const SUPPORTED: ReadonlySet<string> = new Set([
  'tool',
  'llm',
  'internal',
  'python',
  'shell',
  'docker',
  'agent',
  'workflow',
  'relic',
]);
const ON_RUNNER: ReadonlySet<string> = new Set(['python', 'shell', 'docker']);

/**
 * What `GET /executors` says: every action type, whether it runs now, in which sandbox, and why not.
 *
 * @param runner the runner's health (`sandbox.active` names the level of each interpreter, null where
 *   there is none), or null when there is no runner or it does not answer
 */
export function executorList(runner: JsonObject | null): JsonObject[] {
  const list: JsonObject[] = [];
  for (const [type, description] of Object.entries(DESCRIPTIONS)) {
    const level = levelFor(runner, type);
    const reason = reasonAgainst(runner, type, level);
    list.push({
      type,
      description,
      needs_runner: ON_RUNNER.has(type),
      available: reason === null,
      ...(reason === null ? {} : { reason }),
      ...(level === null ? {} : { sandbox: level }),
    });
  }
  return list;
}

function reasonAgainst(runner: JsonObject | null, type: string, level: string | null): string | null {
  if (!SUPPORTED.has(type)) return 'not supported by this runtime';
  if (!ON_RUNNER.has(type) || level !== null) return null;
  if (runner === null) return 'the runner does not answer';
  return type === 'docker'
    ? 'the runner has no Docker engine'
    : `the runner has no sandbox for ${INTERPRETERS[type as ActionType] ?? type}`;
}

/** The sandbox that an action type gets on the runner, null where there is none. */
function levelFor(runner: JsonObject | null, type: string): string | null {
  const executors = runner?.['executors'];
  // both live by the engine
  if (type === 'docker' || type === 'relic') {
    return Array.isArray(executors) && executors.includes(type) ? 'docker' : null;
  }
  const interpreter = INTERPRETERS[type as ActionType];
  return interpreter === undefined ? null : levelOf(runner, interpreter);
}

function levelOf(runner: JsonObject | null, interpreter: string): string | null {
  const sandbox = runner?.['sandbox'];
  const active = isJsonObject(sandbox) ? sandbox['active'] : null;
  const level = isJsonObject(active) ? active[interpreter] : null;
  return typeof level === 'string' ? level : null;
}
