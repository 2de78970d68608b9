/** Calls a code tool of the project (K2), which runs apart from the session. */
import type { ActionOutcome } from '../domain/action.ts';
import type { ToolImplementation } from '../domain/manifests/tool.ts';
import type { ActionCall, ActionContext } from './executor.ts';
import { failure } from '../domain/failure.ts';
import type { Failure } from '../domain/failure.ts';
import { failureOf } from './failure.ts';

type CodeImplementation = Extract<ToolImplementation, { type: 'code' }>;

export async function callCode(
  { bindings, secrets, missingSecret }: CodeImplementation,
  { action, tool, parameters, parsed, runtimeKey, attempt, trace }: ActionCall,
  { codeTools, signal, progress }: Pick<ActionContext, 'codeTools' | 'signal' | 'progress'>,
): Promise<ActionOutcome> {
  if (missingSecret !== undefined) {
    return failure('missing_secret', `The tool needs a secret that is not available: ${missingSecret}`, {
      beforeDispatch: true,
    });
  }
  const name = tool?.name ?? action.name;
  if (codeTools == null) {
    return noCodeTools(name);
  }
  try {
    return await codeTools.run(
      {
        name,
        parameters,
        ...(parsed === true ? { parsed } : {}),
        idempotencyKey: runtimeKey,
        attempt,
        ...(trace === undefined ? {} : { trace }),
        bindings,
        secrets,
      },
      { signal, progress: (update) => progress({ stream: 'tool', ...update }) },
    );
  } catch (fault) {
    const { error } = failureOf(fault, signal, 'tool_host_failed');
    if (signal.aborted) return { ok: false, error };
    return tool?.effects === 'unsafe'
      ? failure('outcome_unknown', `${error.message}; it is unknown whether ${name} took effect`)
      : failure('tool_host_failed', error.message, { retryable: true });
  }
}

export function noCodeTools(name: string): Failure {
  const message = `The tool "${name}" is TypeScript of a project, which this runtime does not have`;
  return failure('not_available', message, { beforeDispatch: true });
}
