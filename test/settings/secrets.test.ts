import { describe, expect, test } from 'vitest';
import { refusedSecret, secretFor, secretsOf } from '../../src/settings/secrets.ts';
import type { Variables } from '../../src/settings/settings.ts';

const SECRETS = { TOOL_CRM: 'operator-crm', TOOL_SHOP__CRM: 'shop-crm', TOOL_EVE__CRM: 'eve-crm' } as const;
const two: Variables = { API_KEYS: 'ops:admin:key-of-ops@shop,app:run:key-of-app@shop,eve:run:key-of-eve', ...SECRETS };
const one = {
  API_KEYS: 'ops:admin:key-of-ops@shop,app:run:key-of-app@shop',
  TOOL_CRM: 'operator-crm',
} as Variables;

function valueOf(env: Variables, owner: string | null, name: string): string | null {
  const read = secretFor(env, owner, false)(name);
  return read.ok ? read.value : null;
}

describe('[T4] [X3] secrets belong to namespaces', () => {
  test('whatever the names of its keys', () => {
    expect(valueOf(two, 'shop', 'TOOL_CRM')).toBe('shop-crm');
    expect(valueOf(two, 'eve', 'TOOL_CRM')).toBe('eve-crm');
    expect([valueOf(two, 'ops', 'TOOL_CRM'), valueOf(two, null, 'TOOL_CRM')]).toEqual([null, null]);
    expect(valueOf({ ...two, TOOL_OPS__CRM: 'ops-crm' } as Variables, 'shop', 'TOOL_OPS__CRM')).toBeNull();
  });

  test('the only namespace also uses the secrets of the operator, with several keys too', () => {
    expect(valueOf(one, 'shop', 'TOOL_CRM')).toBe('operator-crm');
    expect(refusedSecret(one, 'shop', 'TOOL_CRM')).toBeNull();
  });

  test('what was made without keys uses those of the namespace that owns it', () => {
    const given = { ...two, OWNER_OF_KEYLESS: 'shop' };
    expect(valueOf(given, null, 'TOOL_CRM')).toBe('shop-crm');
    expect(refusedSecret(given, null, 'TOOL_EVE__CRM')).toContain('is the secret of another namespace');
    expect(refusedSecret(two, null, 'TOOL_CRM')).toContain('requires an API key');
  });

  test.each([
    ['shop', two],
    [null, { ...two, OWNER_OF_KEYLESS: 'shop' }],
  ] as const)('the sessions of owner %s do not show the keys and secrets of their namespace', (owner, env) => {
    const hidden = secretsOf(env, { owner });
    expect(hidden).toEqual(expect.arrayContaining(['key-of-ops', 'key-of-app', 'shop-crm', 'operator-crm']));
    expect(hidden).not.toContain('key-of-eve');
    expect(hidden).not.toContain('eve-crm');
  });
});
