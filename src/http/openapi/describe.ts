/**
 * Registers the operations of the table (operations.ts) as routes, with the descriptions of their requests and responses:
 * `operation(app, 'GET /agents', { response }, handler)` (H4, T1).
 *
 * A description defines the route's operation in the OpenAPI document, and its query parameters. It adds one call to a
 * request; schemas are converted when the document is requested.
 */
import type { Context, Env, Handler, Hono, MiddlewareHandler } from 'hono';
import { uniqueSymbol } from 'hono-openapi';
import { matchedRoutes } from 'hono/route';
import { EngineError } from '../../domain/errors.ts';
import type { RequestHeader } from '../headers.ts';
import { OPERATIONS, routedPath, SESSION_PATH } from '../operations.ts';
import type { Operation, OperationName } from '../operations.ts';
import { noQuery, readQuery } from '../query.ts';
import { operationOf } from './document.ts';
import type { RouteDescription } from './document.ts';

/** A description, with the operation's row of the table. */
export interface DescribedOperation extends RouteDescription {
  readonly operation: OperationName;
}

const descriptions = new WeakMap<object, DescribedOperation>();

type PathOf<Name extends OperationName> = Name extends `${string} ${infer Path}` ? Path : never;
type SessionOperation = Extract<OperationName, `${string} ${typeof SESSION_PATH}${string}`>;
/** Relative to the session. */
type InnerPathOf<Name extends SessionOperation> =
  PathOf<Name> extends `${typeof SESSION_PATH}${infer Rest}` ? (Rest extends '' ? '/' : Rest) : never;

/** Registers an operation of the table. There is no other way to register a route for clients. */
export function operation<E extends Env, const Name extends OperationName>(
  app: Hono<E>,
  name: Name,
  description: RouteDescription,
  handler: Handler<E, PathOf<Name>>,
): void {
  const [method = '', path = ''] = name.split(' ');
  app.on(method, routedPath(path), described(name, description), handler as Handler<E>);
}

/** Registers an operation of a session in the router of its object, whose paths are relative to the session. */
export function sessionOperation<E extends Env, const Name extends SessionOperation>(
  app: Hono<E>,
  name: Name,
  description: RouteDescription,
  handler: Handler<E, InnerPathOf<Name>>,
): void {
  const [method = '', path = ''] = name.split(' ');
  app.on(
    method,
    routedPath(path.slice(SESSION_PATH.length)) || '/',
    described(name, description),
    handler as Handler<E>,
  );
}

/** hono-openapi's `describeRoute`, but the operation is created only with the document. */
function described(name: OperationName, description: RouteDescription): MiddlewareHandler {
  let created: ReturnType<typeof operationOf> | null = null;
  const lazy = {
    get spec() {
      return (created ??= operationOf(name, description));
    },
  };
  const middleware: MiddlewareHandler = (_c, next) => next();
  descriptions.set(middleware, { ...description, operation: name });
  return Object.assign(middleware, { [uniqueSymbol]: lazy });
}

/** The description of a route; undefined for handlers and other middleware. */
export function descriptionOf(route: { readonly handler: object }): DescribedOperation | undefined {
  return descriptions.get(route.handler);
}

/** Rejects undeclared query parameters before the handler runs, for every described route of our own protocol. */
export const onlyDeclared: MiddlewareHandler = async (c, next) => {
  const description = descriptionFor(c);
  if (description !== undefined) {
    const { surface }: Operation = OPERATIONS[description.operation];
    readQuery(description.query ?? noQuery, c.req.url, surface === undefined ? 'refused' : 'ignored');
  }
  await next();
};

/** The description of the requested route; undefined for routes that only the Worker calls. */
function descriptionFor(c: Context): DescribedOperation | undefined {
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
