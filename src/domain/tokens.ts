import { limits } from './limits.ts';
import type { ChatMessage } from './ports/model.ts';

const BYTES_PER_TOKEN = 4;

/**
 * A rough number of tokens without a tokenizer: four UTF-8 bytes per token, at least one for any text. Good enough for
 * budgets and marked estimates, not for billing.
 */
export function estimateTokens(text: string): number {
  return tokensOf(textBytes(text));
}

/** The tokens of messages with their attachments, without native calls. */
export function estimateMessages(messages: readonly Pick<ChatMessage, 'content' | 'attachments'>[]): number {
  let tokens = 0;
  for (const { content, attachments = [] } of messages) {
    tokens += estimateTokens(content);
    for (const { kind } of attachments) tokens += kind === 'image' ? limits.imageTokens : limits.fileTokens;
  }
  return tokens;
}

/** The same for a text of which only the size is known. */
export function tokensOf(bytes: number): number {
  return Math.ceil(bytes / BYTES_PER_TOKEN);
}

/** The size of a text of which only the estimated tokens are known. */
export function bytesOfTokens(tokens: number): number {
  return tokens * BYTES_PER_TOKEN;
}

/** UTF-8 bytes. Each half of a surrogate pair counts as two, so the sum does not depend on where a text is cut. */
export function textBytes(text: string): number {
  let bytes = 0;
  for (let index = 0; index < text.length; index += 1) {
    const unit = text.charCodeAt(index);
    bytes += unit < 0x80 ? 1 : unit < 0x800 || (unit >= 0xd800 && unit <= 0xdfff) ? 2 : 3;
  }
  return bytes;
}
