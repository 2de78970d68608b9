/**
 * Descriptions beside the routes: `app.get('/runs', describe({ summary: '…' }), handler)` (H4).
 *
 * From a description are made the route's operation in the OpenAPI document, and the check of its query parameters. To a
 * request it adds one call; schemas are converted when the document is asked for.
 */
import type { MiddlewareHandler } from 'hono';
import { uniqueSymbol } from 'hono-openapi';
import { matchedRoutes } from 'hono/route';
import { noQuery, readQuery } from '../query.ts';
import { operationOf } from './document.ts';
import type { RouteDescription } from './document.ts';

const descriptions = new WeakMap<object, RouteDescription>();

/** hono-openapi's `describeRoute`, with an operation that is made only when the document is. */
export function describe(description: RouteDescription): MiddlewareHandler {
  let made: ReturnType<typeof operationOf> | null = null;
  const operation = {
    get spec() {
      return (made ??= operationOf(description));
    },
  };
  const described: MiddlewareHandler = (_c, next) => next();
  descriptions.set(described, description);
  return Object.assign(described, { [uniqueSymbol]: operation });
}

/** The description that stands at a place of a router; undefined for handlers and other middleware. */
export function descriptionOf(route: { readonly handler: object }): RouteDescription | undefined {
  return descriptions.get(route.handler);
}

/** Refuses query parameters that the route did not declare, before its handler runs: no described route can forget to. */
export const onlyDeclared: MiddlewareHandler = async (c, next) => {
  for (const route of matchedRoutes(c)) {
    const description = descriptionOf(route);
    if (description === undefined) continue;
    readQuery(description.query ?? noQuery, c.req.url);
    break;
  }
  await next();
};
