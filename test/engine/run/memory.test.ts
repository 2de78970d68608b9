/** The content of the summary of older turns, from the journal (M8, L5). */
import { describe, expect, test } from 'vitest';
import { limits } from '../../../src/domain/limits.ts';
import { createParser } from '../../../src/protocol/parser/parser.ts';
import { say, sessionKit } from '../../support/session-kit.ts';
import type { SessionKit } from '../../support/session-kit.ts';
import { EVERY_EVENT } from '../../support/event-sql.ts';

test('[M8] with a memory of two turns the prompt is shorter, and an old value is still available by its name', async () => {
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

/** A session whose first turn is summarised in its third prompt. */
async function summarised(
  script: readonly string[],
  options: Parameters<typeof sessionKit>[0] = {},
): Promise<SessionKit> {
  const kit = await sessionKit({
    agent: (agent) => ({ ...agent, memory: { maxTurns: 1, summarizeAfter: 1 } }),
    script: [...script, ...Array.from({ length: 2 }, () => '<response final="true">later</response>')],
    ...options,
  });
  for (const words of ['q', 'r', 's']) await say(kit, words);
  return kit;
}

function told(kit: SessionKit): string | undefined {
  const first = kit.requests.at(-1)?.messages[1]?.content ?? '';
  return /^- User: q\n {2}You: (.*?)(?:<\/system>|$)/m.exec(first)?.[1];
}

/** The answer in the text of a generation, read by the parser. */
function answerIn(text: string): string {
  const parser = createParser({ json: 'strict', actInReasoning: false });
  let response: string | null = null;
  let bare = '';
  for (const event of [...parser.feed(text), ...parser.end()]) {
    if (event.type === 'response_started') response = '';
    else if (event.type === 'response') response = (response ?? '') + event.delta;
    else if (event.type === 'response_reference') response = (response ?? '') + event.reference.raw;
    else if (event.type === 'text') bare += event.delta;
    else if (event.type === 'text_completed') bare += ' ';
  }
  return (response ?? bare).replace(/\s+/g, ' ').trim();
}

describe('[M8] the summary of an older turn contains the answer of its last generation', () => {
  const echo = (id: string): string => `<action type="tool" id="${id}">{"name":"echo","parameters":{"n":7}}</action>`;
  test.each([
    ['the last response', ['<response final="false">one</response><response final="true">two</response>'], 'two'],
    [
      'a reference as written, for any value',
      [`${echo('a')}<response final="true">It is $a.n, $a</response>`],
      'It is $a.n, $a',
    ],
    [
      'a reference to an unknown name',
      ['<response final="true">$none and ${nothing}</response>'],
      '$none and ${nothing}',
    ],
    ['escaped dollars as readers see them', [`${echo('a')}<response final="true">$$5 and $a.n</response>`], null],
    [
      'the response that is last in the text, although it completed first',
      [`${echo('a')}<response final="true">waits for $a</response><response final="true">does not wait</response>`],
      'does not wait',
    ],
    ['a response that is not closed', ['Hm. <response final="true">half of'], 'half of'],
    ['bare text without thoughts', ['So <thought>hm</thought>it is.'], 'So it is.'],
    [
      'nothing of earlier generations',
      [`<response final="false">early</response>${echo('a')}`, '<response final="true">late</response>'],
      'late',
    ],
    ['quoted tags', ['<response final="true">write &lt;b> or <b>this</b></response>'], 'write &lt;b> or <b>this</b>'],
  ])('%s', async (_, script, said) => {
    const kit = await summarised(script);
    expect(told(kit)).toBe(answerIn(script.at(-1) ?? ''));
    if (said !== null) expect(told(kit)).toBe(said);
  });

  test('the journal stores the unresolved beginning of a response with references, and does not send it', async () => {
    const long = `$a ${'word '.repeat(400)}`;
    const kit = await summarised([`${echo('a')}<response final="true">${long}</response>`]);
    expect(told(kit)).toBe(`${long.slice(0, limits.summaryTurnChars)}…`);
    const event = kit.events.find(({ type }) => type === 'response_completed');
    expect(JSON.stringify(event)).not.toContain('$a');
    const states = kit.sql.exec(`SELECT state FROM ${EVERY_EVENT} WHERE type = 'response_completed' ORDER BY seq`);
    const written = states.map(
      ({ state }) => (JSON.parse(String(state ?? '{}')) as { written?: string }).written?.length,
    );
    expect(written).toEqual([limits.summaryReadChars, undefined, undefined]);
  });
});
