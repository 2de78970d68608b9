/** How long a session is kept after its last activity (H1). */
import { EngineError } from '../domain/errors.ts';
import { limits } from '../domain/limits.ts';

const UNIT_MS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/**
 * Reads `SESSION_EXPIRY`: seconds, or a number with `s`, `m`, `h` or `d`; unset or empty means 30 days.
 *
 * @returns milliseconds
 * @throws EngineError `internal`, so that data that should expire soon is not kept for long
 */
export function parseSessionExpiry(text: string | undefined): number {
  const written = text?.trim() ?? '';
  if (written === '') return limits.sessionExpiryMs;
  const [, amount, unit = 's'] = /^(\d+(?:\.\d+)?)\s*([smhd])?$/.exec(written) ?? [];
  const ms = Math.round(Number(amount) * (UNIT_MS[unit] ?? Number.NaN));
  if (ms >= limits.sessionExpiryLeastMs && ms <= limits.sessionExpiryMostMs) return ms;
  throw new EngineError(
    'internal',
    `SESSION_EXPIRY must be a duration such as 12h or 30d, from 1m to 3650d, found "${written.slice(0, 20)}"`,
  );
}
