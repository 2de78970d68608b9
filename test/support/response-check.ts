/** Compares responses of the routers with the declarations in the OpenAPI document. */
import type { RouterRoute } from 'hono/types';
import { problemHeaders } from '../../src/http/headers.ts';
import { responseHeadersOf } from '../../src/http/openapi/document.ts';
import { problem } from '../../src/http/responses/common.ts';
import { createSessionApp, sessionRoutes } from '../../src/http/session-app.ts';
import type { SessionAppOptions } from '../../src/http/session-env.ts';
import { describedRoutes } from './described-routes.ts';
import type { DescribedRoute } from './described-routes.ts';
import { schemaIssue } from './event-check.ts';
import { VirtualClock } from '../../testing/virtual-clock.ts';
import type { SessionKit } from './session-kit.ts';

type Fetch = (request: Request) => Promise<Response>;

interface Router {
  readonly fetch: (request: Request) => Response | Promise<Response>;
  readonly routes: readonly RouterRoute[];
}

/** The router's `fetch`, which throws if the body of a JSON response does not match the declaration of its route. */
export function checkedFetch(router: Router): Fetch {
  const described = describedRoutes(router);
  return async (request) => {
    const response = await router.fetch(request);
    const undeclared = undeclaredHeaders(described, request, response);
    if (undeclared.length > 0) {
      throw new Error(`${request.method} ${request.url} sent undeclared headers: ${undeclared.join(', ')}`);
    }
    const type = response.headers.get('content-type') ?? '';
    if (request.method === 'HEAD') return response;
    if (!/^application\/(problem\+)?json\b/.test(type)) return response;
    const text = await response.text();
    const issue = responseIssue(described, request, response.status, type, text);
    if (issue !== null) throw new Error(`${request.method} ${request.url} answered ${response.status}: ${issue}`);
    return new Response(text, { status: response.status, headers: response.headers });
  };
}

/** The same for a session's API. */
export function checkedSession(options: SessionAppOptions): Fetch {
  return checkedFetch({ ...createSessionApp(options), routes: sessionRoutes.routes });
}

/** That of a test's session, with a clock of its own. */
export function checkedKit({ session }: Pick<SessionKit, 'session'>): Fetch {
  return checkedSession({ session, clock: new VirtualClock(), destroy: async () => undefined, log: () => undefined });
}

function responseIssue(
  described: readonly DescribedRoute[],
  request: Request,
  status: number,
  type: string,
  text: string,
): string | null {
  // The response is the artifact itself, or a part of it.
  if (status < 400 && routeOf(described, request)?.media === 'file') return null;
  const body = JSON.parse(text) as unknown;
  if (type.startsWith('application/problem+json')) return schemaIssue(problem, body, 'problem');
  const { pathname } = new URL(request.url);
  // Only the Worker calls routes below `/-/`, and forwards the answer.
  if (pathname.startsWith('/-/')) return null;
  const route = routeOf(described, request);
  if (route === undefined) return 'no such route is described';
  const statuses = [route.status ?? 200, ...(route.further ?? [])];
  const failed = route.run === true && status >= 400;
  if (!statuses.includes(status) && !failed) return `the document declares ${statuses.join(', ')}`;
  return route.response === undefined ? 'the document declares no JSON' : schemaIssue(route.response, body, pathname);
}

/** Headers that any response may have. */
const COMMON = /^(content-type|content-length|cache-control|vary|access-control-.+)$/;

/** The headers of a response that its route does not declare. */
function undeclaredHeaders(described: readonly DescribedRoute[], request: Request, response: Response): string[] {
  const route = routeOf(described, request);
  const isProblem = response.headers.get('content-type')?.startsWith('application/problem+json') === true;
  const declared = [...(isProblem || !response.ok ? problemHeaders : []), ...(route ? responseHeadersOf(route) : [])];
  const names = new Set(declared.map(({ name }) => name.toLowerCase()));
  const isInternal = new URL(request.url).pathname.startsWith('/-/');
  return isInternal ? [] : [...response.headers.keys()].filter((name) => !COMMON.test(name) && !names.has(name));
}

function routeOf(described: readonly DescribedRoute[], request: Request): DescribedRoute | undefined {
  const { pathname } = new URL(request.url);
  // Hono answers HEAD like GET.
  const method = request.method === 'HEAD' ? 'get' : request.method.toLowerCase();
  return described.find((one) => one.method === method && patternOf(one.path).test(pathname));
}

function patternOf(path: string): RegExp {
  return new RegExp(`^${path.replace(/\{path\}$/, '.+').replaceAll(/\{\w+\}/g, '[^/]+')}$`);
}
