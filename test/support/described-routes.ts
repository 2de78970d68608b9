/** Lists the routes of a router that describe themselves, as the OpenAPI document names them. */
import type { RouterRoute } from 'hono/types';
import { descriptionOf } from '../../src/http/openapi/describe.ts';
import type { RouteDescription } from '../../src/http/openapi/document.ts';

export interface DescribedRoute extends RouteDescription {
  readonly method: string;
  /** `/agent/{name}/session`. */
  readonly path: string;
}

/** The path of a session's own router in the document. */
export const SESSION_PATH = '/agent/session/:id';

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
  return (prefix !== '' && path === '/' ? prefix : `${prefix}${path}`).replaceAll(/:(\w+)/g, '{$1}');
}
