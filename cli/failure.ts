/** What a command has thrown, as an exit code and a message for people. */
import { messageOf } from '../src/domain/errors.ts';
import { CortexError } from '../src/client/error.ts';
import { EXIT, UsageError } from './command.ts';
import type { CommandCall, ExitCode } from './command.ts';
import { connectionOf, keyAdvice, noSystem, Refusal, Unreachable } from './terminal/connection.ts';
import { visible } from './terminal/visible.ts';

interface CommandFailure {
  /** Stable, for `--json`: a code of the system, or `usage`, `unreachable`, `unauthorized`, `failed`. */
  readonly code: string;
  /** One line, except for advice that a command has added. */
  readonly message: string;
  readonly exit: ExitCode;
}

/** @param call null before the command has begun */
export function failureOf(fault: unknown, call: CommandCall | null): CommandFailure {
  if (fault instanceof UsageError) return { code: 'usage', message: fault.message, exit: EXIT.usage };
  if (fault instanceof Unreachable) return { code: fault.code, message: fault.message, exit: EXIT.unreachable };
  if (fault instanceof Refusal) return { code: fault.code, message: fault.message, exit: EXIT.failed };
  if (fault instanceof CortexError) return ofClient(fault, call);
  return { code: 'failed', message: messageOf(fault), exit: EXIT.failed };
}

function ofClient(fault: CortexError, call: CommandCall | null): CommandFailure {
  const { code, status } = fault;
  const message = `${code}: ${visible(fault.message)}`;
  if (call === null || (code !== 'connection_lost' && status !== 401)) return { code, message, exit: EXIT.failed };
  const connection = connectionOf({ ...call, tell: () => undefined });
  const told = status === 401 ? keyAdvice(connection) : noSystem(connection);
  return { code: told.code, message: told.message, exit: EXIT.unreachable };
}
