import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { isWithinReach, namedSecret, ownersClash, readSecret, secretOwner } from '../../src/domain/secrets.ts';

describe('[X3] the owner in the name of a secret', () => {
  test.each([
    ['ann', 'ANN'],
    ['Team-2.eu', 'TEAM_2_EU'],
    ['müller', 'M_LLER'],
    ['a😀b', 'A_B'],
    ['ı', '_'],
  ])('the key name %s is written %s', (name, owner) => {
    expect(secretOwner(name)).toBe(owner);
  });

  test.each([[['ann', 'Ann']], [['a', 'a--b']], [['a', 'a__']], [['x', 'a..b', 'a']]])('%j are ambiguous', (names) => {
    expect(ownersClash(names)).not.toBeNull();
  });

  test.each([[['ann', 'bob']], [['ann', 'ann']], [['ann', 'annb']], [['a', 'a_b']], [['a', '_a']], [[]]])(
    '%j are not ambiguous',
    (names) => {
      expect(ownersClash(names)).toBeNull();
    },
  );

  test('no variable belongs to two unambiguous names', () => {
    const name = fc.string({ unit: fc.constantFrom('a', 'B', '_', '-', '1'), minLength: 1, maxLength: 6 });
    const rest = fc.string({ unit: fc.constantFrom('A', 'B', '_', '1'), minLength: 1, maxLength: 8 });
    fc.assert(
      fc.property(name, name, rest, rest, (one, other, x, y) => {
        fc.pre(one !== other && ownersClash([one, other]) === null);
        expect(`TOOL_${secretOwner(one)}__${x}`).not.toBe(`TOOL_${secretOwner(other)}__${y}`);
      }),
    );
  });
});

const ENV: Readonly<Record<string, string>> = {
  TOOL_KEY: 'operator',
  TOOL_A__B: 'plain',
  TOOL_ANN__KEY: 'ann',
  TOOL_BOB__KEY: 'bob',
  TOOL_BOB__ONLY: 'bob only',
  LLM_API_KEY: 'never',
};

function value(name: string, owner: string | null, owners: readonly string[], bundled = false): string | null {
  const read = readSecret(name, { owner, owners, bundled }, (variable) => ENV[variable] ?? null);
  return read.ok ? read.value : null;
}

describe('[X3] resolution of a secret’s name in a manifest', () => {
  test.each([
    // one owner: its own secret first, then the general one
    ['TOOL_KEY', null, [], 'operator'],
    ['TOOL_A__B', null, [], 'plain'],
    ['TOOL_KEY', 'ann', ['ann'], 'ann'],
    ['TOOL_KEY', 'zoe', ['zoe'], 'operator'],
    ['TOOL_A__B', 'ann', ['ann'], 'plain'],
    ['TOOL_ANN__KEY', 'ann', ['ann'], 'ann'],
    // several owners: only their own secrets
    ['TOOL_KEY', 'ann', ['ann', 'bob'], 'ann'],
    ['TOOL_ANN__KEY', 'ann', ['ann', 'bob'], 'ann'],
    ['TOOL_KEY', 'zoe', ['zoe', 'bob'], null],
    ['TOOL_A__B', 'ann', ['ann', 'bob'], null],
    ['TOOL_BOB__KEY', 'ann', ['ann', 'bob'], null],
    // a removed key, and a caller without a key
    ['TOOL_KEY', 'ann', ['bob'], null],
    ['TOOL_KEY', 'ann', [], null],
    ['TOOL_KEY', 'Ann', ['ann', 'bob'], null],
    ['TOOL_KEY', null, ['ann', 'bob'], null],
    ['LLM_API_KEY', null, [], null],
  ] as const)('%s for %s among %j', (name, owner, owners, expected) => {
    expect(value(name, owner, owners)).toBe(expected);
  });

  test.each([
    ['TOOL_KEY', 'ann', 'ann'],
    ['TOOL_A__B', 'ann', 'plain'],
    ['TOOL_BOB__KEY', 'bob', 'bob'],
    ['TOOL_BOB__KEY', 'ann', null],
  ])('in the operator’s manifest, %s resolves for %s', (name, owner, expected) => {
    expect(value(name, owner, ['ann', 'bob', 'zoe'], true)).toBe(expected);
  });

  test('a refusal says what to set, without names of other keys', () => {
    const owners = ['ann', 'bob'];
    const reason = (name: string): string => {
      const read = readSecret(name, { owner: 'ann', owners, bundled: false }, () => null);
      return read.ok ? '' : read.reason;
    };
    expect(reason('TOOL_CRM')).toBe("TOOL_CRM is not set (set TOOL_ANN__CRM in the Worker's environment)");
    expect(reason('TOOL_BOB__KEY').replaceAll('BOB', 'NIX')).toBe(reason('TOOL_NIX__KEY'));
    expect(namedSecret('TOOL_NIX__KEY', { owner: 'ann', owners, bundled: false }).ok).toBe(false);
  });

  test('the secrets that a session can show exclude the secrets of other keys', () => {
    const reach = (owner: string | null, owners: readonly string[]): string[] =>
      Object.keys(ENV).filter((variable) => isWithinReach(variable, { owner, owners }));
    expect(reach('ann', ['ann', 'bob'])).toEqual(['TOOL_KEY', 'TOOL_A__B', 'TOOL_ANN__KEY']);
    expect(reach('bob', ['ann', 'bob'])).toEqual(['TOOL_KEY', 'TOOL_A__B', 'TOOL_BOB__KEY', 'TOOL_BOB__ONLY']);
    expect(reach(null, [])).toHaveLength(5);
  });
});
