/**
 * Places that tenants share: none may take all of them. The Worker names the tenant of a request (`?tenant=`) where a
 * deployment has several; without a name there is one, and all places are its.
 */
import { z } from 'zod';

import { limits } from './limits.ts';
import { Refusal } from './problem.ts';

const tenantName = z
  .string()
  .max(limits.tenantChars)
  .regex(/^[\u0021-\u007e]+$/);

/** @throws Refusal `invalid_request` */
export function tenantOf(written: string | undefined): string | null {
  if (written === undefined) return null;
  const name = tenantName.safeParse(written);
  if (!name.success) throw new Refusal('invalid_request', 'tenant: up to 200 visible ASCII characters');
  return name.data;
}

/**
 * Whether a tenant that holds `own` of `used` places may have another: its first one while there is any, and further
 * ones as long as as many are free as it holds. So each leaves half of what it found, whoever came before.
 */
export function mayTake(tenant: string | null, { own, used, most }: Record<'own' | 'used' | 'most', number>): boolean {
  if (used >= most) return false;
  return tenant === null || own === 0 || own < most - used;
}
