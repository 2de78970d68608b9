/**
 * The one object of a deployment that holds what its session ids are checked with. Made at the first request and kept;
 * it is no setting, because another one would make every session unreachable.
 */
import { bytesToHex } from '@noble/hashes/utils.js';
import { DurableObject } from 'cloudflare:workers';
import type { Env } from '../settings.ts';

export interface Identity {
  /** Hex. */
  readonly secret: string;
  /** False where sessions may exist from before ids carried a check: then any id may be one. */
  readonly checked: boolean;
}

const KEY = 'identity';

export class IdentityObject extends DurableObject<Env> {
  #made: Promise<Identity> | null = null;

  identity(): Promise<Identity> {
    this.#made ??= this.#make().catch((fault: unknown) => {
      this.#made = null;
      throw fault;
    });
    return this.#made;
  }

  async #make(): Promise<Identity> {
    const known = this.ctx.storage.kv.get<Identity>(KEY);
    if (known !== undefined) return known;
    // The schedule of the bundled manifests is written by the first request that any version has served.
    const served = await this.env.SCHEDULES.getByName('bundled').isKept();
    const secret = bytesToHex(crypto.getRandomValues(new Uint8Array(32)));
    const made: Identity = { secret, checked: !served };
    this.ctx.storage.kv.put(KEY, made);
    await this.ctx.storage.sync();
    return made;
  }
}

let known: Identity | null = null;

/**
 * Asked for once in the life of an isolate: it never changes. The answer is kept and not its promise, which would never
 * settle where the request that asked first is cancelled.
 */
export async function identityOf(env: Env): Promise<Identity> {
  known ??= await env.IDENTITY.getByName('deployment').identity();
  return known;
}
