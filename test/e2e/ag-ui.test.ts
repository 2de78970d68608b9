/** The unchanged client of AG-UI against a real system, also over a connection that is cut (E3). */
import type { Tool } from '@ag-ui/core';
import { afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { agUiChat, shownIn } from '../support/ag-ui.ts';
import type { AgUiChat } from '../support/ag-ui.ts';
import { startCuttingProxy } from '../support/cutting-proxy.ts';
import { sharedNamespace } from '../support/shared.ts';
import type { Namespace } from '../support/shared.ts';

const TOOL: Tool = { name: 'pick_color', description: 'Asks for a color.', parameters: { type: 'object' } };

let system: Namespace;
beforeAll(async () => {
  system = await sharedNamespace();
});

// The client logs what it throws.
beforeEach(() => void vi.spyOn(console, 'error').mockReturnValue(undefined));
afterEach(() => void vi.restoreAllMocks());

function chatWith(threadId: string, { key } = system): AgUiChat {
  return agUiChat({ url: `${system.url}/agui/assistant`, threadId, headers: { authorization: `Bearer ${key}` } });
}

/** The client rejects a promise that nothing handles if a stream breaks; so here a broken stream ends instead. */
async function ending(url: string, init: RequestInit): Promise<Response> {
  const response = await fetch(url, init);
  const reader = response.body?.getReader();
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { value } = (await reader?.read().catch(() => null)) ?? {};
      if (value === undefined) controller.close();
      else controller.enqueue(value);
    },
  });
  return new Response(body, response);
}

describe('[E3] HttpAgent', () => {
  test('is answered, and a wrong key is an error with its code', async () => {
    const chat = chatWith('plain');
    expect(await chat.say('What is 6 * 7?')).toBe('success');
    expect(shownIn(chat.agent.messages).findLast((text) => text.startsWith('assistant '))).toContain('42');
    expect(await chatWith('plain', { ...system, key: 'wrong' }).say('Hello')).toMatch(
      /^failed HTTP 401: .*"unauthorized"/,
    );
  });

  test('executes a tool, and the run goes on with its result', async () => {
    const chat = chatWith('tools');
    chat.agent.addMessage({ id: 'u', role: 'user', content: 'use pick_color' });
    expect(await chat.run({ tools: [TOOL] })).toBe('success pending');
    const calls = chat.agent.messages.flatMap((one) => (one.role === 'assistant' ? (one.toolCalls ?? []) : []));
    chat.agent.addMessage({ id: 't', role: 'tool', toolCallId: calls[0]?.id ?? '', content: 'teal' });
    expect(await chat.run({ tools: [TOOL] })).toBe('success');
    expect(shownIn(chat.agent.messages).join('\n')).toContain('teal');
  });

  test('whose connection is cut after some events ends with the same messages after repeated requests', async () => {
    const cuts = [1, 2, 4, 9, 15, 22];
    await using proxy = await startCuttingProxy({
      target: system.url,
      eventsOf: ({ number }) => cuts[number] ?? null,
      loses: ({ number }) => number === cuts.length,
    });
    const url = `${proxy.url}/agui/assistant`;
    const config = { url, threadId: 'cut', headers: system.authorization };
    const chat = agUiChat(config, async (_input, init) => await ending(url, init));
    await chat.say('What is 6 * 7? Then reverse the text "so it is"', 'r1');
    for (let again = 0; again < cuts.length; again += 1) await chat.run({ runId: 'r1' });
    expect(await chat.run({ runId: 'r1' })).toBe('success');
    expect([proxy.requests.length, proxy.cuts() >= cuts.length - 1]).toEqual([cuts.length + 2, true]);
    const whole = chatWith('cut');
    expect(await whole.say('What is 6 * 7? Then reverse the text "so it is"', 'r1')).toBe('success');
    expect(chat.agent.messages).toEqual(whole.agent.messages);
  });
});
