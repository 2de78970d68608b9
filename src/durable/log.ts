/** The platform's log: one JSON line per entry, without the secrets of the environment (X3). */
import type { Logger } from '../domain/ports.ts';
import { lazyRedactor } from '../engine/session/redact.ts';
import { secretsOf } from '../settings/secrets.ts';
import type { Env } from './env.ts';

export function loggerOf(env: Env): Logger {
  const redact = lazyRedactor(() => secretsOf(env));
  return (level, message, fields = {}) => {
    console.error(redact(JSON.stringify({ level, message, ...fields }))); // oxlint-disable-line no-console -- the platform's log
  };
}
