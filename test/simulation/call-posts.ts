/** What a client posts about a call that it has seen, as the script of the action says (history.ts). */
import type { CallResult } from '../../src/engine/session/session-calls.ts';
import { scriptOf } from './script.ts';
import type { MessageScript } from './history.ts';

export interface CallPost {
  /** After the call was seen. */
  readonly afterMs: number;
  readonly result: CallResult;
  /** The client has mistaken the id of its call. */
  readonly isMistaken: boolean;
}

export interface CallTimes {
  /** A call without a result expires after this time. */
  readonly expiryMs: number;
  /** The client whose answers are lost posts its result again after these times. */
  readonly againMs: readonly number[];
}

export function postsOf(
  messages: readonly MessageScript[],
  token: string,
  { expiryMs, againMs }: CallTimes,
): CallPost[] {
  const { ms, end } = scriptOf(messages, token)?.attempts[0] ?? { ms: 0, end: 'ok' };
  const output: CallResult = { output: { token, value: `value of ${token}` } };
  const error: CallResult = { error: { message: `the client ${end}` } };
  const post = (afterMs: number, result: CallResult, isMistaken = false): CallPost => ({ afterMs, result, isMistaken });
  switch (end) {
    case 'silent':
      return [];
    case 'ok':
      return [post(ms, output)];
    case 'unreached':
      return [post(ms + expiryMs + 10, output)];
    case 'lost':
      return againMs.map((laterMs) => post(ms + laterMs, output));
    case 'deaf':
      return [post(ms, output), post(ms, { output: 'another one' }), post(ms + 50, error)];
    case 'refuses':
      return [post(ms, output, true), post(ms, error)];
    default:
      return [post(ms, error)];
  }
}

/** The id of another call: the number of the action is at the end. */
export function mistaken(call: string): string {
  return `${call.slice(0, -1)}${call.endsWith('A') ? 'Q' : 'A'}`;
}
