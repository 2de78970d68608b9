import type { MessageContent } from '../../src/domain/content.ts';
import type { RunRecord } from '../../src/domain/session.ts';
import type { MessageRequest } from '../../src/engine/session/session-admission.ts';
import type { SessionKit } from './session-kit.ts';

/** Sends a message, which waits behind an active run, and does not wait for its own. */
export async function send(
  { session }: Pick<SessionKit, 'session'>,
  content: MessageContent,
  more: Partial<MessageRequest> = {},
): Promise<RunRecord> {
  return await session.message({ content, ifBusy: 'queue', tokens: false, idempotencyKey: null, ...more });
}
