/** The messages of a request in the form that endpoints accept. */
import type { Attachment, ChatMessage } from '../../domain/ports/model.ts';
import type { NativeCall } from '../native/tool-calls.ts';

/** Chat messages in alternation: adjacent messages of one role are merged. */
export class MessageList {
  readonly list: ChatMessage[];

  constructor(system: string) {
    this.list = [{ role: 'system', content: system }];
  }

  user(content: string, attached: readonly Attachment[] = []): void {
    const last = this.list.at(-1);
    const isJoined = last?.role === 'user';
    const attachments = [...(isJoined ? (last.attachments ?? []) : []), ...attached];
    if (isJoined) this.list.pop();
    this.list.push({
      role: 'user',
      content: isJoined ? `${last.content}\n\n${content}` : content,
      ...(attachments.length === 0 ? {} : { attachments }),
    });
  }

  /** A generation without text and calls adds no message: endpoints reject empty ones. */
  assistant(content: string, calls: readonly NativeCall[]): void {
    if (calls.length > 0) {
      const toolCalls = calls.map(({ actionId: _actionId, ordinal: _ordinal, type: _type, ...shown }) => shown);
      this.list.push({ role: 'assistant', content: content.trim() === '' ? '' : content, toolCalls });
    } else if (content.trim() !== '') this.list.push({ role: 'assistant', content });
  }

  tool({ id }: NativeCall, content: string): void {
    this.list.push({ role: 'tool', content, toolCallId: id });
  }
}
