/**
 * The address of a view: `#/sessions/ses_1/runs/run_1?action=a1`. Hash routes, so that the page answers for `/` only and
 * never for a path of the API (U1).
 */
import { signal } from '@preact/signals';
import type { ReadonlySignal } from '@preact/signals';

export interface Route {
  /** The decoded segments: `['sessions', 'ses_1']`; empty for the start page. */
  readonly path: readonly string[];
  readonly query: Readonly<Record<string, string>>;
}

/** @returns the start page for what is not a route */
export function parseRoute(hash: string): Route {
  const [path = '', search = ''] = hash.replace(/^#?\/?/, '').split('?', 2);
  return {
    path: path
      .split('/')
      .filter((segment) => segment !== '')
      .map(decoded),
    query: Object.fromEntries(new URLSearchParams(search)),
  };
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

const current = signal<Route>({ path: [], query: {} });

/** The view that is shown. */
export const route: ReadonlySignal<Route> = current;

/** The `href` of a view. Members of `query` that are undefined are left out. Within a shared view, it is one as well. */
export function href(path: readonly string[], query: Readonly<Record<string, string | undefined>> = {}): string {
  const search = new URLSearchParams();
  if (current.peek().query['view'] !== undefined) search.set('view', '1');
  for (const [name, value] of Object.entries(query)) if (value !== undefined) search.set(name, value);
  const text = search.toString();
  return `#/${path.map(encodeURIComponent).join('/')}${text === '' ? '' : `?${text}`}`;
}

/** Shows another view. @param options.replace without an entry in the browser's history, for details of the same view */
export function go(to: string, { replace = false }: { readonly replace?: boolean } = {}): void {
  if (replace) history.replaceState(null, '', to);
  else history.pushState(null, '', to);
  current.value = parseRoute(to);
}

/** @returns shows another view, if the path is still the one of now: the reader has not left */
export function fromHere(): (to: string) => void {
  const place = href(current.peek().path);
  return (to) => {
    if (href(current.peek().path) === place) go(to);
  };
}

/** Changes members of the query of this view, without an entry in the browser's history. */
export function setQuery(changes: Readonly<Record<string, string | undefined>>): void {
  const { path, query } = current.peek();
  go(href(path, { ...query, ...changes }), { replace: true });
}

/** Follows the address bar. @param take reads what is not for the address bar (U6) and returns the hash to show */
export function startRouter(take: (hash: string) => string): void {
  const read = (): void => {
    const hash = take(location.hash);
    if (hash !== location.hash) history.replaceState(null, '', hash === '' ? '#/' : hash);
    current.value = parseRoute(hash);
  };
  addEventListener('hashchange', read);
  addEventListener('popstate', read);
  read();
}
