/** Decides after a settled generation whether its run has answered, has failed or continues (P10, P15, S11). */
import { ERROR_TABLE } from '../domain/errors.ts';
import type { ErrorCode, RunError } from '../domain/errors.ts';
import { limits } from '../domain/limits.ts';
import type { FinishReason } from '../domain/ports/model.ts';
import { budgetError, callsLeft, tokensLeft } from './budgets.ts';
import { isFinal, hasAnswer } from './finality.ts';
import type { Generation, RunState } from './state.ts';

type Verdict =
  | { readonly type: 'answered' }
  | { readonly type: 'failed'; readonly error: RunError }
  | { readonly type: 'continue' };

/** Whether the values of the generation's references must be checked before the generation is judged (P10, P13). */
export function needsCheck(state: RunState, generation: Generation): boolean {
  if (typeof generation.answerCheck === 'object') return false;
  if (generation.responses.every(({ final }) => final === false)) return false;
  const hasReferences =
    generation.responses.some((response) => response.hasReferences) ||
    // An action may have been given text with a blank.
    generation.nodes.some(({ declaration }) => declaration.references.length > 0);
  return hasReferences && (state.policy.source === 'text' || generation.last || isFinal(state, generation));
}

/**
 * Whether the model is shown the values that its answer lacks, and answers again: once in a run, and only if another
 * generation is possible (P10).
 */
function mustShowMissing(state: RunState, { answerCheck }: Generation): boolean {
  if (typeof answerCheck !== 'object' || !answerCheck.missing) return false;
  if (state.missingShown || state.policy.onFailedFinal === 'end') return false;
  return callsLeft(state) >= 0 && tokensLeft(state) >= 0;
}

/** Updates the counters of broken, interrupted and idle generations, and whether missing values were shown. */
export function judge(state: RunState, generation: Generation): Verdict {
  const { finish } = generation;
  const broke = finish !== null && brokeOff(finish) && !generation.stopped;
  if (state.policy.source === 'text') {
    return broke ? { type: 'failed', error: breakError(generation) } : { type: 'answered' };
  }
  if (broke && breakError(generation).code === INTERRUPTED && !isFinal(state, generation)) {
    state.interrupted += 1;
    return state.interrupted > limits.cutGenerations
      ? { type: 'failed', error: exhausted(state) }
      : { type: 'continue' };
  }
  if (generation.last) {
    if (hasAnswer(generation)) return { type: 'answered' };
    return { type: 'failed', error: broke ? breakError(generation) : lastError(state) };
  }
  if (isFinal(state, generation)) {
    if (!mustShowMissing(state, generation)) return { type: 'answered' };
    state.missingShown = true;
    return { type: 'continue' };
  }
  if (broke) {
    state.broken += 1;
    const error = breakError(generation);
    return state.broken >= limits.brokenGenerations || isPermanent(error.code)
      ? { type: 'failed', error }
      : { type: 'continue' };
  }
  state.broken = 0;
  state.idle = generation.responses.length > 0 || generation.accepted > 0 || generation.stopped ? 0 : state.idle + 1;
  if (state.idle >= limits.idleIterations) {
    const message = `The model neither answered nor declared a valid action, ${state.idle} times in a row`;
    return { type: 'failed', error: { code: 'no_progress', message } };
  }
  return { type: 'continue' };
}

function breakError({ error, finish }: Generation): RunError {
  if (error !== null) return error;
  const reason = finish === 'content_filter' || finish === 'abort' ? finish : 'error';
  return { code: `generation_${reason}`, message: `The generation ended early: ${reason}` };
}

/** The code of a generation that a host restart interrupted; these are counted separately (J2). */
const INTERRUPTED = 'interrupted';

function exhausted({ interrupted }: RunState): RunError {
  const message = `The run failed because the host was restarted during ${interrupted} of its generations`;
  return { code: 'recovery_exhausted', message };
}

/** Whether a retry cannot help. */
function isPermanent(code: ErrorCode): boolean {
  // A run may have recorded a code of another version.
  return Object.hasOwn(ERROR_TABLE, code) && ERROR_TABLE[code].retry === 'no';
}

function lastError(state: RunState): RunError {
  const [first] = state.exceeded;
  if (first !== undefined && first !== 'iterations') return budgetError(state, first);
  const { maxIterations } = state.policy;
  return {
    code: 'max_iterations',
    message: `No answer within ${maxIterations} iterations, nor in the extra last generation`,
  };
}

/** Whether the text ended early, so that unstarted actions may not be intended (P15). */
export function brokeOff(finish: FinishReason): boolean {
  return finish === 'content_filter' || finish === 'error' || finish === 'abort';
}
