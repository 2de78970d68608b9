/** The URL of a model endpoint, and the comparison with the deployment's own. */
import { EngineError } from '../../domain/errors.ts';
import { limits } from '../../domain/limits.ts';

/**
 * The origin of a base URL, the only destination of the key (L7).
 *
 * @throws EngineError `model_rejected` if it is not an HTTP(S) URL
 */
export function originOf(baseUrl: string): string {
  const base = URL.canParse(baseUrl) ? new URL(baseUrl) : null;
  if (base === null || !/^https?:$/.test(base.protocol)) {
    throw new EngineError('model_rejected', `the model endpoint "${shownAddress(baseUrl)}" is not an HTTP(S) URL`);
  }
  return base.origin;
}

/** An address in messages, also an invalid one: cut, and without a user and password. */
export function shownAddress(written: string): string {
  return written.replace(/^.*@/s, '…@').slice(0, limits.excerptChars);
}

/**
 * Whether a manifest's URL is the deployment's own endpoint, so that its key may be sent there: the same scheme, host, port
 * and normalised base path, ignoring trailing slashes. A URL with a user, a query or a fragment is never the same, because
 * appending a route to it would request another path.
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
