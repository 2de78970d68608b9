/** Time, randomness and ids from the platform: their only source. */
import { bytesToHex } from '@noble/hashes/utils.js';
import type { Clock, NewId } from '../domain/ports/clock.ts';
import { FairQueue } from '../domain/fair-queue.ts';
import { LargeBodies } from '../http/large-bodies.ts';

export const platformClock: Clock = {
  now: () => Date.now(),
  schedule(delayMs, callback) {
    const timer = setTimeout(callback, Math.max(0, delayMs));
    return () => clearTimeout(timer);
  },
};

/** Shared by all objects of a thread. */
export const platformQueue = new FairQueue(platformClock);

/** Shared by all objects of an isolate. */
export const platformBodies = new LargeBodies(platformClock);

/**
 * 48 random bits in hex. A derived session id can be used again after its deletion: the incarnation tells the sessions
 * apart, so that a late answer or an old token of one never counts for another. Not a secret. Among a million sessions
 * under one id, two are equal with a probability of 1 in 560; 32 bits would be used up after 77,000.
 */
export function newIncarnation(): string {
  return bytesToHex(crypto.getRandomValues(new Uint8Array(6)));
}

/** `ses_` and 128 random bits in hex. */
export const newId: NewId = (prefix) => {
  return `${prefix}_${bytesToHex(crypto.getRandomValues(new Uint8Array(16)))}`;
};
