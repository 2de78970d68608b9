/**
 * Who this tab calls the API as (U6).
 *
 * Invariants:
 *  1. A key or token is kept in the memory of this page only: never in the address, in storage or in a log. After a
 *     reload it is asked for again.
 *  2. It is sent in the header `Authorization` only.
 *  3. A token that arrives in the fragment of the address is removed from there before anything else happens.
 */
import { signal } from '@preact/signals';
import type { ReadonlySignal } from '@preact/signals';
import { forgetDrafts } from '../parts/drafts.ts';
import { Client, CortexError } from '../../src/client/index.ts';

export interface Access {
  readonly client: Client;
  /** `view`: a shared view of one session, which cannot be changed. */
  readonly mode: 'open' | 'key' | 'view';
  /** Different for each credential. */
  readonly id: number;
}

/** Why the page asks for a key, or for another link; null: it does not ask. */
export const keyRequest = signal<string | null>(null);

/** Whether the server has refused what this tab is, so that there is nothing to see. */
export const isRefused = signal(false);

/** Why the connection to the server is lost; null: it is not. */
export const connectionFault = signal<string | null>(null);

let ids = 0;

function accessWith(mode: Access['mode'], token: string | null): Access {
  const client = new Client({
    url: location.origin,
    ...(token === null ? {} : { token }),
    onRetry: ({ message }) => (connectionFault.value = message),
    onResumed: () => (connectionFault.value = null),
  });
  ids += 1;
  return { client, mode, id: ids };
}

const current = signal<Access>(accessWith('open', null));

export const access: ReadonlySignal<Access> = current;

/** Tries a key and uses it if the server accepts it. @throws CortexError */
export async function useKey(key: string): Promise<void> {
  const candidate = accessWith('key', key);
  await candidate.client.agents();
  use(candidate);
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
      ? 'This link has expired, or the page was loaded again. Open the link once more, or ask for a new one.'
      : 'This system needs an API key.';
}

/**
 * Takes the token of a shared view out of a hash. What remains says that it was a shared view, for a reload.
 *
 * @returns the hash without the token
 */
export function takeToken(hash: string): string {
  const [path = '', search] = hash.split('?', 2);
  const query = new URLSearchParams(search);
  const token = query.get('token');
  if (token === null) {
    if (query.has('view') && current.peek().mode === 'open') use(accessWith('view', null));
    return hash;
  }
  use(accessWith('view', token));
  query.delete('token');
  query.set('view', '1');
  return `${path}?${query.toString()}`;
}
