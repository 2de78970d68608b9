/**
 * Prepares a call for its judgement (C9): completes its parameters by the schema of the target (D3), checks them, and has those
 * of a code tool parsed (K2). The result is what is judged, shown, approved and executed.
 */
import type { ActionDeclaration, ActionError, ActionOutcome } from '../../domain/action.ts';
import { backoffMs } from '../../domain/backoff.ts';
import { messageOf } from '../../domain/errors.ts';
import { failure } from '../../domain/failure.ts';
import { isJsonObject } from '../../domain/json.ts';
import type { JsonObject } from '../../domain/json.ts';
import { limits } from '../../domain/limits.ts';
import { sleep, within } from '../../domain/sleep.ts';
import type { CodeToolCall } from '../../domain/ports/code-tools.ts';
import { noCodeTools } from '../../executors/code.ts';
import { admitCall } from '../actions/call-check.ts';
import { codeToolOf, completeCall } from '../actions/calls.ts';
import type { ResolvedCall } from '../run/resolve-names.ts';
import type { RunContext } from '../run/run-context.ts';

type Context = Pick<RunContext, 'journal' | 'pacer' | 'resolved' | 'clock' | 'codeTools'>;

/**
 * @param asked the call with the values of its references
 * @returns the final call, or why there is none: a mistake of the model, or a schema that fails
 * @throws the signal's reason if it aborts first
 */
export async function prepareCall(
  action: ActionDeclaration,
  asked: ResolvedCall,
  context: Context,
  signal: AbortSignal,
): Promise<{ readonly call: ResolvedCall } | { readonly error: ActionError }> {
  const { resolved } = context;
  const call = completeCall(action, asked, resolved);
  const error = await admitCall(action, call, context, signal);
  if (error !== null) return { error };
  const tool = codeToolOf(action, resolved);
  if (tool === null) return { call };
  const parsed = await parseCall({ name: tool.name, parameters: call.parameters }, context, signal);
  return 'error' in parsed ? parsed : { call: { ...call, ...parsed } };
}

/**
 * Has the parameters of a code tool parsed, within a time limit. A parse has no effects, so a lost one is repeated.
 *
 * @throws the signal's reason if it aborts first
 */
export async function parseCall(
  call: Pick<CodeToolCall, 'name' | 'parameters'>,
  { codeTools, clock }: Pick<Context, 'codeTools' | 'clock'>,
  signal: AbortSignal,
): Promise<{ readonly parameters: JsonObject } | { readonly error: ActionError }> {
  if (codeTools == null) return { error: noCodeTools(call.name).error };
  const late = new AbortController();
  const both = AbortSignal.any([signal, late.signal]);
  const attempt = async (): Promise<ActionOutcome> => {
    for (let tries = 1; ; tries += 1) {
      try {
        return await codeTools.parse(call, both);
      } catch (fault) {
        both.throwIfAborted();
        if (tries >= limits.retryAttempts) return failure('tool_host_failed', messageOf(fault), { retryable: true });
        const delay = { delayMs: limits.retryDelayMs, maxDelayMs: limits.retryMaxDelayMs };
        await sleep(backoffMs(delay, tries), clock, both);
      }
    }
  };
  const message = `the schema of the tool "${call.name}" took more than ${limits.codeToolParseMs} ms`;
  const working = attempt();
  working.catch(() => undefined);
  const parsed = await within(working, limits.codeToolParseMs, clock, failure('parse_timeout', message));
  late.abort(new DOMException('the parse took too long', 'TimeoutError'));
  signal.throwIfAborted();
  if (!parsed.ok) return { error: parsed.error };
  if (isJsonObject(parsed.output)) return { parameters: parsed.output };
  throw new Error(`the schema of the tool "${call.name}" gave no object`);
}
