/** Lists the routes of a router that describe themselves, as the OpenAPI document names them. */
import type { RouterRoute } from 'hono/types';
import { descriptionOf } from '../../src/http/openapi/describe.ts';
import type { DescribedOperation } from '../../src/http/openapi/describe.ts';

export { SESSION_PATH } from '../../src/http/operations.ts';

export interface DescribedRoute extends DescribedOperation {
  readonly method: string;
  /** `/agent/{name}/session`. */
  readonly path: string;
}

/** @param prefix prefix of the router's paths */
export function describedRoutes(
  { routes }: { readonly routes: readonly RouterRoute[] },
  prefix = '',
): DescribedRoute[] {
  return routes.flatMap((route) => {
    const description = descriptionOf(route);
    return description === undefined
      ? []
      : [{ method: route.method.toLowerCase(), path: pathOf(route, prefix), ...description }];
  });
}

/** A route's path in OpenAPI notation. */
export function pathOf({ path }: { readonly path: string }, prefix = ''): string {
  return (prefix !== '' && path === '/' ? prefix : `${prefix}${path}`).replaceAll(/:(\w+)(\{\S+\})?/g, '{$1}');
}
