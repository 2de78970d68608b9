/** The AI SDK's chat without React: its own class with a plain state. */
import { AbstractChat, DefaultChatTransport } from 'ai';
import type { ChatInit, ChatState, ChatStatus, UIMessage } from 'ai';

class PlainState implements ChatState<UIMessage> {
  status: ChatStatus = 'ready';
  error: Error | undefined = undefined;
  messages: UIMessage[] = [];
  pushMessage = (message: UIMessage): void => {
    this.messages = [...this.messages, message];
  };
  popMessage = (): void => {
    this.messages = this.messages.slice(0, -1);
  };
  replaceMessage = (index: number, message: UIMessage): void => {
    this.messages = this.messages.with(index, message);
  };
  snapshot = <T>(value: T): T => structuredClone(value);
}

export class PlainChat extends AbstractChat<UIMessage> {
  constructor({ messages = [], ...init }: ChatInit<UIMessage>) {
    const state = new PlainState();
    state.messages = messages;
    super({ ...init, state });
  }
}

type FetchLike = (url: string | URL | Request, init?: RequestInit) => Promise<Response>;

export function transportOf(fetch: FetchLike, api: string, body: object = {}): DefaultChatTransport<UIMessage> {
  return new DefaultChatTransport({ api, fetch, body });
}

/** The text that a person reads. */
export function textOf(message: UIMessage | undefined): string {
  const texts = message?.parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])) ?? [];
  return texts.join('\n\n');
}
