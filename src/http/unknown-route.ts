/** The answer to a request without a route: 405 if the path has one for another method, else 404 (H4). */
import type { Hono } from 'hono';
import { EngineError } from '../domain/errors.ts';
import { limits } from '../domain/limits.ts';
import { problemResponse } from './problem.ts';

const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const;
/** Matches only middleware, which is registered for all methods. */
const NO_METHOD = 'NONE';

/** @param respond the response for an error, in the form of the protocol that the path belongs to */
export function unknownRoute(
  { router }: Pick<Hono, 'router'>,
  request: Request,
  respond: (fault: EngineError) => Response = problemResponse,
): Response {
  const { pathname } = new URL(request.url);
  const count = (method: string): number => router.match(method, pathname)[0].length;
  const allowed = METHODS.filter((method) => count(method) > count(NO_METHOD));
  const route = `${request.method} ${pathname.slice(0, limits.excerptChars * 2)}`;
  if (allowed.length === 0) {
    return respond(new EngineError('not_found', `No route ${route} (see /openapi.json)`));
  }
  const methods = allowed.join(', ');
  const response = respond(new EngineError('method_not_allowed', `No route ${route} (allowed: ${methods})`));
  response.headers.set('allow', methods);
  return response;
}
