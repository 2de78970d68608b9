import { describe, expect, test } from 'vitest';
import { readChunk } from '../../../src/llm/providers/chunk.ts';
import { readFinish } from '../../../src/llm/providers/finish-reasons.ts';

describe('[N1] the finish reasons', () => {
  const KNOWN = {
    stop: ['stop', 'end_turn', 'stop_sequence', 'eos', 'eos_token', 'end', 'complete', 'completed', 'STOP', ' Stop '],
    tool_calls: ['tool_calls', 'tool_use', 'function_call', 'TOOL_CALLS'],
    length: [
      'length',
      'max_tokens',
      'model_length',
      'max_output_tokens',
      'model_context_window_exceeded',
      'MAX_TOKENS',
    ],
    content_filter: ['content_filter', 'safety', 'sensitive', 'refusal', 'RECITATION', 'PROHIBITED_CONTENT'],
    paused: ['pause_turn'],
  } as const;

  test.each(Object.entries(KNOWN).flatMap(([reason, words]) => words.map((word) => [word, reason] as const)))(
    '%j is %s',
    (word, reason) => expect(readFinish(word)).toEqual({ reason }),
  );

  test.each([undefined, null, '', ' ', 'null', 'none', 'None', 'NULL'])('%j: the answer has not ended', (word) =>
    expect(readFinish(word)).toBeNull(),
  );

  test.each([
    'abort',
    'error',
    'malformed_function_call',
    'insufficient_system_resource',
    'network_error',
    'stopped',
    'constructor',
    '__proto__',
  ])('%j is not known, and counts as failed', (word) =>
    expect(readFinish(word)).toEqual({ reason: 'error', unknown: JSON.stringify(word) }),
  );

  test('an unknown reason is quoted, escaped and cut; any other value than a text is not known', () => {
    expect(readFinish(`a"\n${'x'.repeat(500)}`)).toEqual({
      reason: 'error',
      unknown: `"a\\"\\n${'x'.repeat(77)}"`,
    });
    expect(readFinish({ type: 'stop' })).toEqual({ reason: 'error', unknown: '"{\\"type\\":\\"stop\\"}"' });
    expect(readFinish(7)?.reason).toBe('error');
  });

  test('a chunk has its reason, whether it has the member, and whether it is a chunk at all', () => {
    const choice = (fields: object): unknown => ({ choices: [{ index: 0, delta: {}, ...fields }] });
    expect(readChunk(choice({ finish_reason: 'eos' }))).toMatchObject({
      finish: { reason: 'stop' },
      isAnnounced: true,
    });
    expect(readChunk(choice({ finish_reason: null }))).toMatchObject({ finish: null, isAnnounced: true });
    expect(readChunk(choice({}))).not.toHaveProperty('isAnnounced');
    for (const chunk of [{ object: 'error', message: 'CUDA out of memory' }, { detail: 'no' }, choice({ error: {} })]) {
      expect(readChunk(chunk)).toMatchObject({ unreadable: true });
    }
    for (const chunk of [{ choices: [] }, { usage: null }, choice({ error: null })]) {
      expect(readChunk(chunk)).not.toHaveProperty('unreadable');
    }
  });
});
