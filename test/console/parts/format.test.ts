import * as limits from '../../../console/parts/limits.ts';
import { limits as server } from '../../../src/domain/limits.ts';
import { describe, expect, test } from 'vitest';
import { safeFileName } from '../../../console/parts/download.ts';
import { bytes, cost, cut, duration, plural, relative } from '../../../console/parts/format.ts';

describe('values as people read them', () => {
  test.each([
    [0, '0 ms'],
    [1_000, '1.00 s'],
    [60_000, '1 min'],
    [125_000, '2 min 5 s'],
    [3_600_000, '1 h 0 min'],
    [200_000_000, '2 days'],
  ])('a duration of %i ms is %s', (ms, text) => expect(duration(ms)).toBe(text));

  test.each([
    [999, '999 B'],
    [12_400, '12.4 KB'],
    [8_388_608, '8.4 MB'],
  ])('%i bytes are %s', (size, text) => expect(bytes(size)).toBe(text));

  test.each([
    [0, '$0'],
    [0.00123, '$0.0012'],
    [1.5, '$1.50'],
  ])('%d dollars are %s', (dollars, text) => expect(cost(dollars)).toBe(text));

  test('one and several', () => {
    expect([plural(1, 'action'), plural(2_000, 'action')]).toEqual(['1 action', '2,000 actions']);
  });

  test('a moment is relative to now', () => {
    expect([relative(1_000, 1_500), relative(0, 7_200_000)]).toEqual(['now', '2h ago']);
  });

  test('a cut text keeps whole characters', () => {
    expect(cut('ab😀', 3)).toBe('ab\u{fffd}…');
    expect(cut('ab', 2)).toBe('ab');
  });
});

test.each([
  ['report.csv', 'report.csv'],
  ['../../etc/passwd', '__.._etc_passwd'],
  ['a/b\\c:d*e?f"g<h>i|j', 'a_b_c_d_e_f_g_h_i_j'],
  ['gpj.\u202Eexe', 'gpj._exe'],
  ['', 'file'],
])('[U6] the file name %j is saved as %j', (name, safe) => expect(safeFileName(name)).toBe(safe));

test('[C2] a file name is never longer than the server allows', () => {
  expect(limits.fileNameChars).toBe(server.fileNameChars);
  expect(safeFileName(`${'x'.repeat(300)}.txt`)).toMatch(/^x{96}\.txt$/);
});
