/**
 * Shares capacity fairly among tenants. The Worker names the tenant of a request (`?tenant=`) if a deployment has
 * several. Without a name there is only one tenant, which may use everything.
 */
import { z } from 'zod';

import { limits } from './limits.ts';
import { RunnerError } from './problem.ts';

const tenantName = z
  .string()
  .max(limits.tenantChars)
  .regex(/^[\u0021-\u007e]+$/);

/** @throws RunnerError `invalid_request` */
export function tenantOf(written: string | undefined): string | null {
  if (written === undefined) return null;
  const name = tenantName.safeParse(written);
  if (!name.success) throw new RunnerError('invalid_request', 'tenant: must be up to 200 printable ASCII characters');
  return name.data;
}

/**
 * Whether a tenant that uses `own` of `used` places may take another one. The first one is allowed if any is free;
 * further ones only if more places are free than the tenant uses. A single tenant can take half of the capacity.
 */
export function hasCapacity(
  tenant: string | null,
  { own, used, most }: Record<'own' | 'used' | 'most', number>,
): boolean {
  if (used >= most) return false;
  return tenant === null || own === 0 || own < most - used;
}
