/** The platform's log: one JSON line per entry, without the secrets of the environment (X3, X5). */
import type { Logger } from '../domain/log.ts';
import { lazyRedactor } from '../engine/session/redact.ts';
import { logEntry } from '../policies/log-entry.ts';
import { LogRepeats } from '../policies/log-repeats.ts';
import { secretsOf } from '../settings/secrets.ts';
import type { Env } from './env.ts';
import { platformClock } from './platform.ts';

/** Shared by all objects of this thread. */
const repeats = new LogRepeats(platformClock.now);

export function loggerOf(env: Env): Logger {
  const redact = lazyRedactor(() => secretsOf(env));
  return (event, fields) => {
    const entry = logEntry(event, fields, redact, repeats);
    if (entry === null) return;
    // oxlint-disable-next-line no-console -- the platform's log
    console[entry.level === 'info' ? 'log' : entry.level](entry.line);
  };
}
