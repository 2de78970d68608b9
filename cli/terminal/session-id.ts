import { UsageError } from '../command.ts';
import { visible } from './visible.ts';

/** @throws UsageError for what is no id of a session */
export function sessionId(text: string): string {
  if (isSessionId(text)) return text;
  throw new UsageError(`"${visible(text.slice(0, 100))}" is not the id of a session (ses_ and 32 hexadecimal digits)`);
}

export function isSessionId(text: string): boolean {
  return /^ses_[0-9a-f]{32}$/.test(text);
}
