/**
 * Descriptions of routes, declared with each route: `app.get('/runs', describe({ summary: '…' }), handler)` (H4).
 *
 * A description defines the route's operation in the OpenAPI document, and its query parameters. It adds one call to a
 * request; schemas are converted when the document is requested.
 */
import type { MiddlewareHandler } from 'hono';
import { uniqueSymbol } from 'hono-openapi';
import { matchedRoutes } from 'hono/route';
import { noQuery, readQuery } from '../query.ts';
import { operationOf } from './document.ts';
import type { RouteDescription } from './document.ts';

const descriptions = new WeakMap<object, RouteDescription>();

/** hono-openapi's `describeRoute`, but the operation is created only with the document. */
export function describe(description: RouteDescription): MiddlewareHandler {
  let operation: ReturnType<typeof operationOf> | null = null;
  const lazy = {
    get spec() {
      return (operation ??= operationOf(description));
    },
  };
  const described: MiddlewareHandler = (_c, next) => next();
  descriptions.set(described, description);
  return Object.assign(described, { [uniqueSymbol]: lazy });
}

/** The description of a route; undefined for handlers and other middleware. */
export function descriptionOf(route: { readonly handler: object }): RouteDescription | undefined {
  return descriptions.get(route.handler);
}

/** Rejects undeclared query parameters before the handler runs, for every described route. */
export const onlyDeclared: MiddlewareHandler = async (c, next) => {
  for (const route of matchedRoutes(c)) {
    const description = descriptionOf(route);
    if (description === undefined) continue;
    readQuery(description.query ?? noQuery, c.req.url);
    break;
  }
  await next();
};
