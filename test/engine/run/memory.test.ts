/** The content of the summary of older turns, from the journal (M8, L5). */
import { expect, test } from 'vitest';
import { limits } from '../../../src/domain/limits.ts';
import { say, sessionKit } from '../../support/session-kit.ts';
import { EVERY_EVENT } from '../../support/event-sql.ts';

test('[M8] the journal stores the unresolved beginning of a response with references, and does not send it', async () => {
  const long = `$a ${'word '.repeat(400)}`;
  const kit = await sessionKit({
    agent: (agent) => ({ ...agent, memory: { maxTurns: 1, summarizeAfter: 1 } }),
    script: [
      `<action type="tool" id="a">{"name":"echo","parameters":{"n":7}}</action><response final="true">${long}</response>`,
      ...['two', 'three'].map((word) => `<response final="true">${word}</response>`),
    ],
  });
  for (const words of ['q', 'r', 's']) await say(kit, words);
  const shown = kit.requests.at(-1)?.messages[1]?.content;
  expect(shown).toContain(`- User: q\n  You: ${long.slice(0, limits.summaryTurnChars)}…`);
  const event = kit.events.find(({ type }) => type === 'response_completed');
  expect(JSON.stringify(event)).not.toContain('$a');
  const states = kit.sql.exec(`SELECT state FROM ${EVERY_EVENT} WHERE type = 'response_completed' ORDER BY seq`);
  const written = states.map(
    ({ state }) => (JSON.parse(String(state ?? '{}')) as { written?: string }).written?.length,
  );
  expect(written).toEqual([limits.summaryReadChars, undefined, undefined]);
});
