import { expect, test } from 'vitest';
import type { FinishReason, ModelDelta, Usage } from '../../../src/domain/ports.ts';
import { callModel } from '../../../src/engine/generation/call-model.ts';

const USED: Usage = { promptTokens: 3, completionTokens: 2, cachedTokens: 0, estimated: false, model: 'm' };

async function call(reason: FinishReason): Promise<{ answer: string | null; fault: unknown; used: Usage[] }> {
  const used: Usage[] = [];
  const model = {
    name: 'scripted',
    async *stream(): AsyncGenerator<ModelDelta> {
      yield { type: 'reasoning', text: 'hm' };
      yield { type: 'text', text: 'half an answer' };
      yield { type: 'usage', usage: USED };
      yield { type: 'finish', reason };
    },
  };
  const request = { prompt: 'p', system: null, model: null, onText: () => undefined };
  const signal = new AbortController().signal;
  try {
    return { answer: await callModel({ model }, request, signal, (usage) => used.push(usage)), fault: null, used };
  } catch (fault) {
    return { answer: null, fault, used };
  }
}

test.each(['stop', 'length', 'tool_calls'] as const)('[P15] text that ends with %s is the answer', async (reason) => {
  expect(await call(reason)).toEqual({ answer: 'half an answer', fault: null, used: [USED] });
});

test.each([
  ['content_filter', 'model_rejected'],
  ['error', 'model_unavailable'],
  ['abort', 'model_unavailable'],
] as const)('[P15] text that ends with %s is an error (%s), and its usage counts', async (reason, code) => {
  const { fault, used } = await call(reason);
  expect(fault).toMatchObject({ code });
  expect(used).toEqual([USED]);
});
