/** The feeds that sessions of a namespace share: each is a separate object (F6). */
import { bytesToHex } from '@noble/hashes/utils.js';
import type { SharedFeeds } from '../domain/ports/shared-values.ts';
import { objectName } from '../domain/owner.ts';
import type { Env } from './env.ts';

export function sharedFeeds(env: Env): SharedFeeds {
  return {
    async read(request) {
      const { owner, source, tool, relic, maxChars } = request;
      // Everything that the value depends on: another version, parameter or secret is another feed.
      const identity = new TextEncoder().encode(JSON.stringify([source, tool, relic, maxChars]));
      const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', identity));
      return await env.FEEDS.getByName(`${objectName(owner)}/${bytesToHex(digest)}`).read(request);
    },
  };
}
