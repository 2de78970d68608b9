/** The shell: navigation, the view of the address, and what concerns the whole page. */
import { useEffect } from 'preact/hooks';
import { Fault } from '../parts/fault.tsx';
import { later } from '../parts/later.ts';
import { Loading } from '../parts/loaded.tsx';
import { focusMain, keepFocus } from '../parts/main-focus.ts';
import { Page } from '../parts/page.tsx';
import { SessionPage } from '../session/session-page.tsx';
import { StartPage } from '../session/start-page.tsx';
import { access, askForKey, connectionFault, isRefused, keyRequest, signOut } from './access.ts';
import { KeyDialog } from './key-dialog.tsx';
import { href, route } from './router.ts';
import type { Route } from './router.ts';

const PLACES: readonly (readonly [path: string, title: string])[] = [
  ['', 'Chat'],
  ['sessions', 'Sessions'],
  ['approvals', 'Approvals'],
  ['agents', 'Agents'],
  ['workflows', 'Workflows'],
  ['manifests', 'Manifests'],
  ['playground', 'Playground'],
  ['system', 'System'],
];

export function App() {
  const { id, mode } = access.value;
  const at = route.value;
  const title = titleOf(at);
  const request = keyRequest.value;
  useEffect(() => {
    document.title = `${title} · Cortex Edge`;
    // On a phone, the places scroll.
    document.querySelector('.nav [aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'center' });
    keepFocus();
  }, [title, id, request === null]);
  return (
    <>
      <div class="shell">
        <a class="button skip" href="#main" onClick={skip}>
          Skip to content
        </a>
        {mode === 'view' ? <ViewHead /> : <Nav place={at.path[0] ?? ''} />}
        <div class="content">
          {connectionFault.value !== null && (
            <p class="banner" role="status">
              The connection is lost; trying again. {connectionFault.value}
            </p>
          )}
          {request !== null && mode === 'view' && (
            <p class="banner" role="alert">
              {request}
            </p>
          )}
          <View key={id} at={at} />
        </div>
      </div>
      {request !== null && mode !== 'view' && <KeyDialog reason={request} />}
    </>
  );
}

function titleOf({ path: [place = '', name] }: Route): string {
  const title = PLACES.find(([path]) => path === place)?.[1] ?? 'Not found';
  return name === undefined ? title : `${name} · ${title}`;
}

/** A link to an element would be a route. */
function skip(event: Event): void {
  event.preventDefault();
  focusMain();
}

function Nav({ place }: { readonly place: string }) {
  return (
    <nav class="nav" aria-label="Places">
      <a class="brand" href={href([])} aria-label="Cortex Edge: start">
        <img src="/icon.svg" alt="" />
        <span>Cortex Edge</span>
      </a>
      <ul>
        {PLACES.map(([path, title]) => (
          <li key={path}>
            <a href={href(path === '' ? [] : [path])} aria-current={path === place ? 'page' : undefined}>
              {title}
            </a>
          </li>
        ))}
      </ul>
      <p class="foot row">
        {isRefused.value && (
          <button type="button" class="small" onClick={askForKey}>
            Sign in
          </button>
        )}
        {access.value.mode === 'key' && (
          <button type="button" class="small" onClick={signOut}>
            Forget the key
          </button>
        )}
      </p>
    </nav>
  );
}

function ViewHead() {
  return (
    <header class="nav">
      <span class="brand">
        <img src="/icon.svg" alt="" />
        <span>Cortex Edge</span>
      </span>
      <p class="foot quiet">
        A shared view: you can look, but not change anything. <a href="#/">Open the console</a>
      </p>
    </header>
  );
}

const otherPages = later(async () => await import('../pages/index.ts'));

function View({ at: { path, query } }: { readonly at: Route }) {
  const [place, name, ...rest] = path;
  if (place === undefined) return <StartPage />;
  if (place !== 'sessions' || name === undefined) return <OtherPage path={path} />;
  return <SessionPage key={name} id={name} runId={rest[0] === 'runs' ? (rest[1] ?? null) : null} query={query} />;
}

function OtherPage({ path }: { readonly path: Route['path'] }) {
  useEffect(otherPages.load, []);
  const pages = otherPages.code.value;
  const fault = otherPages.fault.value;
  // The page that is loading is another element.
  useEffect(keepFocus, [pages === null]);
  if (pages === null) {
    return (
      <Page title={titleOf({ path, query: {} })}>
        {fault === null ? <Loading /> : <Fault fault={fault} retry={otherPages.load} />}
      </Page>
    );
  }
  const [place, name, version] = path;
  switch (place) {
    case 'sessions':
      return <pages.SessionsPage />;
    case 'approvals':
      return <pages.ApprovalsPage />;
    case 'agents':
      return name === undefined ? <pages.AgentsPage /> : <pages.AgentPage key={name} name={name} />;
    case 'workflows':
      return <pages.WorkflowsPage name={name ?? null} />;
    case 'manifests':
      return name === undefined || version === undefined ? (
        <pages.ManifestsPage />
      ) : (
        <pages.ManifestPage key={`${name}/${version}`} kind={name} name={version} />
      );
    case 'playground':
      return <pages.PlaygroundPage />;
    case 'system':
      return <pages.SystemPage />;
    default:
      return (
        <Page title="There is nothing at this address">
          <p>
            <a href={href([])}>To the start page</a>
          </p>
        </Page>
      );
  }
}
