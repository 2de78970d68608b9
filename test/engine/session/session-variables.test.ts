/** Variables of a session over its journal: storage, validation, and the limit of their total size. */
import { describe, expect, test } from 'vitest';
import { limits } from '../../../src/domain/limits.ts';
import { checkVariables, SessionVariables } from '../../../src/engine/session/session-variables.ts';
import { newJournal } from '../../journal/journal-kit.ts';
import { openNodeSql } from '../../support/node-sql.ts';

const kit = () => {
  const sql = openNodeSql();
  const journal = newJournal(sql);
  return { journal, variables: new SessionVariables(journal) };
};
const bulky = (bytes: number): string => 'x'.repeat(bytes - 2);

describe('[M5] variables', () => {
  test('are read as they were set, by the next host too', () => {
    const { journal, variables } = kit();
    variables.set('a', { n: [1] });
    variables.set('b', null);
    variables.set('a', 'new');
    expect([variables.get('a'), variables.get('b'), variables.get('c')]).toEqual(['new', null, undefined]);
    expect(variables.entries()).toEqual([
      ['a', 'new'],
      ['b', null],
    ]);
    const next = new SessionVariables(journal);
    expect(next.snapshot().map(([name, json]) => [name, json()])).toEqual([
      ['a', '"new"'],
      ['b', 'null'],
    ]);
    expect(next.get('a')).toBe('new');
    expect(next.get('a')).toBe('new');
    expect(next.snapshot().map(([, json]) => json())).toEqual(['"new"', 'null']);
    expect([next.delete('a'), next.delete('a'), next.get('a')]).toEqual([true, false, undefined]);
    expect(new SessionVariables(journal).entries()).toEqual([['b', null]]);
  });

  test('have a maximum number: at the limit existing ones can change, and new ones are refused', () => {
    const { variables } = kit();
    for (let n = 0; n < limits.variables; n += 1) variables.set(`v${n}`, n);
    expect(() => variables.set('more', 1)).toThrow(`A session may have at most ${limits.variables} variables`);
    variables.set('v0', 'other');
    variables.delete('v1');
    variables.set('more', 1);
    expect(variables.get('more')).toBe(1);
  });

  test('each have a maximum size, as JSON', () => {
    const { variables } = kit();
    variables.set('a', bulky(limits.variableBytes));
    expect(() => variables.set('k'.repeat(200), bulky(limits.variableBytes + 1))).toThrow(
      `Variable "${'k'.repeat(limits.excerptChars)}" has ${limits.variableBytes + 1} bytes of JSON (allowed: ${limits.variableBytes})`,
    );
  });

  test('have a maximum total size in bytes, including names; a change that does not grow is accepted', () => {
    const { journal, variables } = kit();
    const count = Math.floor(limits.variablesBytes / limits.variableBytes) - 1;
    for (let n = 0; n < count; n += 1) variables.set(`v${n}`, bulky(limits.variableBytes));
    const used = [...journal.variables.all().values()].reduce((sum, { bytes }) => sum + bytes, 0);
    const left = limits.variablesBytes - used;
    variables.set('é', bulky(left - 2));
    expect(() => variables.set('e', 1)).toThrow(
      expect.objectContaining({
        code: 'variables_quota',
        message: `With "e" the variables of this session would have ${limits.variablesBytes + 2} bytes in total (allowed: ${limits.variablesBytes})`,
      }),
    );
    variables.set('é', bulky(left - 2));
    variables.set('é', 1);
    variables.set('e', 1);
    const next = new SessionVariables(journal);
    next.delete('é');
    next.set('f', bulky(left - 3));
    expect(() => next.set('f', bulky(left - 2))).toThrow('in total');
  });

  test('of a new session have the same limits', () => {
    const many = (count: number): Record<string, number> =>
      Object.fromEntries(Array.from({ length: count }, (_, n) => [`v${n}`, n]));
    checkVariables(many(limits.variables));
    expect(() => checkVariables(many(limits.variables + 1))).toThrow(`at most ${limits.variables} variables`);
    expect(() => checkVariables({ a: bulky(limits.variableBytes + 1) })).toThrow('bytes of JSON');
    const count = Math.ceil(limits.variablesBytes / limits.variableBytes);
    const bulk = Object.fromEntries(Array.from({ length: count }, (_, n) => [`v${n}`, bulky(limits.variableBytes)]));
    expect(() => checkVariables(bulk)).toThrow(expect.objectContaining({ code: 'variables_quota' }));
  });
});
