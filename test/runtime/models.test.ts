/** Models in workerd: the contract of providers, and the summaries of a session (L1, C10). */
import { expect, inject, test, vi } from 'vitest';
import { providerContract } from '../llm/providers/provider-contract.ts';
import { call, newSession, post } from './client.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** Base URL of the provider contract's server (test/support/contract-llm.ts). */
    contractLlm: string;
  }
}

providerContract(() => inject('contractLlm'));

const AGENT = `kind: Agent
version: "1.0"
name: summed
summary: Of a test.
persona: You.
cognitive_engine: { primary: { endpoint: "https://llm-of-a-test.com/v1", model: m, provider: openai }, dialect: protocol }
memory: { summarize_after: 2, summary: { tokens: 100 } }
`;

interface Asked {
  readonly messages: readonly { readonly role: string; readonly content: string }[];
}

function streamed(text: string): Response {
  const chunk = (delta: object, reason: string | null): string =>
    `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason: reason }] })}\n\n`;
  return new Response(`${chunk({ content: text }, null)}${chunk({}, 'stop')}data: [DONE]\n\n`, {
    headers: { 'content-type': 'text/event-stream' },
  });
}

test('[C10] the model of a session summarises its older turns after the answer, and later prompts have the summary', async () => {
  const stored = await call('/manifests/agent/summed', { method: 'PUT', body: AGENT });
  expect(stored.status).toBe(201);
  const asked: Asked[] = [];
  const network = vi.spyOn(globalThis, 'fetch').mockImplementation(async (_url, init) => {
    const request = JSON.parse(String(init?.body)) as Asked;
    asked.push(request);
    const isAnswer = request.messages[0]?.role === 'system';
    return streamed(isAnswer ? '<response final="true">noted</response>' : 'The user has told a number.');
  });
  const id = await newSession('summed');
  const history = async (): Promise<{ readonly summary?: { readonly text: string; readonly turns: number } | null }> =>
    await (await call(`/agent/session/${id}/history`)).json();
  for (const number of [1, 2, 3]) {
    const answer = await post(`/agent/session/${id}/message`, { content: `number ${number}`, stream: false });
    expect(await answer.json()).toMatchObject({ status: 'completed', response: 'noted' });
  }
  await expect.poll(async () => (await history()).summary).toMatchObject({ text: 'The user has told a number.' });
  await post(`/agent/session/${id}/message`, { content: 'number 4', stream: false });
  // The call that follows this answer has ended, too.
  await expect.poll(async () => (await history()).summary?.turns).toBe(2);
  network.mockRestore();
  const prompt = JSON.stringify(asked.findLast(({ messages }) => messages.at(-1)?.content.includes('number 4')));
  expect(prompt).toContain('> The user has told a number.');
  expect(prompt).not.toContain('number 1');
});
