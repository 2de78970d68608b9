import { describe, expect, test } from 'vitest';
import type { ChatMessage, ModelRequest } from '../../../src/domain/ports/model.ts';
import { GENERIC, PRESET_NAMES, PRESETS, presetAt } from '../../../src/llm/providers/presets.ts';
import type { ProviderQuirks } from '../../../src/llm/providers/presets.ts';
import { requestBody } from '../../../src/llm/providers/wire.ts';
import { modelRequest } from '../model-request.ts';

function body(
  quirks: ProviderQuirks,
  more: Partial<ModelRequest> = {},
  refused: Parameters<typeof requestBody>[1]['refused'] = new Set(),
): Record<string, unknown> {
  return requestBody(modelRequest(more), { model: 'm', quirks, refused });
}

const withCalls: ChatMessage[] = [
  { role: 'system', content: 'S' },
  { role: 'user', content: 'u' },
  { role: 'assistant', content: '', toolCalls: [{ id: 'call_long_id_1', name: 'f', arguments: '{}' }] },
  { role: 'tool', content: '1', toolCallId: 'call_long_id_1' },
  { role: 'user', content: 'go on' },
];

describe('[L1] requests of the presets', () => {
  test.each([
    ['openai', { max_completion_tokens: 50 }],
    ['groq', { max_completion_tokens: 50 }],
    ['anthropic', { max_tokens: 50, temperature: 1 }],
    ['mistral', { max_tokens: 50, temperature: 1.5 }],
    ['ollama', { max_tokens: 50, temperature: 1.8 }],
  ] as const)('%s sends limits and temperature in its own format', (name, expected) => {
    expect(body(PRESETS[name].quirks, { maxTokens: 50, temperature: 1.8 })).toMatchObject(expected);
  });

  test('usage is requested, except from presets that refuse it', () => {
    const asked = PRESET_NAMES.filter((name) => 'stream_options' in body(PRESETS[name].quirks));
    expect(asked).toEqual(PRESET_NAMES.filter((name) => name !== 'mistral'));
  });

  test('a preset with a short default limit requests a longer answer, unless the manifest sets one', () => {
    const { quirks } = PRESETS['workers-ai'];
    expect(body(quirks)).toMatchObject({ max_tokens: 4_096 });
    expect(body(quirks, { maxTokens: 9 })).toMatchObject({ max_tokens: 9 });
    expect(body(quirks, { extra: { max_completion_tokens: 7 } })).not.toHaveProperty('max_tokens');
    expect(body(GENERIC)).not.toHaveProperty('max_tokens');
  });

  test('[P17] Mistral gets ids of nine characters, the same for call and answer, and a message before the user’s', () => {
    const messages = body(PRESETS.mistral.quirks, { messages: withCalls })['messages'] as {
      role: string;
      tool_calls?: { id: string }[];
      tool_call_id?: string;
    }[];
    expect(messages.map(({ role }) => role)).toEqual(['system', 'user', 'assistant', 'tool', 'assistant', 'user']);
    const id = messages[2]?.tool_calls?.[0]?.id;
    expect(id).toMatch(/^[A-Za-z0-9]{9}$/);
    expect(messages[3]?.tool_call_id).toBe(id);
  });

  test('[P17] ids of nine characters stay unchanged, and different ids stay different', () => {
    const ids = Array.from({ length: 500 }, (_, n) => `call_${n}`);
    const shortened = ids.map((id) => {
      const toolCalls = [{ id, name: 'f', arguments: '{}' }];
      const [message] = body(PRESETS.mistral.quirks, { messages: [{ role: 'assistant', content: '', toolCalls }] })[
        'messages'
      ] as { tool_calls: { id: string }[] }[];
      return message?.tool_calls[0]?.id;
    });
    expect(new Set(shortened).size).toBe(500);
    expect(
      JSON.stringify(
        body(PRESETS.mistral.quirks, {
          messages: [{ role: 'tool', content: 'x', toolCallId: 'abcdefgh9' }],
        }),
      ),
    ).toContain('abcdefgh9');
  });
});

describe('[L1] features that an endpoint has refused', () => {
  test('without a system role, the system prompt is the start of the first user message', () => {
    expect(body(GENERIC, { messages: withCalls.slice(0, 2) }, new Set(['system']))['messages']).toEqual([
      { role: 'user', content: 'S\n\nu' },
    ]);
  });

  test('an assistant message is inserted between a tool and the user', () => {
    const messages = body(GENERIC, { messages: withCalls }, new Set(['user_after_tool']))['messages'] as {
      role: string;
    }[];
    expect(messages.map(({ role }) => role).slice(-3)).toEqual(['tool', 'assistant', 'user']);
  });
});

test.each([
  ['https://api.groq.com/openai/v1', 'groq'],
  ['http://localhost:11434/v1', 'ollama'],
  ['https://gateway.ai.cloudflare.com/v1/a/b/compat', 'ai-gateway'],
  ['https://api.groq.com.evil.example/v1', null],
  ['http://127.0.0.1:5000/v1', null],
  ['nonsense', null],
])('[L1] the address %s selects %s', (url, name) => {
  expect(presetAt(url)).toBe(name);
});

test('[L1] the address of every preset selects that preset', () => {
  for (const name of PRESET_NAMES) expect(presetAt(PRESETS[name].example)).toBe(name);
});
