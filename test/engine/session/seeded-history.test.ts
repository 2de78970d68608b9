/** A session that begins with a history: context for the model, and nothing else (C1). */
import { expect, test } from 'vitest';
import { limits } from '../../../src/domain/limits.ts';
import type { SeededMessage } from '../../../src/domain/seeded.ts';
import { withStatements } from '../../journal/journal-kit.ts';
import { openNodeSql } from '../../support/node-sql.ts';
import type { NodeSql } from '../../support/node-sql.ts';
import { say, sessionKit, textOf, variablesOf } from '../../support/session-kit.ts';
import type { SessionKit } from '../../support/session-kit.ts';

const answer = '<response final="true">ok</response>';
const TALK: readonly SeededMessage[] = [
  { role: 'user', content: 'How warm is Oslo?' },
  {
    role: 'assistant',
    content: null,
    tool_calls: [{ id: 'oslo', type: 'function', function: { name: 'echo', arguments: '{"city":"Oslo"}' } }],
  },
  { role: 'tool', tool_call_id: 'oslo', content: '3' },
  { role: 'assistant', content: 'Three degrees.' },
];

/** The last request without its system prompt. */
function shown(kit: SessionKit): string {
  return (kit.requests.at(-1)?.messages ?? [])
    .slice(1)
    .map(({ role, content }) => `${role}: ${content}`)
    .join('\n');
}

/** Where each of the texts is; all are there, in this order. */
function expectInOrder(text: string, ...parts: readonly string[]): void {
  const places = parts.map((part) => text.indexOf(part));
  expect(places.every((place) => place >= 0)).toBe(true);
  expect(places).toEqual(places.toSorted((a, b) => a - b));
}

/** Turns of two messages. */
const turns = (count: number, chars = 0): SeededMessage[] =>
  Array.from({ length: count }, (_, at): SeededMessage[] => [
    { role: 'user', content: `question ${at}. ${'x'.repeat(chars)}` },
    { role: 'assistant', content: `answer ${at}.` },
  ]).flat();

test('[C1] nothing in it is executed: no run, no event, no execution', async () => {
  const kit = await sessionKit({ history: TALK });
  await kit.settled();
  expect([kit.session.runCount, kit.session.lastSeq, kit.events, kit.requests]).toEqual([0, 0, [], []]);
  expect([kit.session.seededCount, kit.session.status, await variablesOf(kit.session)]).toEqual([4, 'idle', {}]);
});

test('[C1] the model sees it before the runs, also after an eviction', async () => {
  const sql = openNodeSql();
  const kit = await sessionKit({ history: TALK, script: [answer, answer], sql });
  await say(kit, 'And Rome?');
  const seen = ['user: How warm is Oslo?', '<action type="tool" id="oslo"', '<results>', 'Three degrees.', 'And Rome?'];
  expectInOrder(shown(kit), ...seen);
  const next = await sessionKit({ sql, script: [answer] });
  await say(next, 'And Paris?');
  expectInOrder(shown(next), ...seen, 'And Paris?');
});

test('[C1] no name refers to its results', async () => {
  const kit = await sessionKit({ history: TALK, script: ['<response final="true">It was $oslo.</response>', answer] });
  const { responses } = await say(kit, 'again');
  expect(responses[0]?.content).toBe('It was $oslo.');
});

test('[C1] the latest of 1,000 turns are in the prompt, at a bounded cost', async () => {
  const sql = openNodeSql();
  await sessionKit({ history: turns(1_000), sql });
  let statements = 0;
  const counted: NodeSql = { ...sql, ...withStatements(sql, () => (statements += 1)) };
  const kit = await sessionKit({ sql: counted, script: [answer], agent: (agent) => ({ ...agent, memory: KEEP_ALL }) });
  await say(kit, 'now');
  expect(statements).toBeLessThan(limits.historyTurns * 2 + 200);
  const [first = ''] = /question \d+/.exec(shown(kit)) ?? [];
  expect(first).toBe(`question ${1_000 - limits.historyTurns}`);
  expectInOrder(shown(kit), 'question 998.', 'answer 998.', 'question 999.', 'answer 999.', 'user: now');
});

const KEEP_ALL = { maxTurns: null, summarizeAfter: null };

test('[C1] [L5] runs take their room first: turns, and bytes', async () => {
  const script = Array.from({ length: 5 }, () => answer);
  const agent: NonNullable<Parameters<typeof sessionKit>[0]>['agent'] = (found) => ({ ...found, memory: KEEP_ALL });
  const many = await sessionKit({ history: turns(limits.historyTurns), script, agent });
  await say(many, 'one');
  await say(many, 'two');
  await say(many, 'now');
  expect(/question \d+/.exec(shown(many))?.[0]).toBe('question 2');
  const large = await sessionKit({ history: turns(4, 900_000), script, agent });
  await say(large, 'first');
  expect(/question \d+/.exec(shown(large))?.[0]).toBe('question 2');
  await say(large, `second ${'x'.repeat(1_000_000)}`);
  await say(large, 'now');
  expect(/question \d+/.exec(shown(large))?.[0]).toBe('question 3');
  await say(large, `third ${'x'.repeat(1_000_000)}`);
  await say(large, 'now');
  expect(shown(large)).not.toContain('question');
});

test('[C1] a long result is read up to its limit', async () => {
  const [user, call] = TALK;
  if (user === undefined || call === undefined) throw new Error('no talk');
  const result: SeededMessage = { role: 'tool', tool_call_id: 'oslo', content: 'y'.repeat(3_000_000) };
  const kit = await sessionKit({ history: [user, call, result], script: [answer] });
  await say(kit, 'now');
  expect(shown(kit)).toContain('How warm is Oslo?');
  expect(shown(kit)).toMatch(/\[cut after \d+ of \d+ characters\]/);
});

test('[C1] it is context of training examples, and is not trained', async () => {
  const kit = await sessionKit({ history: TALK, script: [answer] });
  await say(kit, 'go');
  const lines = (await textOf(kit.session.transcript())).trim().split('\n');
  expect(lines).toHaveLength(1);
  const { messages } = JSON.parse(lines[0] ?? '') as { messages: { role: string; content: string; weight?: 0 }[] };
  expect(messages.map(({ role, weight }) => [role, weight])).toEqual([
    ['system', undefined],
    ['user', undefined],
    ['assistant', 0],
    ['user', undefined],
    ['assistant', 0],
    ['user', undefined],
    ['assistant', undefined],
  ]);
  expect(messages.slice(0, -1).map(({ content }) => content)).toEqual(
    kit.requests[0]?.messages.map(({ content }) => content),
  );
});
