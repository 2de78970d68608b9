/** One model call outside the conversation, for `type="llm"` actions and summaries. */
import { EngineError } from '../../domain/errors.ts';
import type { ChatMessage, Usage } from '../../domain/ports/model.ts';
import type { ActionContext } from '../../executors/executor.ts';
import type { RunContext } from '../run/run-context.ts';

type PlainRequest = Parameters<ActionContext['callModel']>[0] & {
  /** Default: the endpoint's. */
  readonly maxTokens?: number;
  /** Called if the answer ended because it reached a limit. */
  readonly onCut?: () => void;
  /** The `traceparent` of the call; default: it is not traced. */
  readonly trace?: string;
};

/** @returns the whole text; @throws EngineError `model_*` */
export async function callModel(
  context: Pick<RunContext, 'model'>,
  request: PlainRequest,
  signal: AbortSignal,
  record: (usage: Usage) => void,
): Promise<string> {
  const messages: ChatMessage[] = [{ role: 'user', content: request.prompt }, ...(request.further ?? [])];
  if (request.system !== null) messages.unshift({ role: 'system', content: request.system });
  let text = '';
  let notice = '';
  const stream = context.model.stream({
    messages,
    model: request.model,
    temperature: null,
    maxTokens: request.maxTokens ?? null,
    extra: {},
    agent: null,
    ...(request.trace === undefined ? {} : { trace: request.trace }),
    signal,
  });
  for await (const delta of stream) {
    if (delta.type === 'text') {
      text += delta.text;
      request.onText(delta.text);
    } else if (delta.type === 'notice' && delta.code === 'unknown_finish_reason') {
      notice = `: ${delta.message}`;
    } else if (delta.type === 'usage') {
      record(delta.usage);
    } else if (delta.type === 'finish' && delta.reason === 'length') {
      request.onCut?.();
    } else if (delta.type === 'finish' && delta.reason === 'content_filter') {
      throw new EngineError('model_rejected', "The model's answer was stopped by the endpoint's content filter");
    } else if (delta.type === 'finish' && (delta.reason === 'error' || delta.reason === 'abort')) {
      throw new EngineError('model_unavailable', `The model's answer ended early (${delta.reason})${notice}`);
    }
  }
  return text;
}
