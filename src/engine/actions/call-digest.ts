/** Names the call that an approval is about (J8). */
import { sha256 } from '@noble/hashes/sha2.js';
import { bytesToHex, utf8ToBytes } from '@noble/hashes/utils.js';
import type { Json } from '../../domain/json.ts';

export interface CallDigest {
  /** Of the UTF-8 text of `JSON.stringify({ parameters, inputs })`, in hexadecimal. */
  readonly sha256: string;
  /** Size of the same text. */
  readonly bytes: number;
}

export function callDigest(parameters: Json | undefined, inputs: Json | undefined): CallDigest {
  const bytes = utf8ToBytes(JSON.stringify({ parameters, inputs }));
  return { sha256: bytesToHex(sha256(bytes)), bytes: bytes.length };
}
