/** What a command has thrown, as an exit code and a message for people. */
import { EngineError, messageOf } from '../src/domain/errors.ts';
import { CortexError } from '../src/client/error.ts';
import { EXIT, UsageError } from './command.ts';
import type { CommandCall, ExitCode } from './command.ts';
import { connectionOf, keyAdvice, noSystem, Refusal, Unreachable } from './terminal/connection.ts';
import { visible } from './terminal/visible.ts';

interface CommandFailure {
  /** Stable, for `--json`: a code of the system, or `usage`, `unreachable`, `unauthorized`, `failed`. */
  readonly code: string;
  /** Of the system, as it was sent; for `--json`. */
  readonly message: string;
  /** For people: one line, except for advice that a command has added. */
  readonly text: string;
  readonly exit: ExitCode;
}

/** @param call null before the command has begun */
export function failureOf(fault: unknown, call: CommandCall | null): CommandFailure {
  if (fault instanceof UsageError) return plain('usage', fault.message, EXIT.usage);
  if (fault instanceof Unreachable) return plain(fault.code, fault.message, EXIT.unreachable);
  if (fault instanceof Refusal && fault.problem !== null) {
    const { code, detail } = fault.problem;
    return { code, message: detail, text: fault.message, exit: EXIT.failed };
  }
  if (fault instanceof CortexError) return ofClient(fault, call);
  if (fault instanceof EngineError) {
    const { code, message } = fault;
    return { code, message, text: `${code}: ${message}`, exit: EXIT.failed };
  }
  return plain('failed', messageOf(fault), EXIT.failed);
}

function ofClient(fault: CortexError, call: CommandCall | null): CommandFailure {
  const { code, status } = fault;
  if (call === null || (code !== 'connection_lost' && status !== 401)) {
    const { message } = fault;
    return { code, message, text: `${code}: ${visible(message)}`, exit: EXIT.failed };
  }
  const connection = connectionOf({ ...call, tell: () => undefined });
  const told = status === 401 ? keyAdvice(connection) : noSystem(connection);
  return plain(told.code, told.message, EXIT.unreachable);
}

function plain(code: string, message: string, exit: ExitCode): CommandFailure {
  return { code, message, text: message, exit };
}
