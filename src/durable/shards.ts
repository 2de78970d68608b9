/** Lists that are merged from several objects (C6, H1, J8). */
import { EngineError } from '../domain/errors.ts';
import { limits } from '../domain/limits.ts';
import { within } from '../domain/sleep.ts';
import { platformClock } from './platform.ts';

/**
 * The answers of all objects, or none: without one of them, also a late one, entries would be missing without a sign.
 *
 * @throws EngineError `directory_unavailable` if one does not answer within `limits.directoryTimeoutMs`
 */
export async function allShards<T extends object>(requests: readonly Promise<T>[]): Promise<T[]> {
  const asked = requests.map((request) => within(request, limits.directoryTimeoutMs, platformClock, null));
  const answers = await Promise.allSettled(asked);
  const found = answers.flatMap((answer) =>
    answer.status === 'fulfilled' && answer.value !== null ? [answer.value] : [],
  );
  const missing = answers.length - found.length;
  if (missing === 0) return found;
  throw new EngineError('directory_unavailable', `${missing} of ${answers.length} parts of the list did not answer`);
}
