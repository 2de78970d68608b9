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
import { Client, CortexError } from '../../src/client/index.ts';

export interface Access {
  readonly client: Client;
  /** `view`: a shared view of one session, which cannot be changed. */
  readonly mode: 'open' | 'key' | 'view';
  /** Different for each credential. */
  readonly id: number;
}

/** Why the page asks for a key; null: it does not ask. */
export const keyRequest = signal<string | null>(null);

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
  current.value = candidate;
  keyRequest.value = null;
}

/** Forgets the key of this tab. */
export function signOut(): void {
  current.value = accessWith('open', null);
}

/** Asks for a key if that is what the error is about. @returns whether it is */
export function isKeyMissing(fault: unknown): boolean {
  if (!(fault instanceof CortexError) || fault.code !== 'unauthorized') return false;
  const { mode } = current.peek();
  keyRequest.value =
    mode === 'open'
      ? 'This system needs an API key.'
      : mode === 'view'
        ? 'This link is no longer valid.'
        : fault.message;
  return true;
}

const TOKEN = /([?&])token=([^&]*)(&|$)/;

/** Takes the token of a shared view out of a hash. @returns the hash without it */
export function takeToken(hash: string): string {
  const found = TOKEN.exec(hash);
  if (found === null) return hash;
  current.value = accessWith('view', decodeURIComponent(found[2] ?? ''));
  keyRequest.value = null;
  const [, before = '', , after = ''] = found;
  return hash.replace(TOKEN, after === '' ? '' : before);
}
