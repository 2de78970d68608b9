/** Digests are computed by other threads, in real time. Here they are computed at once, so that seeds repeat. */
import { createHash } from 'node:crypto';

crypto.subtle.digest = (async (_algorithm: unknown, data: Uint8Array): Promise<ArrayBuffer> => {
  const digest = new Uint8Array(createHash('sha256').update(new Uint8Array(data)).digest());
  return digest.buffer;
}) as typeof crypto.subtle.digest;
