/** The parts of the benchmark of memory measure what its tables say. */
import { describe, expect, test } from 'vitest';
import { conversationOf, factSentence } from '../../bench/memory/conversation.ts';
import { measure } from '../../bench/memory/measure.ts';
import { summaryFor } from '../../bench/memory/summariser.ts';
import { estimateTokens } from '../../src/domain/tokens.ts';

describe('[C10] the benchmark of memory', () => {
  test('the conversation says each fact last in its turn, and is always the same', () => {
    const { messages, facts } = conversationOf(60);
    expect(conversationOf(60).messages).toEqual(messages);
    expect(facts.length).toBeGreaterThan(10);
    for (const { name, value, turn } of facts) {
      const said = messages.map((message) =>
        [false, true].some((isNew) => message.includes(factSentence(name, value, isNew))),
      );
      expect(said.lastIndexOf(true)).toBe(turn - 1);
      const later = messages.slice(turn).some((message) => message.includes(`the ${name} is`));
      expect(later).toBe(false);
    }
    expect(facts.some(({ name, value }) => !messages.join('\n').includes(factSentence(name, value, false)))).toBe(true);
  });

  test('the scripted summariser knows only its request, prefers the newest values, and stays within the budget', () => {
    const request = [
      'Write at most 40 tokens.',
      'The record so far:',
      '    code 1: V1X1 (turn_1)',
      '    code 2: V2X2 (turn_2)',
      'turn_7:',
      `    ${factSentence('code 1', 'V7X7', true)}`,
    ].join('\n');
    expect(summaryFor(request, estimateTokens)).toBe('code 2: V2X2 (turn_2)\ncode 1: V7X7 (turn_7)');
    expect(summaryFor(request.replace('40', '8'), estimateTokens)).toBe('code 1: V7X7 (turn_7)');
    expect(summaryFor('at most 100 tokens', estimateTokens)).toBe('Nothing to keep.');
  });

  test('a summary keeps facts that leaving out loses, for fewer tokens than everything, and all stay readable', async () => {
    const conversation = conversationOf(30);
    const count = estimateTokens;
    const all = await measure(conversation, { maxTurns: null, summarizeAfter: null }, count);
    const few = await measure(conversation, { maxTurns: 6, summarizeAfter: null }, count);
    const summary = { by: 'model', tokens: 800, template: null } as const;
    const told = await measure(conversation, { maxTurns: null, summarizeAfter: 6, summary }, count);
    expect([all.shown, told.shown]).toEqual([1, 1]);
    expect(few.shown).toBeLessThan(0.5);
    expect([all.reachable, few.reachable, told.reachable]).toEqual([1, 1, 1]);
    expect(told.lastTokens).toBeLessThan(all.lastTokens);
    expect([all.summaries, few.summaries]).toEqual([0, 0]);
    expect(told.summaries).toBeGreaterThan(3);
  });
});
