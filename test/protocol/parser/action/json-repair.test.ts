import { expect, test } from 'vitest';
import { limits } from '../../../../src/domain/limits.ts';
import { repairObject } from '../../../../src/protocol/parser/action/json-repair.ts';

test.each(['"', "'", '`', '“', '"a" ', '{"a":"\n', '``` '])('[P8] a body of only %j is not repaired', (piece) => {
  const body = `{"z":${piece.repeat(Math.floor(limits.repairChars / piece.length) - 8)}`;
  expect(repairObject(body)).toBeNull();
});

test('[P8] a long body with a usual number of quotes is repaired', () => {
  const rows = Array.from({ length: 1_500 }, (_, index) => `{"id": ${index}, "name": "row ${index}",}`);
  expect(repairObject(`{"rows": [${rows.join(',')}],}`)).toMatchObject({ rows: { length: 1_500 } });
  expect(repairObject(`{"code": "${'a line\n'.repeat(8_000)}"}`)).toEqual({ code: 'a line\n'.repeat(8_000) });
});
