/** `type="agent"` and `type="workflow"`: a separate session, whose events appear under the action (M6, M7). */
import type { ActionOutcome } from '../domain/action.ts';
import { askedText } from '../domain/call-text.ts';
import { isJsonObject } from '../domain/json.ts';
import type { JsonObject } from '../domain/json.ts';
import { limits } from '../domain/limits.ts';
import type { ChildEnd, ChildRequest } from '../domain/ports/children.ts';
import type { ActionCall, ActionContext, Executor } from './executor.ts';
import { failure } from '../domain/failure.ts';
import { failureOf, wrongParameter } from './failure.ts';

async function runAgent(call: ActionCall, context: ActionContext): Promise<ActionOutcome> {
  const message = askedText('agent', call.parameters);
  if (typeof message !== 'string' || message.trim() === '') {
    return wrongParameter('message', 'a message for the agent', message);
  }
  const bytes = new TextEncoder().encode(message).length;
  if (bytes > limits.messageBytes) {
    const text = `The message has ${bytes} bytes (allowed: ${limits.messageBytes})`;
    return failure('input_too_large', text, { beforeDispatch: true });
  }
  // Without a `message`, the context is a part of the text.
  const own: JsonObject = Object.hasOwn(call.parameters, 'message') ? call.parameters : {};
  const { context: inputs = {} } = own;
  if (!isJsonObject(inputs))
    return wrongParameter('context', 'an object with the initial variables of the agent', inputs);
  return await runChild(call, context, { type: 'agent', message, inputs });
}

async function runWorkflow(call: ActionCall, context: ActionContext): Promise<ActionOutcome> {
  return await runChild(call, context, { type: 'workflow', message: '', inputs: call.parameters });
}

// The child outlives its parent's host. Running it again joins it, so nothing is done twice.
export const agentExecutor: Executor = { execute: runAgent, recover: runAgent };
export const workflowExecutor: Executor = { execute: runWorkflow, recover: runWorkflow };

async function runChild(
  call: ActionCall,
  { children, signal, progress, scopeOf }: ActionContext,
  request: Pick<ChildRequest, 'type' | 'message' | 'inputs'>,
): Promise<ActionOutcome> {
  // A retry is a new child, because the work of the previous one has ended.
  const key = `${call.runtimeKey}/${call.attempt}`;
  const { name } = call.action;
  const scope = scopeOf?.(request.type, name);
  try {
    const end = await children.run(
      { ...request, key, name, ...(scope === undefined ? {} : { scope }), budget: call.budget, ...tracedBy(call) },
      { signal, event: (event) => progress({ event }) },
    );
    return outcomeOf(end, call);
  } catch (fault) {
    return failureOf(fault, signal, 'child_unavailable');
  }
}

function tracedBy({ trace }: ActionCall): Pick<ChildRequest, 'trace'> {
  return trace === undefined ? {} : { trace };
}

function outcomeOf({ status, output, error, spent }: ChildEnd, { action }: ActionCall): ActionOutcome {
  if (status === 'completed') return { ok: true, output, spent };
  const who = `${action.type === 'agent' ? 'The agent' : 'The workflow'} "${action.name}"`;
  const why = error === null ? '' : `: ${error.code}: ${error.message}`;
  const message = `${who} ${status === 'failed' ? 'failed' : 'was cancelled'}${why}`;
  return { ok: false, error: { code: `child_${status}`, message, retryable: false }, spent };
}
