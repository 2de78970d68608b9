/** Answers between objects: error classes do not survive RPC, so an EngineError is sent as a value. */
import { EngineError } from '../domain/errors.ts';
import type { ErrorCode } from '../domain/errors.ts';

export type Reply<T> =
  | { readonly type: 'ok'; readonly value: T }
  | {
      readonly type: 'error';
      readonly code: ErrorCode;
      readonly message: string;
      readonly details: Readonly<Record<string, unknown>>;
    };

/** Runs `work` on the answering side. @throws anything except an EngineError */
export async function replyOf<T>(work: () => T | Promise<T>): Promise<Reply<T>> {
  try {
    return { type: 'ok', value: await work() };
  } catch (fault) {
    if (!(fault instanceof EngineError)) throw fault;
    const { code, message, details } = fault;
    return { type: 'error', code, message, details };
  }
}

/** The value, on the calling side. @throws EngineError the error of the other side */
export function valueOf<T>(reply: Reply<T>): T {
  if (reply.type === 'ok') return reply.value;
  throw new EngineError(reply.code, reply.message, { ...reply.details });
}
