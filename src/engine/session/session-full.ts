/** The message for a full session (J6), the same for clients and models. */
import type { ActionError } from '../../domain/action.ts';
import { limits } from '../../domain/limits.ts';

/** @param consequence what the session no longer does */
export function sessionFull(consequence: string, mostBytes: number = limits.sessionBytes): string {
  return (
    `This session has reached ${mostBytes} bytes and ${consequence}. ` +
    'It can still be read, exported and deleted; continue in a new session'
  );
}

/** The error for an action that would begin in a full session. Running actions are not affected. */
export function actionInFullSession(): ActionError {
  return { code: 'session_full', message: sessionFull('starts no further action'), retryable: false };
}
