import { expect, test } from 'vitest';
import { say, sessionKit } from '../../support/session-kit.ts';

test('[M8] with a memory of two turns the model is told less, and an old value is still there by its name', async () => {
  const kit = await sessionKit({
    agent: (agent) => ({ ...agent, memory: { maxTurns: 2, summarizeAfter: 2 } }),
    script: [
      '<action type="tool" id="a">{"name":"echo","parameters":{"n":7},"output_key":"treasure"}</action><response final="true">kept $a.n</response>',
      ...['two', 'three', 'four', 'five'].map((word) => `<response final="true">${word}</response>`),
      '<response final="true">it was $treasure.n</response>',
    ],
  });
  for (const words of ['keep seven', 'b', 'c', 'd', 'e']) await say(kit, words);
  expect(await say(kit, 'what was it?')).toMatchObject({ status: 'completed', response: 'it was 7' });
  const { messages } = kit.requests.at(-1) ?? { messages: [] };
  expect(messages.filter(({ role }) => role === 'assistant').map(({ content }) => content)).toEqual([
    '<response final="true">four</response>',
    '<response final="true">five</response>',
  ]);
  const first = messages[1]?.content ?? '';
  expect(first).toContain('3 earlier turns of this conversation are shortened here.');
  expect(first).toContain('- User: keep seven\n  You: kept $a.n');
  expect(first).toContain('$treasure');
});
