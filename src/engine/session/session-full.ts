/** What is said where a session has no room for more (J6): the same words to clients and to models. */
import type { ActionError } from '../../domain/action.ts';
import { limits } from '../../domain/limits.ts';

/** @param consequence what the session does not do any more */
export function sessionFull(consequence: string): string {
  return (
    `This session has reached ${limits.sessionBytes} bytes and ${consequence}. ` +
    'It can still be read, exported and deleted; go on in a new session'
  );
}

/** What becomes of an action that would begin there. What is at work ends as it would anyway. */
export function actionInFullSession(): ActionError {
  return { code: 'session_full', message: sessionFull('starts no further action'), retryable: false };
}
