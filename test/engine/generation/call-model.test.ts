import { expect, test } from 'vitest';
import type { FinishReason, ModelDelta, ModelRequest, Usage } from '../../../src/domain/ports/model.ts';
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
  ['content_filter', 'model_rejected', "The model's answer was stopped by the endpoint's content filter"],
  ['error', 'model_unavailable', "The model's answer ended early (error)"],
  ['abort', 'model_unavailable', "The model's answer ended early (abort)"],
] as const)('[P15] text that ends with %s is an error (%s), and its usage counts', async (reason, code, message) => {
  const { fault, used } = await call(reason);
  expect(fault).toMatchObject({ code, message });
  expect(used).toEqual([USED]);
});

test('[P6] a call outside the conversation asks what it was given, and nothing else', async () => {
  const requests: ModelRequest[] = [];
  const pieces: string[] = [];
  const model = {
    name: 'scripted',
    async *stream(request: ModelRequest): AsyncGenerator<ModelDelta> {
      requests.push(request);
      yield { type: 'text', text: 'one ' };
      yield { type: 'reasoning', text: 'hm' };
      yield { type: 'text', text: 'two' };
    },
  };
  const { signal } = new AbortController();
  const onText = (text: string): void => void pieces.push(text);
  const ask = async (request: Pick<Parameters<typeof callModel>[1], 'system' | 'model' | 'further'>): Promise<string> =>
    await callModel({ model }, { prompt: 'p', onText, ...request }, signal, () => undefined);
  expect(await ask({ system: null, model: null })).toBe('one two');
  expect(pieces).toEqual(['one ', 'two']);
  const further = [
    { role: 'assistant', content: 'a' },
    { role: 'user', content: 'again' },
  ] as const;
  await ask({ system: 's', model: 'small', further });
  const plain = { temperature: null, maxTokens: null, extra: {}, agent: null, signal };
  const prompt = { role: 'user', content: 'p' };
  expect(requests).toEqual([
    { ...plain, model: null, messages: [prompt] },
    { ...plain, model: 'small', messages: [{ role: 'system', content: 's' }, prompt, ...further] },
  ]);
});
