import { describe, expect, test } from 'vitest';
import { DeclaredIds } from '../../../../src/protocol/parser/action/declared-ids.ts';

describe('[P6] ids of a generation', () => {
  test('an identical declaration is a duplicate, any other one is a conflict', () => {
    const ids = new DeclaredIds();
    expect(ids.declare('a', 'text')).toBe('new');
    expect(ids.declare('a', 'text')).toBe('same');
    expect(ids.declare('a', 'test')).toBe('other');
    expect(ids.declare('b', 'text')).toBe('new');
    expect(ids.has('a') && !ids.has('c')).toBe(true);
  });
  test('long declarations, of which only a hash is kept, are compared correctly', () => {
    const ids = new DeclaredIds();
    const long = '漢字 '.repeat(20_000);
    expect(ids.declare('long', long)).toBe('new');
    expect(ids.declare('long', long)).toBe('same');
    for (const at of [0, 1, 2, 3, 4_000, 30_001, long.length - 1]) {
      expect(ids.declare('long', `${long.slice(0, at)}!${long.slice(at + 1)}`), String(at)).toBe('other');
    }
    expect(ids.declare('long', `${long}\0`)).toBe('other');
    expect(ids.declare('long', long.slice(0, -1))).toBe('other');
  });
  test('many declarations are compared correctly, with or without time for the hash', () => {
    for (const settled of [true, false]) {
      const ids = new DeclaredIds();
      for (let id = 0; id < 200; id += 1) {
        expect(ids.declare(`a${id}`, `${id} ${'漢'.repeat(id)}`)).toBe('new');
        if (settled) ids.settle();
      }
      for (let id = 0; id < 200; id += 1) {
        expect(ids.declare(`a${id}`, `${id} ${'漢'.repeat(id)}`)).toBe('same');
        expect(ids.declare(`a${id}`, `${id}!${'漢'.repeat(id)}`)).toBe('other');
      }
    }
  });
});
