/**
 * The single object with the secret that a deployment uses to check session ids. Created at the first request and kept.
 * It is not a setting, because changing it would make all sessions unreachable.
 */
import { bytesToHex } from '@noble/hashes/utils.js';
import { DurableObject } from 'cloudflare:workers';
import type { Identity } from '../../policies/session-ids.ts';
import type { Env, IdentityRpc } from '../env.ts';

const KEY = 'identity';

export class IdentityObject extends DurableObject<Env> implements IdentityRpc {
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
    // The schedule of the bundled manifests is written by the first request, in every version.
    const served = await this.env.SCHEDULES.getByName('bundled').isKept();
    const secret = bytesToHex(crypto.getRandomValues(new Uint8Array(32)));
    const made: Identity = { secret, checked: !served };
    this.ctx.storage.kv.put(KEY, made);
    await this.ctx.storage.sync();
    return made;
  }
}
