/** The definitions that a session keeps for its runs (M4, J2). */
import { describe, expect, test } from 'vitest';
import { PinTable } from '../../../src/catalog/store/pin-table.ts';
import { limits } from '../../../src/domain/limits.ts';
import { openNodeSql } from '../../support/node-sql.ts';

const kit = (inUse: readonly string[] = []) => {
  const sql = openNodeSql();
  return {
    open: () => new PinTable(sql, () => inUse),
    stored: () => Number(sql.exec(`SELECT COUNT(DISTINCT id) AS count FROM pinned_manifests`)[0]?.['count']),
  };
};

describe('[J2] [M4] pinned definitions', () => {
  test('of open runs are kept; those that no run uses are deleted', () => {
    const inUse: string[] = [];
    const { open, stored } = kit(inUse);
    const pins = open();
    const first = pins.store({ text: 'first', mcp: '{"a":1}' });
    inUse.push(first);
    for (let message = 0; message < 40; message += 1) {
      const texts = { text: `text ${message >> 1}`, mcp: `{"a":"${(message + 1) >> 1}"}` };
      expect(pins.read(pins.store(texts))).toEqual(texts);
    }
    expect(stored()).toBeLessThanOrEqual(2 * (limits.pinsIssued + 1));
    for (const table of [pins, open()]) expect(table.read(first)).toEqual({ text: 'first', mcp: '{"a":1}' });
    // The run has ended.
    inUse.length = 0;
    pins.store({ text: 'last' });
    for (const table of [pins, open()]) expect(table.read(first)).toBeNull();
  });

  test('of earlier hosts are deleted, too', () => {
    const { open, stored } = kit();
    for (let host = 0; host < 20; host += 1) open().store({ text: `text ${host}` });
    expect(stored()).toBe(1);
  });

  test('are stored again after they were deleted', () => {
    const { open } = kit();
    const pins = open();
    const first = pins.store({ text: 'text 0' });
    for (let version = 1; version <= limits.pinsIssued; version += 1) {
      pins.store({ text: `text ${version}` });
    }
    expect(open().read(first)).toBeNull();
    expect(pins.store({ text: 'text 0' })).toBe(first);
    expect(open().read(first)).toEqual({ text: 'text 0' });
  });

  test('may be longer than a row', () => {
    const { open } = kit();
    const texts = { text: 'ä'.repeat(1_200_000) };
    expect(open().read(open().store(texts))).toEqual(texts);
  });
});
