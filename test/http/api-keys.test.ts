import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { firstOwner, isOwner, namespaceOf, namespacesOf, ownerOf, parseApiKeys } from '../../src/http/api-keys.ts';

describe('[T4] keys and their namespaces', () => {
  test.each([
    ['ann:admin:k1', 'ann', 'k1', 'ann'],
    ['ann:admin:k:1', 'ann', 'k:1', 'ann'],
    ['ann:run:k1@shop', 'ann', 'k1', 'shop'],
    ['ann:run:k:1@shop', 'ann', 'k:1', 'shop'],
    ['ann:run:k@y@ann', 'ann', 'k@y', 'ann'],
    ['ann:run:k@@ann', 'ann', 'k@', 'ann'],
    ['ann@corp.example:run:k1', 'ann@corp.example', 'k1', 'ann@corp.example'],
    ['a/b:run:k@a/b', 'a/b', 'k', 'a/b'],
  ])('%s', (text, name, key, namespace) => {
    expect(parseApiKeys(text)).toMatchObject([{ name, key, namespace, owner: namespace }]);
  });

  test('every key that a request can send can be written with its namespace', () => {
    const visible = fc.string({ unit: fc.integer({ min: 0x21, max: 0x7e }).map((code) => String.fromCharCode(code)) });
    fc.assert(
      fc.property(
        visible.filter((text) => text !== '' && !text.includes(',')),
        (key) => {
          expect(parseApiKeys(`ann:run:${key}@shop`)).toMatchObject([{ name: 'ann', key, namespace: 'shop' }]);
        },
      ),
    );
  });

  test('no keys are an empty list, whatever the spaces', () => {
    expect([parseApiKeys(undefined), parseApiKeys(''), parseApiKeys(' \r\n\t')]).toEqual([[], [], []]);
  });

  test.each([',', ' , ', ',,', '\uFEFF', '\u00A0'])(
    'API_KEYS=%j has no key, and is rejected instead of allowing open access',
    (text) => {
      expect(() => parseApiKeys(text)).toThrow('API_KEYS is set and contains no key');
    },
  );

  test.each(['ann', 'ann:run', 'ann:root:key', 'ann:run:', 'ann:run:@shop', ':run:k1'])(
    'API_KEYS=%s is rejected instead of allowing open access',
    (text) => {
      expect(() => parseApiKeys(text)).toThrow(/entry 1 must be name:role:key or name:role:key@namespace/);
    },
  );

  test.each(['a.b.c', 'key.with.dots', 'a.b.'])('the key %s would be read as a token, so it is rejected', (key) => {
    expect(() => parseApiKeys(`ann:run:${key}`)).toThrow('entry 1: a key must not have the form of a token');
  });

  test.each([
    ['ann:admin:k1@', 'entry 1: the namespace after the last "@" must have 1 to 64 characters'],
    ['ann:admin:k1@a:b', 'without ":" and "@" (a key that contains "@" must end with its namespace'],
    [`ann:admin:k1@${'n'.repeat(65)}`, '1 to 64 characters'],
    ['ann:admin:k1@läden', 'visible ASCII'],
    ['日本:admin:k1', 'visible ASCII'],
    [`${'n'.repeat(65)}:admin:k1`, 'up to 64 characters'],
    ['ann:admin:same,bob:run:same', 'entries 1 and 2 have the same key'],
    ['ann:admin:same,ann:run:same', 'entries 1 and 2 have the same key'],
    ['ann:admin:same@shop,eve:run:k1,bob:run:same@shop', 'entries 1 and 3 have the same key'],
    ['ann:admin:k1@shop,ann:admin:k2', 'entries 1 and 2 have the name "ann" but the namespaces "shop" and "ann"'],
  ])('%s is rejected, and the message shows no key', (text, message) => {
    expect(() => parseApiKeys(text)).toThrow(message);
    expect(() => parseApiKeys(text)).not.toThrow(/k1|k2|same[,@]/);
  });

  test.each([
    ['ann:admin:k1,Ann:run:k2', '"ann" and "Ann"'],
    ['ann:admin:k1@one,bob:run:k2@ONE', '"one" and "ONE"'],
    ['a-b:admin:k1,a.b:run:k2', 'TOOL_A_B__'],
    ['a:admin:k1,a--b:run:k2', 'cannot be distinguished'],
    ['a:admin:k1,a_:run:k2', 'cannot be distinguished'],
  ])('[X3] %s is rejected: its secrets are ambiguous', (text, message) => {
    expect(() => parseApiKeys(text)).toThrow(message);
  });

  test('names whose secrets would be ambiguous can be keys of one namespace', () => {
    expect(namespacesOf(parseApiKeys('ann:admin:k1@shop,Ann:run:k2@shop'))).toEqual(['shop']);
  });

  test('a namespace can have several keys, for example one for each role, with one name or several', () => {
    expect(parseApiKeys('ann:admin:k1,ann:run:k2')).toHaveLength(2);
    const keys = parseApiKeys('shop:admin:k1,backend:run:k2@shop,eve:run:k3');
    expect(namespacesOf(keys)).toEqual(['shop', 'eve']);
    expect(keys.map(({ owner }) => owner)).toEqual(['shop', 'shop', 'eve']);
  });
});

describe('[T4] owners', () => {
  const keys = parseApiKeys('bob:run:k-bob,ann:admin:k-ann@shop,eve:run:k-eve', 'shop');

  test('OWNER_OF_KEYLESS gives one namespace what was made without keys', () => {
    expect(keys.map(({ owner }) => owner)).toEqual(['bob', null, 'eve']);
    expect([ownerOf(keys, 'shop'), ownerOf(keys, 'eve'), ownerOf(keys, 'ann')]).toEqual([null, 'eve', undefined]);
    expect([namespaceOf(keys, null), namespaceOf(keys, 'eve')]).toEqual(['shop', 'eve']);
    expect(firstOwner(keys)).toBeNull();
  });

  test('what this namespace had under its own name is not served any more', () => {
    expect([isOwner(keys, null), isOwner(keys, 'eve'), isOwner(keys, 'shop'), isOwner(keys, 'ann')]).toEqual([
      true,
      true,
      false,
      false,
    ]);
  });

  test('without the setting, what was made without keys belongs to no key, and without keys to this machine', () => {
    const others = parseApiKeys('ann:admin:k1', '');
    expect([isOwner(others, null), isOwner(others, 'ann'), namespaceOf(others, null)]).toEqual([false, true, null]);
    expect([isOwner([], null), isOwner([], 'ann'), ownerOf([], 'ann'), firstOwner([])]).toEqual([
      true,
      false,
      undefined,
      null,
    ]);
  });

  test.each([
    [
      'ann:admin:k1,bob:run:k2@shop',
      'bob',
      'names the namespace "bob", which no entry of API_KEYS belongs to (known: ann, shop)',
    ],
    ['', 'ann', 'OWNER_OF_KEYLESS names the namespace "ann", but API_KEYS is not set'],
  ])('API_KEYS=%s with OWNER_OF_KEYLESS=%s is rejected', (text, keyless, message) => {
    expect(() => parseApiKeys(text, keyless)).toThrow(message);
  });
});
