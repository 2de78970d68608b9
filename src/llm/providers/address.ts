/** The address of a model endpoint, and which ones are the deployment's own. */
import { EngineError } from '../../domain/errors.ts';

/**
 * The origin of a base URL: the only place that the key is sent to (L7).
 *
 * @throws EngineError `model_rejected` where it is not an http or https address
 */
export function originOf(baseUrl: string): string {
  const base = URL.canParse(baseUrl) ? new URL(baseUrl) : null;
  if (base === null || !/^https?:$/.test(base.protocol)) {
    throw new EngineError('model_rejected', `"${baseUrl}" is no http or https address of a model endpoint`);
  }
  return base.origin;
}

/**
 * Whether an address that a manifest names is the deployment's own endpoint, so that its key may go there: same scheme,
 * host and port, and the same base path after `.` and `..` are worked out. Trailing slashes do not count. An address
 * with a user, a query or a fragment is never the same: a client that appends its route to it would ask for another path.
 */
export function isSameEndpoint(own: string, other: string): boolean {
  if (!URL.canParse(own) || !URL.canParse(other) || /[?#]/.test(other)) return false;
  const [mine, theirs] = [new URL(own), new URL(other)];
  if (theirs.username !== '' || theirs.password !== '') return false;
  return mine.origin === theirs.origin && basePathOf(mine) === basePathOf(theirs);
}

function basePathOf({ pathname }: URL): string {
  let end = pathname.length;
  while (end > 0 && pathname[end - 1] === '/') end -= 1;
  return pathname.slice(0, end);
}
