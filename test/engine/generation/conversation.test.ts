/** The share of earlier turns in the prompt of the next message (L5). */
import { expect, test } from 'vitest';
import { limits } from '../../../src/domain/limits.ts';
import { say, sessionKit } from '../../support/session-kit.ts';

const answer = '<response final="true">ok</response>';

function prompt(kit: Awaited<ReturnType<typeof sessionKit>>): string {
  return (kit.requests.at(-1)?.messages ?? [])
    .slice(1)
    .map(({ content }) => content)
    .join('\n');
}

test('[L5] the latest turns within the limit are in the prompt; older ones are omitted', async () => {
  const kit = await sessionKit({ script: Array.from({ length: 6 }, () => answer) });
  for (let turn = 0; turn < 5; turn += 1) await say(kit, `turn ${turn} ${'x'.repeat(600_000)}`);
  await say(kit, 'now');
  const shown = prompt(kit);
  expect(shown.length).toBeLessThan(limits.historyBytes + 100_000);
  expect([0, 1, 2, 3, 4].filter((turn) => shown.includes(`turn ${turn} `))).toEqual([2, 3, 4]);
});

test('[L5] a turn that does not fit is omitted together with all earlier ones', async () => {
  const kit = await sessionKit({ script: Array.from({ length: 5 }, () => answer) });
  await say(kit, 'first');
  for (let turn = 0; turn < 3; turn += 1) await say(kit, `turn ${turn} ${'x'.repeat(1_000_000)}`);
  await say(kit, 'now');
  expect(prompt(kit)).not.toContain('first');
});

test.each([
  ['text', { text: `${'a"\\\n'.repeat(60_000)}` }, '$a.text'],
  ['an object', { list: Array.from({ length: 20_000 }, (_, at) => ({ at })) }, '$a'],
])('[L5] the model sees the beginning of a large result of an earlier turn, %s', async (_kind, value, reference) => {
  const declared = JSON.stringify({ name: 'echo', parameters: value, output_key: 'a' });
  const kit = await sessionKit({
    script: [`<action type="tool" id="a">${declared}</action>${answer}`, answer, answer],
  });
  await say(kit, 'one');
  await say(kit, 'two');
  const shown = prompt(kit);
  expect(shown).toContain('<action_result id="a" name="echo" status="completed" ms=');
  expect(shown).toMatch(new RegExp(`characters; the whole value is in \\${reference.split('.')[0] ?? ''}`));
  expect(shown.length).toBeLessThan(JSON.stringify(value).length * 3);
});
