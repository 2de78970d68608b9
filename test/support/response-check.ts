/** Compares responses of the routers with the declarations in the OpenAPI document. */
import type { RouterRoute } from 'hono/types';
import { problem } from '../../src/http/responses.ts';
import { createSessionApp, sessionRoutes } from '../../src/http/session-app.ts';
import type { SessionAppOptions } from '../../src/http/session-env.ts';
import { describedRoutes } from './described-routes.ts';
import type { DescribedRoute } from './described-routes.ts';
import { schemaIssue } from './event-check.ts';

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
    const type = response.headers.get('content-type') ?? '';
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

function responseIssue(
  described: readonly DescribedRoute[],
  request: Request,
  status: number,
  type: string,
  text: string,
): string | null {
  const body = JSON.parse(text) as unknown;
  if (type.startsWith('application/problem+json')) return schemaIssue(problem, body, 'problem');
  const { pathname } = new URL(request.url);
  // Only the Worker calls routes below `/-/`, and forwards the answer.
  if (pathname.startsWith('/-/')) return null;
  const method = request.method.toLowerCase();
  const route = described.find((one) => one.method === method && patternOf(one.path).test(pathname));
  // The response is the artifact itself, not a JSON document.
  if (route?.media === 'file') return null;
  if (route === undefined) return 'no such route is described';
  const statuses = [route.status ?? 200, ...(route.further ?? [])];
  const failed = route.run === true && status >= 400;
  if (!statuses.includes(status) && !failed) return `the document declares ${statuses.join(', ')}`;
  return route.response === undefined ? 'the document declares no JSON' : schemaIssue(route.response, body, pathname);
}

function patternOf(path: string): RegExp {
  return new RegExp(`^${path.replaceAll(/\{\w+\}/g, '[^/]+')}$`);
}
