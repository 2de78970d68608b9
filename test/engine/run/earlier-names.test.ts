/** Names of earlier runs (P12, L5). */
import { expect, test } from 'vitest';
import { limits } from '../../../src/domain/limits.ts';
import { runText, sessionKit } from '../../support/session-kit.ts';

const ACTION = (id: string, parameters: object): string =>
  `<action type="tool" mode="async" id="${id}">${JSON.stringify({ name: 'echo', parameters })}</action>`;

test('[P12] the outcomes of earlier runs that one run may refer to have a bound; what passes it is left out by name', async () => {
  const part = limits.outcomeCacheBytes / 2 - 10_000;
  const kit = await sessionKit({
    executors: { tool: async ({ action }) => ({ ok: true, output: { big: 'x'.repeat(part), id: action.id } }) },
  });
  for (const id of ['a', 'b', 'c']) await runText(kit, ACTION(id, {}));
  const { response } = await runText(kit, '<response final="true">$a.id $b.id $c.id $a.id $nothing</response>');
  expect(response).toBe('a b [c: left_out] a $nothing');
  // Of another run it may be: the bound is that of one.
  expect(await runText(kit, '<response final="true">$c.id</response>')).toMatchObject({ response: 'c' });
});

test('[P12] the names of earlier runs are read once, however many are asked for', async () => {
  const kit = await sessionKit({ executors: { tool: async ({ action }) => ({ ok: true, output: action.id }) } });
  await runText(kit, ACTION('a', {}), ACTION('b', {}));
  const { exec } = kit.sql;
  let scans = 0;
  kit.sql.exec = (text, ...parameters) => {
    if (text.includes('output_key')) scans += 1;
    return exec(text, ...parameters);
  };
  const unknown = Array.from({ length: 3_000 }, (_, at) => `$n${at}`).join(' ');
  const { response } = await runText(kit, `<response final="true">$a $b ${unknown}</response>`);
  expect(response).toBe(`a b ${unknown}`);
  expect(scans).toBe(1);
});
