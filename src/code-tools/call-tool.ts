/**
 * One call of a code tool (K2): finds the tool, parses its parameters, or gives it the bindings and secrets of its manifest and
 * runs one attempt.
 * The host of the Worker and the test kit call it, so that a tool meets the same conditions in both.
 */
import type { ActionOutcome } from '../domain/action.ts';
import { bindingIssue } from '../domain/bindings.ts';
import { failure } from '../domain/failure.ts';
import type { CodeToolCall, CodeToolSession } from '../domain/ports/code-tools.ts';
import type { SecretRead } from '../domain/secrets.ts';
import type { CodeTool } from './define-tool.ts';
import { parseParameters, runTool } from './run-tool.ts';
import type { ToolRun } from './run-tool.ts';

/** Where code tools run. */
export interface ToolHost {
  readonly tools: Readonly<Record<string, CodeTool>>;
  /** Everything that the Worker is bound to. */
  readonly env: object;
  readonly secret: (name: string) => SecretRead;
  /** What to do about a tool that has no code, and about a binding that does not exist. */
  readonly advice: { readonly tool: string; readonly binding: (name: string) => string };
}

/** The parsed parameters as the output. Never throws. */
export async function parseCall(
  { name, parameters }: Pick<CodeToolCall, 'name' | 'parameters'>,
  { tools, advice }: Pick<ToolHost, 'tools' | 'advice'>,
  signal: AbortSignal,
): Promise<ActionOutcome> {
  const tool = toolIn(tools, name);
  return tool === null ? missing(name, advice) : await parseParameters(tool, { parameters, signal });
}

/** Never throws. */
export async function callTool(
  { name, bindings, secrets, ...attempt }: CodeToolCall,
  { tools, env, secret, advice }: ToolHost,
  session: CodeToolSession,
  run: Pick<ToolRun, 'signal' | 'fetch' | 'progress'>,
): Promise<ActionOutcome> {
  const tool = toolIn(tools, name);
  if (tool === null) return missing(name, advice);
  const bound: Record<string, unknown> = {};
  for (const binding of bindings) {
    const value: unknown = Object.hasOwn(env, binding) ? Reflect.get(env, binding) : undefined;
    const issue = bindingIssue(binding) ?? valueIssue(binding, value, advice);
    if (issue !== null) return refused('missing_binding', issue);
    bound[binding] = value;
  }
  const read: Record<string, string> = {};
  for (const one of secrets) {
    const found = secret(one);
    if (!found.ok) return refused('missing_secret', `The tool needs a secret that is not available: ${found.reason}`);
    read[one] = found.value;
  }
  const { session_id: id, agent, user_id: userId, owner: namespace } = session;
  return await runTool(tool, {
    ...attempt,
    ...run,
    session: { id, agent, userId, namespace },
    secrets: read,
    bindings: bound,
  });
}

function toolIn(tools: ToolHost['tools'], name: string): CodeTool | null {
  return Object.hasOwn(tools, name) ? (tools[name] ?? null) : null;
}

function missing(name: string, advice: ToolHost['advice']): ActionOutcome {
  return refused('not_available', `The code of the tool "${name}" is not part of this deployment; ${advice.tool}`);
}

function valueIssue(name: string, value: unknown, { binding }: ToolHost['advice']): string | null {
  if (value === undefined) return `The Worker has no binding ${name}; ${binding(name)}`;
  if (typeof value !== 'string') return null;
  return `${name} is a variable and not a binding; list secrets (TOOL_…) under "secrets"`;
}

/** The tool has not run. */
function refused(code: string, message: string): ActionOutcome {
  return failure(code, message, { beforeDispatch: true });
}
