/** The client of AG-UI, unchanged, with what its subscribers are told. */
import { HttpAgent } from '@ag-ui/client';
import type { AgentSubscriber, HttpAgentConfig, RunAgentParameters } from '@ag-ui/client';
import type { BaseEvent, Interrupt, Message, RunAgentInput } from '@ag-ui/core';

export interface AgUiChat {
  readonly agent: HttpAgent;
  readonly seen: BaseEvent[];
  /** Runs the agent, and says how that has ended. */
  run(parameters?: RunAgentParameters): Promise<string>;
  say(content: string, runId?: string): Promise<string>;
}

/** @param answer to a request of the client; default: the network's */
export function agUiChat(
  config: HttpAgentConfig,
  answer?: (input: RunAgentInput, init: RequestInit) => Promise<Response>,
): AgUiChat {
  const fetch = async (_url: string, init: RequestInit): Promise<Response> =>
    (await answer?.(JSON.parse(String(init.body)) as RunAgentInput, init)) ?? Response.error();
  const agent = new HttpAgent({ ...config, ...(answer === undefined ? {} : { fetch }) });
  const seen: BaseEvent[] = [];
  let end = 'nothing';
  const subscriber: AgentSubscriber = {
    onEvent: ({ event }) => void seen.push(event),
    onRunErrorEvent: ({ event }) => void (end = `error ${event.code}: ${event.message}`),
    onRunFinishedEvent: (params) => {
      const pending = params.outcome === 'success' ? params.pendingToolCallIds : [];
      end = [params.outcome, ...(pending.length === 0 ? [] : ['pending'])].join(' ');
    },
    onRunFailed: ({ error }) => void (end = `failed ${error.message}`),
  };
  const run = async (parameters: RunAgentParameters = {}): Promise<string> => {
    end = 'nothing';
    await agent.runAgent(parameters, subscriber).catch((fault: unknown) => {
      if (!end.startsWith('failed')) throw fault;
    });
    return end;
  };
  return {
    agent,
    seen,
    run,
    say: async (content, runId) => {
      agent.addMessage({ id: `user ${agent.messages.length}`, role: 'user', content });
      return await run(runId === undefined ? {} : { runId });
    },
  };
}

/** Answers to all open interrupts. */
export function answersTo(interrupts: readonly Interrupt[], payload: unknown): RunAgentParameters['resume'] {
  return interrupts.map(({ id }) => ({ interruptId: id, status: 'resolved', payload }));
}

/** What a person sees of the messages, in order. */
export function shownIn(messages: readonly Message[]): string[] {
  return messages.flatMap((message) => {
    if (message.role === 'assistant' && message.toolCalls !== undefined) {
      return message.toolCalls.map(({ function: { name, arguments: given } }) => `call ${name} ${given}`);
    }
    return `${message.role} ${typeof message.content === 'string' ? message.content : JSON.stringify(message.content)}`;
  });
}
