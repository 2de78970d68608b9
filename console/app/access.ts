/**
 * Who this tab calls the API as (U6).
 *
 * Invariants:
 *  1. A key or token is kept in the memory of this page only: never in the address, in storage or in a log. After a
 *     reload it is asked for again.
 *  2. It is sent in the header `Authorization` only.
 *  3. A token that arrives in the fragment of the address is removed from there before anything else happens. Only the
 *     browser's own record of the navigation, which scripts of this page alone can read, keeps the address.
 */
import { signal } from '@preact/signals';
import type { ReadonlySignal } from '@preact/signals';
import { forgetDrafts } from '../parts/drafts.ts';
import { BaseClient, CortexError } from '../../src/client/index.ts';

export interface Access {
  readonly client: BaseClient;
  /** `view`: a shared view of one session, which cannot be changed. */
  readonly mode: 'open' | 'key' | 'view';
  /** Different for each credential. */
  readonly id: number;
}

/** Why the page asks for a key, or for another link; null: it does not ask. */
export const keyRequest = signal<string | null>(null);

/** Whether the server has refused the credentials of this tab, so that there is nothing to see. */
export const isRefused = signal(false);

/** Why the connection to the server is lost; null: it is not. */
export const connectionFault = signal<string | null>(null);

/** How often a stream was lost and is open again. */
export const resumes = signal(0);

let ids = 0;

function accessWith(mode: Access['mode'], token: string | null): Access {
  const client = new BaseClient({
    url: location.origin,
    ...(token === null ? {} : { token }),
    onRetry: ({ message }) => (connectionFault.value = message),
    onResumed: () => (resumes.value += 1),
    fetch: async (url, init) => {
      const response = await fetch(url, init);
      connectionFault.value = null;
      return response;
    },
  });
  ids += 1;
  return { client, mode, id: ids };
}

const current = signal<Access>(accessWith('open', null));

export const access: ReadonlySignal<Access> = current;

/**
 * Tries a key and uses it if the server accepts it.
 *
 * @param isWanted whether the person still waits when the answer arrives
 * @throws CortexError
 */
export async function useKey(key: string, isWanted: () => boolean): Promise<void> {
  const candidate = accessWith('key', key);
  await candidate.client.agents();
  if (isWanted()) use(candidate);
}

/** Forgets the key of this tab, and what was written with it. */
export function signOut(): void {
  forgetDrafts();
  use(accessWith('open', null));
}

function use(access: Access): void {
  current.value = access;
  keyRequest.value = null;
  isRefused.value = false;
}

/** Asks for a key if that is what the error is about. @returns whether it is */
export function isKeyMissing(fault: unknown): boolean {
  if (!(fault instanceof CortexError) || fault.code !== 'unauthorized') return false;
  isRefused.value = true;
  if (current.peek().mode === 'key') keyRequest.value = fault.message;
  else askForKey();
  return true;
}

export function askForKey(): void {
  keyRequest.value =
    current.peek().mode === 'view'
      ? 'This link is not valid, or the page was loaded again. Open the link once more, or ask for a new one.'
      : 'This system needs an API key.';
}

/** Who this tab was before it opened a shared view. */
let own = current.peek();

/**
 * Enters and leaves shared views, and takes their token out of a hash. `view=1` remains there for a reload.
 *
 * @returns the hash without the token
 */
export function takeToken(hash: string): string {
  const at = hash.indexOf('?');
  const query = new URLSearchParams(at < 0 ? '' : hash.slice(at + 1).replaceAll('?', '&'));
  const token = query.get('token');
  const { mode } = current.peek();
  if (token === null && !query.has('view')) {
    if (mode === 'view') use(own);
    return hash;
  }
  if (token === null && mode === 'view') return hash;
  query.delete('token');
  if (token === null && mode === 'key') {
    // An address that was copied from a shared view, in a tab that has a key.
    query.delete('view');
  } else {
    if (mode !== 'view') own = current.peek();
    query.set('view', '1');
    use(accessWith('view', token));
  }
  return `${hash.slice(0, at)}?${query.toString()}`;
}
