/** `remember` and `forget`: the model changes the facts about its user (C10). */
import type { MemoryAction } from '../domain/internal-actions.ts';
import type { ActionOutcome } from '../domain/action.ts';
import { FACT_KEY, FACT_KEY_RULE, FACT_VALUE_RULE, factText } from '../domain/facts.ts';
import type { Json } from '../domain/json.ts';
import { unlessAborted } from '../domain/sleep.ts';
import type { ActionCall, ActionContext, MemoryChange } from './executor.ts';
import { failure } from '../domain/failure.ts';
import { failureOf, wrongParameter } from './failure.ts';

type Call = Pick<ActionCall, 'parameters' | 'runtimeKey' | 'timeoutMs'>;
type Context = Pick<ActionContext, 'memory' | 'clock' | 'signal'>;

/**
 * Changes one fact. If the answer is lost, the store is asked once for the record of the call. An attempt may be repeated: the
 * store knows it by its runtime key.
 *
 * @returns `{key, value}` or `{key, forgotten}`
 */
export async function changeFacts(
  name: MemoryAction,
  { parameters, runtimeKey: id, timeoutMs }: Call,
  { memory, clock, signal }: Context,
): Promise<ActionOutcome> {
  if (memory == null) {
    return failure('not_available', `"${name}" is not available here`, { beforeDispatch: true });
  }
  const change = changeOf(name, parameters);
  if ('ok' in change) return change;
  try {
    const answer = await unlessAborted(memory.change(change, { id, until: clock.now() + timeoutMs }), signal);
    return answer.ok ? outcomeOf(change, answer.changed) : failure(answer.code, answer.message);
  } catch (fault) {
    const failed = failureOf(fault, signal, 'memory_unavailable');
    if (signal.aborted) return failed;
    const known = await unlessAborted(memory.lookup(id), signal).catch(() => null);
    if (known !== null) return outcomeOf(change, known.changed);
    return failure('memory_unavailable', failed.error.message, { retryable: true });
  }
}

/** The outcome of an attempt whose host was lost; null if the store does not know it. */
export async function recoverChange(
  name: MemoryAction,
  { parameters, runtimeKey }: Pick<Call, 'parameters' | 'runtimeKey'>,
  { memory }: Pick<Context, 'memory'>,
): Promise<ActionOutcome | null> {
  const change = changeOf(name, parameters);
  if (memory == null || 'ok' in change) return null;
  const known = await memory.lookup(runtimeKey);
  return known === null ? null : outcomeOf(change, known.changed);
}

function changeOf(name: MemoryAction, { key, value }: Call['parameters']): MemoryChange | ActionOutcome {
  if (typeof key !== 'string' || !FACT_KEY.test(key)) return wrongParameter('key', FACT_KEY_RULE, key);
  if (name === 'forget') return { type: name, key };
  const text = textOf(value);
  return text === null ? wrongParameter('value', FACT_VALUE_RULE, value) : { type: name, key, value: text };
}

function textOf(value: Json | undefined): string | null {
  if (typeof value === 'string') return factText(value);
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : null;
}

function outcomeOf(change: MemoryChange, changed: number): ActionOutcome {
  const { key } = change;
  return {
    ok: true,
    output: change.type === 'remember' ? { key, value: change.value } : { key, forgotten: changed > 0 },
  };
}
