/** Converts an event to an entry of the log: one JSON object on one line, of bounded length (X5). */
import { EngineError, messageOf } from '../domain/errors.ts';
import { limits } from '../domain/limits.ts';
import { LOG_EVENTS } from '../domain/log.ts';
import type { LogEvent, LogFields, LogLevel } from '../domain/log.ts';
import type { LogRepeats } from './log-repeats.ts';

export interface LogEntry {
  readonly level: LogLevel;
  readonly line: string;
}

/**
 * @param redact removes secrets
 * @returns null if an equal event was logged a moment ago
 */
export function logEntry(
  event: LogEvent,
  { fault, ...given }: LogFields,
  redact: (text: string) => string,
  repeats: Pick<LogRepeats, 'admit'>,
): LogEntry | null {
  const row: { readonly level: LogLevel; readonly once?: readonly (keyof LogFields)[] } = LOG_EVENTS[event];
  const { once } = row;
  const fields: LogFields = { ...(fault === undefined ? {} : factsOf(fault)), ...given };
  const count = once === undefined ? 1 : repeats.admit(JSON.stringify([event, ...once.map((name) => fields[name])]));
  if (count === null) return null;
  const stack = fault instanceof Error && !(fault instanceof EngineError) ? fault.stack : undefined;
  const cut = Object.entries(fields).flatMap(([name, value]) =>
    typeof value === 'string' ? [[name, shortened(redact(value), limits.logFieldChars)]] : [],
  );
  const entry = {
    level: row.level,
    event,
    ...(Object.fromEntries(cut) as Record<string, string>),
    ...(count > 1 ? { count } : {}),
    ...(stack === undefined ? {} : { stack: shortened(redact(stack), limits.logStackChars) }),
  };
  return { level: row.level, line: JSON.stringify(entry) };
}

function factsOf(fault: unknown): LogFields {
  const code = fault instanceof EngineError ? { code: fault.code } : {};
  return { message: fault instanceof Error ? messageOf(fault) : String(fault), ...code };
}

function shortened(text: string, chars: number): string {
  return text.length <= chars ? text : `${text.slice(0, chars - 1).toWellFormed()}…`;
}
