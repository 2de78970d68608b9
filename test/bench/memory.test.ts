/** The parts of the benchmark of memory measure what its tables say. */
import { describe, expect, test } from 'vitest';
import { conversationOf } from '../../bench/memory/conversation.ts';
import { measure } from '../../bench/memory/measure.ts';
import { estimateTokens } from '../../src/domain/tokens.ts';

describe('[C10] the benchmark of memory', () => {
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
