/** Checks responses of the routers against what the OpenAPI document declares. */
import { ROUTES } from '../../src/http/openapi.ts';
import { problem } from '../../src/http/responses.ts';
import { schemaIssue } from './event-check.ts';

/** Where a session's own router is in the document. */
export const SESSION_PATH = '/agent/session/{id}';

interface Router {
  readonly fetch: (request: Request) => Response | Promise<Response>;
}

/**
 * The router's `fetch`, which throws if the body of a JSON response is not what its route declares.
 *
 * @param prefix of the router's paths in the document
 */
export function checkedFetch(router: Router, prefix = ''): (request: Request) => Promise<Response> {
  return async (request) => {
    const response = await router.fetch(request);
    const type = response.headers.get('content-type') ?? '';
    if (!/^application\/(problem\+)?json\b/.test(type)) return response;
    const text = await response.text();
    const issue = responseIssue(request, prefix, response.status, type, text);
    if (issue !== null) throw new Error(`${request.method} ${request.url} answered ${response.status}: ${issue}`);
    return new Response(text, { status: response.status, headers: response.headers });
  };
}

function responseIssue(request: Request, prefix: string, status: number, type: string, text: string): string | null {
  const body = JSON.parse(text) as unknown;
  if (type.startsWith('application/problem+json')) return schemaIssue(problem, body, 'problem');
  const { pathname } = new URL(request.url);
  // Below `/-/` the Worker alone asks, and passes the answer on.
  if (pathname.startsWith('/-/')) return null;
  const path = `${prefix}${prefix !== '' && pathname === '/' ? '' : pathname}`;
  const route = ROUTES.find((one) => one.method === request.method.toLowerCase() && patternOf(one.path).test(path));
  // The artifact itself, not a document about it.
  if (route?.answer === 'file') return null;
  if (route === undefined) return 'the document has no such route';
  const statuses = [route.status ?? 200, ...(route.further ?? [])];
  if (!statuses.includes(status)) return `the document declares ${statuses.join(', ')}`;
  return route.response === undefined ? 'the document declares no JSON' : schemaIssue(route.response, body, path);
}

function patternOf(path: string): RegExp {
  return new RegExp(`^${path.replaceAll(/\{\w+\}/g, '[^/]+')}$`);
}
