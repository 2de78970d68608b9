/**
 * Checks an action's resolved call before its executor runs.
 *
 * A call that is expensive to check, or has large parameters, waits for its own turn on the thread, because a run may
 * start hundreds of them at once.
 */
import type { ActionDeclaration, ActionError } from '../../domain/action.ts';
import { limits } from '../../domain/limits.ts';
import type { WorkMeter } from '../../domain/work.ts';
import { validateParameters } from '../../executors/validate-parameters.ts';
import { isInShortForm } from '../../protocol/prompt/shown-tools.ts';
import { parameterHint } from '../../protocol/prompt/tool-block.ts';
import type { ResolvedCall } from '../run/resolve-names.ts';
import type { RunContext } from '../run/run-context.ts';
import { actionInFullSession } from '../session/session-full.ts';
import { toolOf } from './action-policy.ts';

type Context = Pick<RunContext, 'journal' | 'pacer' | 'resolved'>;

/**
 * Resolves when the call may begin.
 *
 * @param isPrepared its parameters were checked before its judgement
 * @returns why it must not begin; null if it may
 * @throws the signal's reason if it aborts first
 */
export async function admitCall(
  action: ActionDeclaration,
  call: ResolvedCall,
  context: Context,
  signal: AbortSignal,
  isPrepared = false,
): Promise<ActionError | null> {
  if (context.journal.full) return actionInFullSession();
  if (isPrepared) return null;
  const { renderedChars = 0 } = call;
  const passOnSteps = (action.span.end - action.span.start + renderedChars) * limits.parameterCharSteps;
  const check = (paced: WorkMeter): ActionError | null => {
    if (passOnSteps > limits.busyTurnSteps) paced.charge(passOnSteps);
    paced.chargeChars(renderedChars);
    return checkCall(action, call, context, paced.part(limits.schemaSteps));
  };
  // An upper bound; the actual work determines how long others have their turn.
  return await context.pacer.run(limits.schemaSteps + limits.substitutedChars + passOnSteps, check, signal);
}

/** @returns the issue with the call; null if there is none */
export function checkCall(
  action: ActionDeclaration,
  { parameters, spent }: ResolvedCall,
  { resolved }: Pick<Context, 'resolved'>,
  meter: WorkMeter,
): ActionError | null {
  if (spent === true) {
    return quotaExceeded();
  }
  const tool = toolOf(action, resolved);
  const issue = tool === null ? null : validateParameters(tool.parameters, parameters, meter);
  if (tool === null || issue === null) return null;
  // The prompt does not have them: with them, the next call can be right (L4).
  const message = isInShortForm(tool, resolved) ? `${issue}\n${parameterHint(tool)}` : issue;
  return { code: 'invalid_parameters', message, retryable: false };
}

/** Values are missing in the call. */
function quotaExceeded(): ActionError {
  const message = `The references of this run would add more than ${limits.runSubstitutedChars} characters in total`;
  return { code: 'reference_quota', message, retryable: false };
}
