/**
 * Descriptions of routes, declared with each route: `app.get('/runs', describe({ summary: '…' }), handler)` (H4).
 *
 * A description defines the route's operation in the OpenAPI document, and its query parameters. It adds one call to a
 * request; schemas are converted when the document is requested.
 */
import type { Context, MiddlewareHandler } from 'hono';
import { uniqueSymbol } from 'hono-openapi';
import { matchedRoutes } from 'hono/route';
import { EngineError } from '../../domain/errors.ts';
import type { RequestHeader } from '../headers.ts';
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
  const description = descriptionFor(c);
  if (description !== undefined) readQuery(description.query ?? noQuery, c.req.url);
  await next();
};

/** The description of the requested route; undefined for routes that only the Worker calls. */
function descriptionFor(c: Context): RouteDescription | undefined {
  for (const route of matchedRoutes(c)) {
    const description = descriptionOf(route);
    if (description !== undefined) return description;
  }
  return undefined;
}

/**
 * A request header; null without one. The only access of routes to headers, so that each of them is documented.
 *
 * @throws EngineError `invalid_request`; Error if the route does not declare the header
 */
export function readHeader(c: Context, header: RequestHeader): string | null {
  const declared = descriptionFor(c)?.headers ?? [];
  if (!declared.includes(header)) throw new Error(`${c.req.method} ${c.req.path} does not declare ${header.name}`);
  const value = c.req.header(header.name) ?? null;
  if (value === null || header.pattern?.test(value) !== false) return value;
  throw new EngineError('invalid_request', `"${header.name}" must be ${header.expected ?? 'valid'}`);
}

/**
 * Whether the client asks for this media type of the response.
 *
 * @throws Error if the route does not declare it
 */
export function accepts(c: Context, type: 'application/json' | 'text/plain' | 'application/yaml'): boolean {
  const description = descriptionFor(c);
  const isDeclared = type === 'application/json' ? description?.response !== undefined : description?.text === type;
  if (description !== undefined && !isDeclared) throw new Error(`${c.req.path} does not declare ${type}`);
  // The names of YAML types differ, such as `text/yaml`.
  return (c.req.header('accept') ?? '').includes(type === 'application/yaml' ? 'yaml' : type);
}
